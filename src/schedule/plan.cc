#include "schedule/plan.h"

#include <algorithm>

namespace perdure::schedule {
namespace {

/// Fires those from `first` on that have come, as many as it may.
void fire_from(std::optional<WallTime> first, const Timing& timing, WallTime now, std::size_t most, Plan& plan) {
  plan.next = first;
  while (plan.next && *plan.next <= now && plan.fire.size() < most) {
    plan.fire.push_back(*plan.next);
    plan.next = timing.next(*plan.next);
  }
}

/// Goes on after `after` instead of with `next`, which is not later: that one and those in between are missed.
std::optional<WallTime> give_up(WallTime next, WallTime after, const Timing& timing, Plan& plan) {
  plan.missed = 1 + timing.count(next, after, kCountMax);
  return timing.next(after);
}

}  // namespace

Plan plan_due(const Timing& timing, Missed missed, WallTime next, WallTime now, std::size_t most) {
  constexpr Duration kTick{1};
  Plan plan;
  std::optional<WallTime> first = next;
  switch (missed) {
    case Missed::kOne:
      if (WallTime newest = timing.before_newest(0, next, now); newest > next) {
        plan.missed = timing.count(next, newest, kCountMax);
        first = newest;
      }
      most = 1;
      break;
    case Missed::kAll:
      if (WallTime before = timing.before_newest(kCatchUpMax, next - kTick, now); before >= next)
        first = give_up(next, before, timing, plan);
      break;
    case Missed::kSkip:
      if (next < now - kGrace) first = give_up(next, now - kGrace - kTick, timing, plan);
      break;
  }
  fire_from(first, timing, now, std::max<std::size_t>(most, 1), plan);
  return plan;
}

}  // namespace perdure::schedule
