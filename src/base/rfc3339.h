#pragma once

#include <string>
#include <string_view>

#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure {

/// A moment as RFC 3339 writes it, in UTC and cut to milliseconds: 2026-01-31T08:15:00.250Z.
std::string format_rfc3339(WallTime time);
/// What that says, with any number of digits behind the seconds, of which nine count, and any offset from UTC.
/// Errors: kInvalidArgument.
Result<WallTime> parse_rfc3339(std::string_view text);

}  // namespace perdure
