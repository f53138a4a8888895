// The seam between perdure and time.
//
// Nothing above this folder owns a thread, sleeps, reads a clock or draws a random number: it asks a Scheduler. In
// production that is a pool of threads (thread_pool.h); in simulation it is one thread with virtual time which picks
// the next task by seed, so that the very code that ships runs under replayable schedules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "perdure/time.h"

namespace perdure {

using Task = std::move_only_function<void()>;

/// Runs tasks. Thread-safe; never runs a task inside the call that hands it over.
class Executor {
 public:
  /// Names a timer for as long as it has not run; 0 is none.
  using TimerId = std::uint64_t;

  virtual ~Executor() = default;
  virtual void post(Task task) = 0;
  /// Runs `task` at `when` or as soon after as there is a thread for it.
  virtual TimerId at(SteadyTime when, Task task) = 0;
  /// True if the timer will not run; false if it has run, is running, or is unknown.
  virtual bool cancel(TimerId timer) = 0;
};

class Scheduler : public Executor {
 public:
  virtual SteadyTime now() = 0;
  virtual WallTime wall_now() = 0;
  virtual std::uint64_t random() = 0;

  /// Whether the caller is itself a task of this scheduler.
  virtual bool runs_here() const = 0;

  /// An executor of its own that runs one task at a time, in the order of posting, and may block without holding up
  /// anybody else (in production: a thread). Destroying it runs what was posted, drops timers, and waits.
  virtual std::unique_ptr<Executor> lane(std::string name) = 0;
};

/// The scheduler with threads whose task this thread is running; null outside of tasks. Unlike runs_here it can be
/// compared with one that may be gone already.
const Scheduler* current_scheduler();

/// While it lives, this thread counts as running a task of `scheduler`.
class RunningOn {
 public:
  explicit RunningOn(const Scheduler& scheduler);
  ~RunningOn();
  RunningOn(const RunningOn&) = delete;
  RunningOn& operator=(const RunningOn&) = delete;

 private:
  const Scheduler* const before_;
};

}  // namespace perdure
