// Threads for the handlers of users, apart from those of the store.
//
// A handler may block, and may never come back; neither may hold up the store, its sessions or other handlers. So each
// thread here runs one handler at a time, under a watch: one that runs past its limit is given up, and another thread
// takes its place, up to a bound. What the lost one does in the end is nobody's concern any more.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure::actor {

class HandlerPool : public std::enable_shared_from_this<HandlerPool> {
 public:
  struct Job {
    Task run;
    /// Duration::max() for none.
    Duration limit = Duration::max();
    /// Called once, on a thread of the scheduler, if it runs past its limit.
    Task overrun = {};
    /// Called instead of `run` if the pool is closed before it begins.
    Task dropped = {};
  };

  /// `lanes` threads, begun as they are needed, and up to `spare` more in the place of those that hang.
  HandlerPool(Scheduler& scheduler, std::string name, unsigned lanes, unsigned spare);
  ~HandlerPool();

  void run(Job job) PERDURE_EXCLUDES(mutex_);
  /// Takes no more jobs, and drops those that have not begun. `idle` is called once nothing runs but what is given
  /// up.
  void close(Task idle) PERDURE_EXCLUDES(mutex_);
  /// Gives up whatever runs.
  void leave_behind() PERDURE_EXCLUDES(mutex_);
  /// Blocks until every job has ended or was given up. Not on one of its own threads.
  void wait() PERDURE_EXCLUDES(mutex_);
  /// Joins the threads, but leaves those that hang behind, and the one that this is called on.
  void join() PERDURE_EXCLUDES(mutex_);
  /// How many handlers have been given up, and have not come back.
  std::size_t hanging() PERDURE_EXCLUDES(mutex_);
  /// Whether this thread is running a handler: what would wait for another is refused there.
  static bool runs_here();

 private:
  struct Lane {
    std::unique_ptr<Executor> executor;
    bool busy = false;
    bool given_up = false;
    SteadyTime deadline = SteadyTime::max();
    Task overrun;
  };

  void work(Lane& lane) PERDURE_EXCLUDES(mutex_);
  void begin(Lane& lane) PERDURE_REQUIRES(mutex_);
  Lane* free_lane() PERDURE_REQUIRES(mutex_);
  void watch(SteadyTime deadline) PERDURE_REQUIRES(mutex_);
  void check() PERDURE_EXCLUDES(mutex_);
  bool is_idle() PERDURE_REQUIRES(mutex_);
  /// Those who wait for it, if nothing runs any more.
  std::vector<Task> take_idle() PERDURE_REQUIRES(mutex_);

  Scheduler& scheduler_;
  const std::string name_;
  const unsigned lanes_max_;
  const unsigned spare_max_;

  Mutex mutex_;
  std::deque<Job> queue_ PERDURE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Lane>> lanes_ PERDURE_GUARDED_BY(mutex_);
  std::size_t hanging_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime watched_until_ PERDURE_GUARDED_BY(mutex_) = SteadyTime::max();
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<Task> idle_ PERDURE_GUARDED_BY(mutex_);
  CondVar changed_;
};

}  // namespace perdure::actor
