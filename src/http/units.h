// Durations, times and rates as the API writes and reads them.
#pragma once

#include <string>
#include <string_view>

#include "perdure/error.h"
#include "perdure/event.h"
#include "perdure/time.h"
#include "perdure/value.h"

namespace perdure::http {

/// "250ms", "5s", "5m", "24h", "7d", also "1.5s"; a number alone is seconds. Not negative; up to 200 years.
/// Errors: kInvalidArgument, with `what` and the forms that there are.
Result<Duration> read_duration(const Value& value, std::string_view what);
Result<Duration> parse_duration(std::string_view text, std::string_view what);
/// The shortest of these that is exact to the millisecond.
std::string format_duration(Duration duration);

/// RFC 3339. Errors: kInvalidArgument, with `what`.
Result<DueTime> parse_time(std::string_view text, std::string_view what);
std::string format_time(WallTime time);
std::string format_time(DueTime time);

/// "10/s", "600/m", "1/h", "5/10s".
Result<Rate> parse_rate(std::string_view text, std::string_view what);
std::string format_rate(const Rate& rate);

/// An integer, as a string above 2^53, where JSON's readers begin to round.
Value number_value(std::uint64_t number);
/// A list of the two.
Value pair_value(Value first, Value second);
/// Sixteen digits, which sort as the versions do.
std::string format_version(Version version);
Result<Version> parse_version(std::string_view text);

}  // namespace perdure::http
