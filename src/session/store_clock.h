// Store time: what decides whether something is due.
//
// Wall clocks jump, and those of two machines differ. So what is due is decided by a time that never goes back: that of
// the wall clock, unless somebody has acted upon a later one already. One row holds the latest time that anybody acted
// upon, the floor. While the wall clock is behind the floor, store time goes on from there at the pace of the steady
// clock, so that delays still end on time.
//
// On a store with a TestClock, store time is what that says: it stands still, and only what it is told moves it.
#pragma once

#include <memory>

#include "perdure/store.h"
#include "perdure/test_clock.h"
#include "perdure/time.h"
#include "perdure/transaction.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure {

/// Store time as this process knows it. Thread-safe.
///
/// { read, learn } { now { advance } }: who acts upon what is due reads the row and learns it, then asks for the time,
/// and advances the row to that time in the transaction that acts. Without the row the time still never goes back in
/// this process.
class StoreClock {
 public:
  /// `scheduler` outlives it. It is what the wall clock says until something is learned.
  explicit StoreClock(Scheduler& scheduler, std::shared_ptr<TestClock> test = {})
      : scheduler_(scheduler),
        test_(std::move(test)),
        floor_(test_ ? test_->now() : scheduler.wall_now()),
        floor_at_(scheduler.now()) {}
  /// As the options of the store say. The store outlives it.
  explicit StoreClock(Store& store);

  /// Never earlier than any answer before, nor than what was learned.
  WallTime now() PERDURE_EXCLUDES(mutex_);
  /// It is at least `floor` by now. One that is earlier than what is known changes nothing.
  void learn(WallTime floor) PERDURE_EXCLUDES(mutex_);
  /// Whether it stands still, so that no timer tells when it will be some time.
  bool stands_still() const { return test_ != nullptr; }

  /// The latest store time that anybody acted upon; 1970 if nobody has. Part of the transaction that it is called in,
  /// which conflicts with whoever advances it: call it with a snapshot if an earlier one is good enough.
  static WallTime read(Reader& reader);
  /// Writes that `time` was acted upon, unless a later one has been. Costs nothing then: only a write conflicts.
  static void advance(Transaction& txn, WallTime time);

 private:
  /// Clocks are read in the order of the answers.
  WallTime advance_to_now() PERDURE_REQUIRES(mutex_);

  Scheduler& scheduler_;
  const std::shared_ptr<TestClock> test_;
  Mutex mutex_;
  /// What it was, or had to be, at `floor_at_` on the steady clock.
  WallTime floor_ PERDURE_GUARDED_BY(mutex_);
  SteadyTime floor_at_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
