// Virtual time.
//
// One thread, a clock that moves only when nothing is ready, and a seed that picks which of the ready tasks runs next.
// Code that is driven by a Scheduler runs here unchanged: the same seed gives the same order of tasks, the same times
// and the same trace hash, and another seed another order that a pool of threads might have taken too.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/random.h"
#include "runtime/scheduler.h"

namespace perdure::sim {

class SimScheduler final : public Scheduler {
 public:
  explicit SimScheduler(std::uint64_t seed);
  ~SimScheduler() override;

  void post(Task task) override;
  TimerId at(SteadyTime when, Task task) override;
  bool cancel(TimerId timer) override;
  SteadyTime now() override { return now_; }
  /// Begins at a fixed date; moves with virtual time, and may be made to jump.
  WallTime wall_now() override { return WallTime(now_.time_since_epoch()) + wall_offset_; }
  std::uint64_t random() override { return random_(); }
  bool runs_here() const override { return running_; }
  std::unique_ptr<Executor> lane(std::string name) override;

  /// Runs one task, after moving the clock to the next timer if nothing is ready. False if there was nothing to run.
  bool step();
  /// Runs until nothing is left or `steps_max` tasks have run. True if nothing is left.
  bool run(std::uint64_t steps_max = 10'000'000);
  /// Moves the wall clock alone, in either direction.
  void jump_wall_clock(Duration by) { wall_offset_ += by; }

  std::uint64_t steps() const { return steps_; }
  /// Depends on which tasks ran, in what order and when: equal for equal seeds.
  std::uint64_t trace_hash() const { return trace_; }

 private:
  class Lane;
  struct Ready {
    std::uint64_t number;
    Task task;
  };
  /// Tasks that may run in any order (the pool), or only first to last (a lane).
  struct Queue {
    enum class Order { kAny, kFirstIn } order;
    std::deque<Ready> tasks;
  };
  using TimerKey = std::pair<SteadyTime, TimerId>;
  struct Timer {
    Queue* queue;
    Task task;
  };

  void post_to(Queue& queue, Task task);
  TimerId at_on(Queue& queue, SteadyTime when, Task task);
  void promote_due_timers();
  Ready take_next();

  Random random_;
  SteadyTime now_;
  Duration wall_offset_;
  /// The pool first, then the lanes; lanes that are gone leave a hole.
  std::vector<std::unique_ptr<Queue>> queues_;
  std::map<TimerKey, Timer> timers_;
  std::map<TimerId, SteadyTime> due_;
  std::uint64_t last_number_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t trace_ = 0;
  bool running_ = false;
};

}  // namespace perdure::sim
