#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/error.h"
#include "perdure/export.h"

namespace perdure {

/// Sixteen bytes that name something. Any sixteen are allowed: neither the version nor the variant field of RFC 9562
/// is looked at. Sorts by its bytes, which is also the order of its text.
struct PERDURE_EXPORT Uuid {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const Uuid&) const = default;

  /// Reads the 36-character form, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", with digits of either case.
  /// Errors: invalid_argument for anything else, with the text in the message.
  static Result<Uuid> parse(std::string_view text);
};

/// The 36-character form in lower case.
PERDURE_EXPORT std::string to_string(const Uuid& uuid);

}  // namespace perdure
