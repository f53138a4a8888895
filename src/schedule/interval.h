// Intervals: the same time again and again, whatever clocks on walls do.
//
// `Daily`, `Weekly`, `Fortnightly`, `Every 12hrs`, `Every 1hr` and `Every 1min`, in letters of any case, or a number
// with a unit, `90s`, `15m`, `2h`, `3d`. A day is 24 hours.
//
// The nominal times are first + n * interval, for n = 0, 1, 2 and so on: they do not depend on when anything ran, so
// that they never drift.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure::schedule {

class Interval {
 public:
  /// Errors: kInvalidArgument, with what is allowed; from a second to ten years.
  static Result<Interval> parse(std::string_view text);

  /// As it is usually written: "Every 12hrs" for "every 12HRS".
  const std::string& name() const { return name_; }
  Duration every() const { return every_; }
  /// The first nominal time after `after`; nothing if that is past the end of WallTime.
  std::optional<WallTime> next(WallTime after, WallTime first) const;
  /// How many nominal times there are in (after, until].
  std::uint64_t count(WallTime after, WallTime until, WallTime first) const;

  bool operator==(const Interval&) const = default;

 private:
  Interval(std::string name, Duration every) : name_(std::move(name)), every_(every) {}
  std::string name_;
  Duration every_;
};

}  // namespace perdure::schedule
