#pragma once

#include <cstdint>

#include "perdure/bytes.h"
#include "perdure/version.h"

namespace perdure {

/// Bytes with a hole of Stamp::kSize bytes that the commit fills with its stamp: a key or a value that holds the moment
/// at which it was written, which nobody knows before. `order` tells apart what one transaction stamps: each row that
/// needs a stamp of its own gets another number.
struct Stamped {
  Bytes before;
  Bytes after;
  std::uint32_t order = 0;
  bool operator==(const Stamped&) const = default;

  /// What becomes of it when the transaction commits as `version`.
  Bytes filled(Version version) const {
    auto stamp = Stamp{version, order}.encode();
    Bytes bytes;
    bytes.reserve(before.size() + stamp.size() + after.size());
    return bytes.append(before).append(stamp.data(), stamp.size()).append(after);
  }
};

}  // namespace perdure
