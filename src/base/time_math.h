#pragma once

#include <algorithm>

#include "perdure/time.h"

namespace perdure {

/// `time` and `duration` later, or the end of time: durations come from users, and may be the largest there is.
template <class Time>
Time plus(Time time, Duration duration) {
  if (duration > Duration::zero() && duration > Time::max() - time) return Time::max();
  return time + duration;
}

/// `first`, doubled so many times, and `most` at most.
inline Duration doubled(Duration first, unsigned times, Duration most) {
  for (unsigned i = 0; i < times; ++i) {
    if (first > most / 2) return most;
    first *= 2;
  }
  return std::min(first, most);
}

}  // namespace perdure
