// Virtual time.
//
// One thread, one clock that moves only when nothing is ready, and one seed that picks which of the ready tasks runs
// next, among those of all nodes. Code that is driven by a Scheduler runs here unchanged: the same seed gives the same
// order of tasks, the same times and the same trace hash, and another seed another order that threads on several
// machines might have taken too.
#pragma once

#include <vector>

#include "runtime/random.h"
#include "sim/trace.h"

namespace perdure::sim {

class NodeScheduler;

class Timeline {
 public:
  explicit Timeline(std::uint64_t seed, Trace::Keep keep = Trace::Keep::kHash);

  SteadyTime now() const { return now_; }
  /// Runs one task, after moving the clock to the next timer if nothing is ready. False if there is nothing to run up
  /// to `until`; the clock then stands there, or where it was if there is nothing at all and `until` is the end of
  /// time.
  bool step(SteadyTime until = SteadyTime::max());

  std::uint64_t steps() const { return steps_; }
  bool in_task() const { return running_ != nullptr; }
  Trace& trace() { return trace_; }

 private:
  friend class NodeScheduler;

  Random random_;
  SteadyTime now_ = kBeginning;
  /// In the order in which they came. They take themselves out.
  std::vector<NodeScheduler*> nodes_;
  NodeScheduler* running_ = nullptr;
  std::uint64_t steps_ = 0;
  Trace trace_;
};

}  // namespace perdure::sim
