#pragma once

#include <source_location>
#include <string_view>

namespace perdure {

/// Ends the process by abort(), with the text where the host finds it: see perdure/fatal.h. Nothing is printed, and no
/// handler is called, for what is broken may be anything. For broken invariants only: what is durable is safe, and
/// starting again from it is a tested path, while going on with a broken state is not.
[[noreturn]] void die(std::string_view what, std::source_location where = std::source_location::current());

/// An assertion that is on in release builds too.
inline void check(bool condition, std::string_view what, std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    die(what, where);
}

}  // namespace perdure
