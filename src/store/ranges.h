#pragma once

#include "perdure/key_range.h"

namespace perdure {

/// Keys from here on are perdure's own: batches, sessions and what other parts keep. Transactions neither see nor touch
/// them without SystemAccess.
inline constexpr BytesView kSystemKeys = "\xff";

/// The smallest key after `key`.
inline Bytes next_key(BytesView key) {
  Bytes next(key);
  next.push_back('\0');
  return next;
}

}  // namespace perdure
