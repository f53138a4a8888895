// What a schedule that is due does: which nominal times become events, and which were missed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perdure/schedule.h"
#include "schedule/timing.h"

namespace perdure::schedule {

/// With Missed::kAll, of more than so many the oldest are given up.
inline constexpr std::uint64_t kCatchUpMax = 10'000;
/// With Missed::kSkip, how late is not missed yet: a busy machine may be late.
inline constexpr Duration kGrace = std::chrono::seconds(60);
/// Those that were missed at one time are counted up to so many.
inline constexpr std::uint64_t kCountMax = 1'000'000;

struct Plan {
  /// In order, and none later than now; each is to become one event.
  std::vector<WallTime> fire;
  std::uint64_t missed = 0;
  /// Nothing if there is no other. May be due as well, if more would have been fired than was allowed.
  std::optional<WallTime> next;
};

/// `next` has come: it is not after `now`. At most `most` are fired, at least 1.
Plan plan_due(const Timing& timing, Missed missed, WallTime next, WallTime now, std::size_t most);

}  // namespace perdure::schedule
