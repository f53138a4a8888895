#include "schedule/cron.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace perdure::schedule {
namespace {

constexpr Seconds kMinute = 60, kHour = 3600, kDay = 86'400;
/// The longest that an expression can be silent: from one 29 February that is a given weekday to the next may be 40
/// years, where a year like 2100 lies between.
constexpr Seconds kSilenceMax = 41 * 366 * kDay;
/// As much of WallTime as leaves room for the offsets of zones.
constexpr Seconds kLast = 9'223'372'036 - 2 * kDay;

bool has(std::uint64_t set, std::int64_t number) {
  return (set >> number & 1) != 0;
}

/// The first number in `set` from `from` on.
std::optional<std::int64_t> first_of(std::uint64_t set, std::int64_t from) {
  if (from >= 64 || set >> from == 0) return std::nullopt;
  return from + std::countr_zero(set >> from);
}

std::int64_t floor_div(Seconds value, Seconds by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

std::chrono::sys_days as_date(std::int64_t day) {
  return std::chrono::sys_days(std::chrono::days(day));
}

/// The first day of the next month in `months` after that of `day`.
std::int64_t next_month(std::int64_t day, std::uint64_t months) {
  using namespace std::chrono;
  year_month_day date(as_date(day));
  auto found = first_of(months, static_cast<unsigned>(date.month()) + 1);
  year in = found ? date.year() : date.year() + years(1);
  auto month_number = static_cast<unsigned>(found ? *found : std::countr_zero(months));
  return sys_days(in / month(month_number) / 1).time_since_epoch().count();
}

}  // namespace

bool Cron::fits(std::int64_t day) const {
  using namespace std::chrono;
  year_month_day date(as_date(day));
  bool by_date = has(days_, static_cast<unsigned>(date.day()));
  bool by_weekday = has(weekdays_, weekday(as_date(day)).c_encoding());
  return either_day_ ? by_date || by_weekday : by_date && by_weekday;
}

bool Cron::fires() const {
  if (either_day_) return true;
  static constexpr unsigned kDaysIn[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  auto first_day = static_cast<unsigned>(std::countr_zero(days_));
  for (int month = 1; month <= 12; ++month)
    if (has(months_, month) && first_day <= kDaysIn[month]) return true;
  return false;
}

std::optional<Seconds> Cron::first_fitting(Seconds from, Seconds to) const {
  std::int64_t day = floor_div(from, kDay);
  // Of the first day only what is left of it, in minutes begun.
  std::int64_t minute_of_day = (from - day * kDay + kMinute - 1) / kMinute;
  while (day * kDay < to) {
    auto month = static_cast<unsigned>(std::chrono::year_month_day(as_date(day)).month());
    if (!has(months_, month)) {
      day = next_month(day, months_);
      minute_of_day = 0;
      continue;
    }
    if (fits(day)) {
      std::int64_t begun = minute_of_day / 60;
      auto hour = first_of(hours_, begun);
      auto minute = first_of(minutes_, hour == begun ? minute_of_day % 60 : 0);
      if (hour && !minute) {
        hour = first_of(hours_, *hour + 1);
        minute = first_of(minutes_, 0);
      }
      if (hour) {
        Seconds found = day * kDay + *hour * kHour + *minute * kMinute;
        if (found >= to) return std::nullopt;
        return found;
      }
    }
    ++day;
    minute_of_day = 0;
  }
  return std::nullopt;
}

std::optional<Seconds> Cron::next_elapsed(Seconds after, Seconds to, const Zone& zone) const {
  for (Seconds from = after + 1; from < to;) {
    Zone::Segment now = zone.segment(from);
    Seconds end = std::min(now.end, to);
    if (auto local = first_fitting(from + now.offset, end + now.offset)) return *local - now.offset;
    from = end;
  }
  return std::nullopt;
}

std::optional<WallTime> Cron::next(WallTime after, const Zone& zone) const {
  Seconds utc = std::chrono::floor<std::chrono::seconds>(after.time_since_epoch()).count();
  Seconds to = std::min(utc + kSilenceMax, kLast);
  std::optional<Seconds> found;
  if (every_hour_) {
    found = next_elapsed(utc, to, zone);
  } else if (auto local = first_fitting(zone.latest_local(utc) + 1, to)) {
    found = zone.first_shown(*local);
  }
  if (!found) return std::nullopt;
  return WallTime(std::chrono::seconds(*found));
}

}  // namespace perdure::schedule
