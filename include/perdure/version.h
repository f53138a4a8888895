#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>

#include "perdure/bytes.h"
#include "perdure/export.h"

namespace perdure {

/// The number of a committed transaction. Later commits have larger versions, numbers may be skipped, and no number is
/// ever used twice in the life of a store. 0 is before every commit.
struct Version {
  std::uint64_t number = 0;
  auto operator<=>(const Version&) const = default;
};

/// A version, and the place of one row among those that its commit stamped: unique in a store, ordered by commit.
struct PERDURE_EXPORT Stamp {
  static constexpr std::size_t kSize = 12;

  Version version;
  std::uint32_t order = 0;
  auto operator<=>(const Stamp&) const = default;

  /// Twelve bytes that sort like the stamp: the version, then the order, both big-endian.
  std::array<char, kSize> encode() const;
  /// Empty unless `bytes` has exactly kSize bytes.
  static std::optional<Stamp> decode(BytesView bytes);
};

}  // namespace perdure
