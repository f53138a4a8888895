// Time that stands still, for tests.
//
//   auto clock = std::make_shared<TestClock>(WallTime(std::chrono::hours(24 * 365 * 55)));
//   auto store = Store::open("memory:", {.clock = clock});
//
// Everything on such a store that is due at a moment, events, schedules, debouncers, delayed casts, deadlines of
// claims, goes by this clock. Timeouts, sessions and leases do not: they are about processes, and stay real.
#pragma once

#include <atomic>

#include "perdure/export.h"
#include "perdure/time.h"

namespace perdure {

/// Store time of the stores that were opened with it, which share it. Thread-safe; it never goes back, and counts whole
/// milliseconds, as everything that is due does. A store that has been further ahead before moves it to there.
class PERDURE_EXPORT TestClock {
 public:
  explicit TestClock(WallTime start) : now_(down(start)) {}
  TestClock(const TestClock&) = delete;
  TestClock& operator=(const TestClock&) = delete;

  WallTime now() const { return now_; }
  /// Rounded up. One that has passed changes nothing. What is due by then is not looked for because of this.
  void move_to(WallTime time) {
    WallTime known = now_, later = up(time);
    while (known < later && !now_.compare_exchange_weak(known, later)) {
    }
  }

 private:
  using Ms = std::chrono::milliseconds;
  static WallTime down(WallTime time) { return std::chrono::floor<Ms>(time); }
  static WallTime up(WallTime time) {
    bool last = time > WallTime::max() - Ms(1);
    return last || down(time) == time ? down(time) : down(time) + Ms(1);
  }

  std::atomic<WallTime> now_;
};

}  // namespace perdure
