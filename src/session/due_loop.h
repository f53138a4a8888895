#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "perdure/store.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "session/store_clock.h"
#include "store/system_access.h"

namespace perdure {

/// What a turn of a DueLoop found.
struct DueTurn {
  /// When the first of what is left falls due; nothing if nothing is left, or there is more now.
  std::optional<WallTime> next;
  /// Something is left that is due now.
  bool more = false;
  /// Something was done because of the time: nobody may act upon an earlier one from then on.
  bool acted = false;
  /// What is to be told once the turn has committed, inside of the gate.
  std::function<void()> committed = {};
};

/// Does what falls due at a moment of store time: rows in the order of their times, which any process may write and
/// every process looks after. Who writes one that may be the next changes the bell in the same transaction.
///
///     { turn ( at once, if there is more or it was rung meanwhile | sleep until the bell or the next time ) }
///
/// One turn at a time in each process. Processes that take the same turn conflict, and one of them finds it done. A
/// turn that fails is taken again after a moment; the loop ends when its home is closed. Crash: nothing is lost, since
/// all that it goes by is in the store.
///
/// Thread-safe. `Home` is a StorePart that also has `StoreClock& clock()`; the loop is a member of it, or of a member.
template <class Home>
class DueLoop {
 public:
  using Turn = DueTurn;
  /// Does a bounded number of things that are due at `now`. Runs in a transaction that may use perdure's own keys;
  /// `now` is store time, by which everybody who acted before is not ahead. It may run several times, as any body.
  using Body = std::function<Turn(Transaction&, WallTime now)>;
  static constexpr TransactOptions kOptions = {.body = perdure::Body::kShort, .reserve = Reserve::kMayUse};

  /// Told of a turn that failed, before it is taken again.
  using Failed = std::function<void(const Error&)>;

  /// Turns that reckon much are not short, and those that make more than they take away keep out of the reserve.
  DueLoop(Home& home, Bytes bell_key, Body body, const TransactOptions& options = kOptions, Failed failed = {})
      : home_(home),
        bell_key_(std::move(bell_key)),
        body_(std::move(body)),
        options_(options),
        failed_(std::move(failed)) {}

  /// The first turn; each later one comes by bell or timer.
  void start() { wake(); }
  /// A turn now, or once more after the one that is under way.
  void wake() PERDURE_EXCLUDES(mutex_);

 private:
  struct Seen {
    Turn turn;
    Watch bell;
  };
  static constexpr Duration kRetry = std::chrono::milliseconds(200);
  /// Timers are set for at most this long: the wall clock may jump ahead meanwhile.
  static constexpr Duration kLongestSleep = std::chrono::minutes(1);

  Seen take_turn(Transaction& txn);
  void answered(Result<Seen> seen) PERDURE_EXCLUDES(mutex_);
  void await_next(Result<Seen>& seen) PERDURE_EXCLUDES(mutex_);

  Home& home_;
  const Bytes bell_key_;
  const Body body_;
  const TransactOptions options_;
  const Failed failed_;
  Mutex mutex_;
  /// A turn is under way, or what comes of it is still to be seen to.
  bool running_ PERDURE_GUARDED_BY(mutex_) = false;
  bool again_ PERDURE_GUARDED_BY(mutex_) = false;
  Executor::TimerId timer_ PERDURE_GUARDED_BY(mutex_) = 0;
  Watch bell_ PERDURE_GUARDED_BY(mutex_);
};

template <class Home>
void DueLoop<Home>::wake() {
  {
    MutexLock lock(mutex_);
    again_ = running_;
    if (std::exchange(running_, true)) return;
  }
  home_.transact([this](Transaction& txn) { return take_turn(txn); },
                 [this](Result<Seen> seen, Receipt) { answered(std::move(seen)); }, options_);
}

template <class Home>
typename DueLoop<Home>::Seen DueLoop<Home>::take_turn(Transaction& txn) {
  SystemAccess access(txn);
  Watch bell = txn.watch(bell_key_);
  Reader snapshot = txn.snapshot();
  home_.clock().learn(StoreClock::read(snapshot));
  WallTime now = home_.clock().now();
  Turn turn = body_(txn, now);
  if (turn.acted) StoreClock::advance(txn, now);
  return {std::move(turn), std::move(bell)};
}

template <class Home>
void DueLoop<Home>::answered(Result<Seen> seen) {
  if (!seen && seen.error().code == ErrorCode::kClosed) return;
  if (seen && seen->turn.committed) seen->turn.committed();
  if (!seen && failed_) failed_(seen.error());
  bool at_once;
  {
    MutexLock lock(mutex_);
    at_once = again_ || (seen && seen->turn.more);
  }
  if (!at_once)
    await_next(seen);
  else if (seen)
    seen->bell.cancel();
  {
    MutexLock lock(mutex_);
    running_ = false;
    at_once = std::exchange(again_, false) || at_once;
  }
  if (at_once) wake();
}

template <class Home>
void DueLoop<Home>::await_next(Result<Seen>& seen) {
  std::optional<Duration> longest;
  if (!seen) longest = kRetry;
  // Whoever moves a clock that stands still wakes the loop.
  if (seen && seen->turn.next && !home_.clock().stands_still())
    longest = std::clamp(*seen->turn.next - home_.clock().now(), Duration::zero(), kLongestSleep);
  if (seen) {
    Watch before = seen->bell;
    {
      MutexLock lock(mutex_);
      std::swap(before, bell_);
    }
    before.cancel();
    seen->bell.then(home_.guarded([this] { wake(); }));
  }
  if (!longest) return;
  auto timer = home_.at(home_.scheduler().now() + *longest, [this] { wake(); });
  {
    MutexLock lock(mutex_);
    std::swap(timer, timer_);
  }
  if (timer != 0) home_.canceller(timer)();
}

}  // namespace perdure
