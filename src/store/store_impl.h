#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "perdure/store.h"
#include "runtime/fork_mark.h"
#include "runtime/latch.h"
#include "runtime/manual_scheduler.h"
#include "runtime/scheduler.h"
#include "store/committer.h"
#include "store/engine.h"
#include "store/watches.h"

namespace perdure {

/// One open store: wires engine, committer and watches together, and knows which calls are under way.
class StoreImpl {
 public:
  /// `owned` is the scheduler if the store made it for itself.
  StoreImpl(std::unique_ptr<Engine> engine, Scheduler& scheduler, std::unique_ptr<Scheduler> owned,
            StoreOptions options);
  ~StoreImpl();
  /// For handles: in a child of fork() the store is left as it is, since all that it would release is the parent's, and
  /// the threads that it would wait for do not exist there.
  static std::shared_ptr<StoreImpl> shared(std::unique_ptr<StoreImpl> store);

  Result<Receipt> run(Call::BodyFn body, const TransactOptions& options);
  void run_async(Call::BodyFn body, std::move_only_function<void(Result<Receipt>)> done,
                 const TransactOptions& options);
  Result<void> close(Duration grace);
  /// Calls that have not been answered: as long as there is one, `close` blocks. For owners that must not block.
  std::size_t calls_inside() {
    MutexLock lock(mutex_);
    return inside_;
  }

  /// The engine, or why there is none. Holding the answer keeps the store from closing.
  class Use;
  Result<Use> use();
  /// Runs `task` when the store begins to close, on the thread that closes it: for those who would otherwise wait for
  /// ever. Answers a number to forget it by; 0 if it is closing already, and `task` is not run.
  std::uint64_t before_close(Task task);
  void forget_before_close(std::uint64_t number);
  /// For a simulated process that has died: none of its code runs any more. Calls still come to their end, but no body
  /// is run for them, and nobody is told; nor are watches.
  void mute() { muted_ = true; }
  bool muted() const { return muted_; }
  const Limits& limits() const { return limits_; }
  const StoreOptions& options() const { return options_; }
  /// Whether to wait for a callback would be to wait for this very thread.
  bool must_not_block() const;
  Engine& engine() { return *engine_; }
  /// Lives as long as the store is open.
  Scheduler& scheduler() { return scheduler_; }

 private:
  enum class Phase {
    kOpen,
    kClosing,    ///< Refuses new calls; waits for those inside.
    kReleasing,  ///< Nobody is inside; one caller of close takes everything down.
    kReleased    ///< Final.
  };
  class AsyncCall;
  class BlockingCall;
  /// Where watches run their callbacks: on the scheduler, and counted as calls that closing waits for.
  class Callbacks;

  /// Whether the body is run by the commit and nowhere else.
  bool runs_in_commit(const TransactOptions& options) const;
  /// Runs the body once. Answers the result if that was all; otherwise the committer, or a later run, will.
  std::optional<Result<Receipt>> advance(const std::shared_ptr<Call>& call);
  /// Answers what rests on reads alone, once what it saw cannot be taken back by a power cut and is known not to be of
  /// the past, or when its time is up.
  void wait_until_durable(const std::shared_ptr<Call>& call, Result<void> ran);
  static Result<Receipt> finish_read(Call& call, Result<void> outcome);
  SteadyTime deadline_of(const TransactOptions& options);
  Call::Feed feed() const { return options_.changes_kept > Duration::zero() ? Call::Feed::kOn : Call::Feed::kOff; }
  /// Counts a call as inside, unless the store takes none.
  Result<void> enter();
  void leave();
  /// Whether this thread may wait for the store.
  Result<void> may_close() const;
  // The steps of closing.
  void refuse_new_calls() PERDURE_EXCLUDES(mutex_);
  void enter_phase(Phase phase) PERDURE_EXCLUDES(mutex_);
  /// Waits until nobody is inside; false at `until`.
  bool drain(SteadyTime until) PERDURE_EXCLUDES(mutex_);
  Result<void> still_inside() PERDURE_EXCLUDES(mutex_);
  void release_all();

  const StoreOptions options_;
  const Limits limits_;
  const bool blocking_calls_;
  std::atomic<bool> muted_ = false;
  std::unique_ptr<Scheduler> owned_scheduler_;
  Scheduler& scheduler_;
  /// The scheduler, if it is one that the host polls.
  ManualScheduler* const manual_;
  const std::shared_ptr<const ForkMark> fork_mark_ = std::make_shared<ForkMark>();
  const std::unique_ptr<Executor> callbacks_;
  std::shared_ptr<WatchRegistry> watches_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Committer> committer_;

  Mutex mutex_;
  CondVar left_;
  Phase phase_ PERDURE_GUARDED_BY(mutex_) = Phase::kOpen;
  std::size_t inside_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Task> before_close_ PERDURE_GUARDED_BY(mutex_);
};

/// Keeps a store open while something uses its engine.
class StoreImpl::Use {
 public:
  explicit Use(StoreImpl* store) : store_(store) {}
  Use(Use&& other) noexcept : store_(std::exchange(other.store_, nullptr)) {}
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (store_) store_->leave();
  }

 private:
  StoreImpl* store_;
};

}  // namespace perdure
