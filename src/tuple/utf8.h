#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace perdure {

/// Where the first byte stands that is not part of a well-formed UTF-8 character, or nothing if there is none. Strict
/// as RFC 3629 is: no overlong forms, no surrogates, nothing above U+10FFFF. A character that is cut short is reported
/// at its first byte.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

}  // namespace perdure
