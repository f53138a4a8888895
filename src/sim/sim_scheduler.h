#pragma once

#include "sim/node_scheduler.h"

namespace perdure::sim {

/// A world of one node, for tests that need virtual time and nothing else.
class SimScheduler final : public Scheduler {
 public:
  explicit SimScheduler(std::uint64_t seed) : timeline_(seed), node_(timeline_, "sim", seed) {}

  void post(Task task) override { node_.post(std::move(task)); }
  TimerId at(SteadyTime when, Task task) override { return node_.at(when, std::move(task)); }
  bool cancel(TimerId timer) override { return node_.cancel(timer); }
  SteadyTime now() override { return node_.now(); }
  WallTime wall_now() override { return node_.wall_now(); }
  std::uint64_t random() override { return node_.random(); }
  bool runs_here() const override { return node_.runs_here(); }
  std::unique_ptr<Executor> lane(std::string name) override { return node_.lane(std::move(name)); }

  /// Runs one task, after moving the clock to the next timer if nothing is ready. False if there was nothing to run.
  bool step() { return timeline_.step(); }
  /// Runs until nothing is left or `steps_max` tasks have run. True if nothing is left.
  bool run(std::uint64_t steps_max = 10'000'000);
  /// Moves the wall clock alone, in either direction.
  void jump_wall_clock(Duration by) { node_.jump_wall_clock(by); }

  std::uint64_t steps() const { return timeline_.steps(); }
  /// Depends on which tasks ran, in what order and when: equal for equal seeds.
  std::uint64_t trace_hash() { return timeline_.trace().hash(); }

 private:
  Timeline timeline_;
  NodeScheduler node_;
};

}  // namespace perdure::sim
