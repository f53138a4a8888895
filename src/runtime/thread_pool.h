#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "runtime/timer_queue.h"

namespace perdure {

/// The scheduler of production: threads that share one queue, with timers. With one thread it keeps the order of
/// posting, which is how lanes are made.
class ThreadPool final : public Scheduler {
 public:
  ThreadPool(std::string name, unsigned threads);
  /// Runs everything posted so far, drops timers, and joins. Tasks posted by the last tasks are run too.
  ~ThreadPool() override;
  /// Cores of this machine, at least one.
  static unsigned cores();

  void post(Task task) override;
  TimerId at(SteadyTime when, Task task) override;
  bool cancel(TimerId timer) override;
  SteadyTime now() override;
  WallTime wall_now() override;
  std::uint64_t random() override;
  bool runs_here() const override;
  std::unique_ptr<Executor> lane(std::string name) override;

 private:
  void run();
  /// Moves timers that are due to the queue.
  void promote_due_timers() PERDURE_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> ready_ PERDURE_GUARDED_BY(mutex_);
  TimerQueue timers_ PERDURE_GUARDED_BY(mutex_);
  unsigned idle_ PERDURE_GUARDED_BY(mutex_) = 0;
  bool stopping_ PERDURE_GUARDED_BY(mutex_) = false;

  std::atomic<std::uint64_t> random_state_;
  std::vector<std::thread> threads_;
};

}  // namespace perdure
