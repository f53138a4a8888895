// The files of the time zone database, as RFC 9636 describes them.
//
// Howard Hinnant's date library, as Debian 12 packages it, was measured first: on the system's files it ignores the
// rule at the end of each, so that daylight saving ends with 2037, and, where the files are compiled "slim" as zic does
// by default, ended in 1996 for Berlin and in 2007 for New York. Reading a file whole is less code than a workaround.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/error.h"

namespace perdure::schedule {

/// Seconds since 1970. Which clock shows them, that of the world (UTC) or that on the wall, is said by the name.
using Seconds = std::int64_t;

/// From `begin` on, in UTC, the clock on the wall is `offset` seconds ahead of UTC.
struct Transition {
  Seconds begin;
  Seconds offset;
  bool operator==(const Transition&) const = default;
};

/// Before the first transition of any zone.
inline constexpr Seconds kBeginningOfTime = std::numeric_limits<Seconds>::min() / 4;
/// Rules are followed up to here: the year 2263, where WallTime has ended.
inline constexpr Seconds kEndOfRules = 9'246'182'400;

/// All transitions of a zone in order, the first at kBeginningOfTime, those of its rule up to kEndOfRules written out.
/// No two neighbours have the same offset.
/// Errors: kCorrupt, without the name of the file.
Result<std::vector<Transition>> parse_tzif(BytesView file);

/// The transitions that a POSIX rule, "CET-1CEST,M3.5.0,M10.5.0/3", makes after `after`, up to kEndOfRules; the first
/// is at `after` itself and says what holds there.
/// Errors: kCorrupt.
Result<std::vector<Transition>> expand_rule(std::string_view rule, Seconds after);

}  // namespace perdure::schedule
