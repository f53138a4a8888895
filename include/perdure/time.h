#pragma once

#include <chrono>
#include <cstdint>

namespace perdure {

using Duration = std::chrono::nanoseconds;

namespace internal {
template <class Tag>
struct ClockOf {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<ClockOf>;
};
}  // namespace internal

/// A moment on this machine's steady clock. It never goes back, and means nothing on another machine or after a
/// reboot: deadlines and the judgement that somebody is gone are made with it.
using SteadyTime = std::chrono::time_point<internal::ClockOf<struct SteadyTag>, Duration>;

/// A moment in the world's time (UTC, since 1970). It may jump: it decides only what is due, never who owns what.
using WallTime = std::chrono::time_point<internal::ClockOf<struct WallTag>, Duration>;

}  // namespace perdure
