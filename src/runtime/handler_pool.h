// Threads for the handlers of users, apart from those of the store.
//
// A handler may block, and may never come back; neither may hold up the store, its sessions or other handlers. So each
// thread here runs one handler at a time, under a watch: one that runs past its limit is given up, and another thread
// takes its place, up to a bound. What the lost one does in the end is nobody's concern any more.
//
// Handlers that compute want about as many threads as there are cores, those that block want one each, and nobody says
// which they are. So a few threads are begun at once, and more only when jobs wait although no handler is quick: a long
// queue of quick handlers is emptied sooner without them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure {

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
  struct Options {
    /// Of its threads.
    std::string name;
    /// So many threads are begun as soon as a job finds no free one.
    unsigned eager;
    /// Up to so many when jobs have waited for kPatience. No more jobs than that run at once.
    unsigned most;
    /// So many more in the place of those that hang.
    unsigned spare;
  };
  /// How long a job waits before another thread is begun beyond the eager ones.
  static constexpr Duration kPatience = std::chrono::milliseconds(2);

  HandlerPool(Scheduler& scheduler, Options options);
  ~HandlerPool();

  void run(Job job) PERDURE_EXCLUDES(mutex_);
  /// The same for many at once, which begin in this order: wakes no more threads than the eager ones, and others only
  /// for jobs that have waited for kPatience.
  void run_many(std::vector<Job> jobs) PERDURE_EXCLUDES(mutex_);
  /// Changes how many jobs may run at once; 0 lets none begin. Those that run over it end in peace, and threads that
  /// are not needed any more stay, for the next time.
  void set_most(unsigned most) PERDURE_EXCLUDES(mutex_);
  /// Takes no more jobs, and drops those that have not begun. `idle` is called once nothing runs but what is given
  /// up.
  void close(Task idle) PERDURE_EXCLUDES(mutex_);
  /// Gives up whatever runs.
  void leave_behind() PERDURE_EXCLUDES(mutex_);
  /// Blocks until every job has ended or was given up. Not on one of its own threads.
  void wait() PERDURE_EXCLUDES(mutex_);
  /// Joins the threads, but leaves those that hang behind, and the one that this is called on.
  void join() PERDURE_EXCLUDES(mutex_);
  /// Whether nothing runs or waits, but what is given up.
  bool idle() PERDURE_EXCLUDES(mutex_);
  /// How many handlers have been given up, and have not come back.
  std::size_t hanging() PERDURE_EXCLUDES(mutex_);
  /// Whether this thread is running a handler: what would wait for another is refused there.
  static bool runs_here();

 private:
  struct Lane {
    const std::size_t index;
    std::unique_ptr<Executor> executor;
    bool busy = false;
    bool given_up = false;
    SteadyTime deadline = SteadyTime::max();
    Task overrun = {};
  };
  struct Queued {
    Job job;
    SteadyTime since;
  };

  void work(Lane& lane) PERDURE_EXCLUDES(mutex_);
  void take_job(Lane& lane, Job& job) PERDURE_REQUIRES(mutex_);
  void begin(Lane& lane) PERDURE_REQUIRES(mutex_);
  /// Begins eager threads for the jobs that wait.
  void begin_eagerly() PERDURE_REQUIRES(mutex_);
  /// How many may be busy, with those that hang.
  std::size_t busy_max() PERDURE_REQUIRES(mutex_);
  /// One that is not busy, or a new one if there are fewer than `threads`; null if there may be no more.
  Lane* free_lane(std::size_t threads) PERDURE_REQUIRES(mutex_);
  bool add_lane() PERDURE_REQUIRES(mutex_);
  void watch(SteadyTime deadline) PERDURE_REQUIRES(mutex_);
  void check() PERDURE_EXCLUDES(mutex_);
  /// Sees to it that the pool grows if the jobs that wait now still do so in a while.
  void watch_queue(Duration patience) PERDURE_REQUIRES(mutex_);
  void check_queue() PERDURE_EXCLUDES(mutex_);
  static void keep_for_ever(std::unique_ptr<Lane> lane);
  bool is_idle() PERDURE_REQUIRES(mutex_);
  /// Those who wait for it, if nothing runs any more.
  std::vector<Task> take_idle() PERDURE_REQUIRES(mutex_);

  Scheduler& scheduler_;
  const std::string name_;
  const std::size_t eager_;
  const std::size_t spare_;

  Mutex mutex_;
  std::size_t most_ PERDURE_GUARDED_BY(mutex_);
  std::deque<Queued> queue_ PERDURE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Lane>> lanes_ PERDURE_GUARDED_BY(mutex_);
  /// The lanes that are not busy. The first is taken first, so that those which were once too many rest.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_ PERDURE_GUARDED_BY(mutex_);
  std::size_t busy_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// Of those that are busy: begun, but their threads have not come yet.
  std::size_t coming_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// Of those that are busy: given up.
  std::size_t hanging_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// Jobs taken from the queue since it is watched.
  std::size_t taken_ PERDURE_GUARDED_BY(mutex_) = 0;
  bool queue_watched_ PERDURE_GUARDED_BY(mutex_) = false;
  SteadyTime watched_until_ PERDURE_GUARDED_BY(mutex_) = SteadyTime::max();
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<Task> idle_ PERDURE_GUARDED_BY(mutex_);
  CondVar changed_;
};

}  // namespace perdure
