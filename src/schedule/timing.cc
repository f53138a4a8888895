#include "schedule/timing.h"

#include <algorithm>

namespace perdure::schedule {

std::optional<WallTime> Timing::next(WallTime after) const {
  if (const auto* every = std::get_if<Every>(&series_)) return every->interval.next(after, every->first);
  const auto& in_zone = std::get<InZone>(series_);
  return in_zone.cron.next(after, *in_zone.zone);
}

std::uint64_t Timing::count(WallTime after, WallTime until, std::uint64_t most) const {
  if (const auto* every = std::get_if<Every>(&series_))
    return std::min(every->interval.count(after, until, every->first), most);
  std::uint64_t count = 0;
  for (auto time = next(after); count < most && time && *time <= until; time = next(*time)) ++count;
  return count;
}

WallTime Timing::before_newest(std::uint64_t count, WallTime after, WallTime until) const {
  auto few_after = [&](WallTime time) { return this->count(time, until, count + 1) <= count; };
  if (few_after(after)) return after;
  // Too many come after `low`, and not after `high`. Nominal times of cron are whole seconds, and those of intervals
  // whole milliseconds.
  WallTime low = after, high = until;
  while (high - low > std::chrono::milliseconds(1)) {
    WallTime middle = std::chrono::floor<std::chrono::milliseconds>(low + (high - low) / 2);
    if (middle <= low) middle += std::chrono::milliseconds(1);
    (few_after(middle) ? high : low) = middle;
  }
  return std::chrono::floor<std::chrono::milliseconds>(high);
}

}  // namespace perdure::schedule
