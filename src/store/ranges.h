#pragma once

#include "perdure/key_range.h"

namespace perdure {

/// Keys from here on are perdure's own: its format, versions, batches. Transactions neither see nor touch them.
inline constexpr BytesView kSystemKeys = "\xff";

/// The smallest key after `key`.
inline Bytes next_key(BytesView key) {
  Bytes next(key);
  next.push_back('\0');
  return next;
}

}  // namespace perdure
