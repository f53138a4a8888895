#pragma once

#include "base/hash.h"
#include "perdure/bytes.h"
#include "perdure/version.h"

namespace perdure {

/// Covers key, version and value, so that a flipped bit is found when the row is read, and a row under the wrong key
/// too.
inline std::uint32_t row_checksum(BytesView key, Version version, BytesView value) {
  return static_cast<std::uint32_t>(hash64(value, hash64(key, version.number)));
}

}  // namespace perdure
