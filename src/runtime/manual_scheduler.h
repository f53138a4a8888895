// The scheduler behind ManualExecutor: a queue that nobody empties but the host.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>

#include "perdure/manual_executor.h"
#include "runtime/fork_mark.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "runtime/timer_queue.h"

namespace perdure {

class ManualScheduler final : public Scheduler {
 public:
  explicit ManualScheduler(std::function<void()> wake);

  void post(Task task) override;
  TimerId at(SteadyTime when, Task task) override;
  bool cancel(TimerId timer) override;
  SteadyTime now() override;
  WallTime wall_now() override;
  std::uint64_t random() override;
  bool runs_here() const override;
  /// Lanes may block, so each has a thread here too.
  std::unique_ptr<Executor> lane(std::string name) override;

  std::size_t poll(std::size_t most);
  std::optional<Duration> next_due();
  /// For a thread that has to wait, and may be the one that polls: waits until something is ready, or until `until`,
  /// and runs what is.
  void poll_or_wait(SteadyTime until);
  bool forked() const { return mark_.forked(); }

 private:
  /// Whether the host has to be woken, and has not been since the last poll. The caller does it, outside of the lock.
  bool must_wake() PERDURE_REQUIRES(mutex_);

  const std::function<void()> wake_;
  const ForkMark mark_;
  std::atomic<std::uint64_t> random_state_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> ready_ PERDURE_GUARDED_BY(mutex_);
  TimerQueue timers_ PERDURE_GUARDED_BY(mutex_);
  bool woken_ PERDURE_GUARDED_BY(mutex_) = false;
};

/// What the parts of perdure that are given an executor use of it.
struct ManualExecutorAccess {
  static ManualScheduler& scheduler(ManualExecutor& executor);
};

}  // namespace perdure
