// Cron expressions.
//
//     minute hour day-of-month month day-of-week      0-59 0-23 1-31 1-12 0-7, where 0 and 7 are Sunday
//
// Each field is `*` (in the day fields also `?`), or a list of numbers, ranges `a-b`, and steps `*/n`, `a-b/n` and
// `a/n` (from a to the end). Months and weekdays have their English names of three letters. `@hourly`, `@daily`
// (`@midnight`), `@weekly`, `@monthly` and `@yearly` (`@annually`) are what they say. Letters are of any case.
//
// The rule for days is cron's: if both day fields are restricted, a day that fits either of them fits. A field that
// begins with `*`, or is `?`, is not restricted, and then both have to fit.
//
// When clocks are changed, what happens depends on the field of the hour, as in Debian's cron:
//
//   - An hour that is named is a time of day, and each comes once. It fires when the clock on the wall first shows it,
//     or jumps past it. So a time that is skipped in spring fires at the moment of the change, once for all that are
//     skipped and those that fall there anyway; of a time that comes twice in autumn the first fires.
//   - An hour that begins with `*`, or names all 24, means that time goes by: every moment that fits fires, twice in an
//     hour that comes twice, and never in one that is skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perdure/error.h"
#include "perdure/time.h"
#include "schedule/zone.h"

namespace perdure::schedule {

/// A cron expression that fires. A value; immutable.
class Cron {
 public:
  /// Errors: kInvalidArgument, with the field, what is wrong in it, at which character, and what is allowed; also if
  /// there is no day that it fires on.
  static Result<Cron> parse(std::string_view text);

  /// The first nominal time after `after`; nothing if that is past the end of WallTime. Mostly costs less than a
  /// microsecond, and twenty for a 29 February that is a given weekday.
  std::optional<WallTime> next(WallTime after, const Zone& zone) const;

  bool operator==(const Cron&) const = default;

 private:
  friend class CronParser;
  Cron() = default;

  bool fits(std::int64_t day) const;
  /// Whether there is a day that fits.
  bool fires() const;
  /// The first time that fits in [from, to), whatever clocks do.
  std::optional<Seconds> first_fitting(Seconds from, Seconds to) const;
  std::optional<Seconds> next_elapsed(Seconds after, Seconds to, const Zone& zone) const;

  /// One bit for each number that fits: 0-59, 0-23, 1-31, 1-12, 0-6.
  std::uint64_t minutes_ = 0, hours_ = 0, days_ = 0, months_ = 0, weekdays_ = 0;
  /// Whether a day that fits one of them does.
  bool either_day_ = false;
  /// Whether it fires by elapsed time, rather than at times of day.
  bool every_hour_ = false;
};

}  // namespace perdure::schedule
