// One simulated world: nodes on one store, a workload on the nodes, and faults.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/fault_plan.h"
#include "sim/sim_node.h"
#include "sim/workload.h"

namespace perdure::sim {

/// What came of a run.
struct RunOutcome {
  /// What must not be, in words; empty if all is well.
  std::vector<std::string> violations;
  std::uint64_t trace_hash = 0;
  std::vector<std::string> trace;
  std::uint64_t operations = 0;
  std::uint64_t steps = 0;
  Duration virtual_time = {};
  FaultCounts faults{};
};

/// Writes what a workload begins with.
class Setup {
 public:
  explicit Setup(World& world) : world_(world) {}
  /// Commits; there is nothing that could go wrong.
  void transact(std::function<void(Transaction&)> body);

 private:
  World& world_;
};

class World {
 public:
  using MakeWorkload = std::function<std::unique_ptr<Workload>(World&)>;

  /// With the workload that the scenario names.
  World(const Scenario& scenario, std::uint64_t seed, RunShape shape, Trace::Keep keep = Trace::Keep::kHash);
  /// With any other.
  World(const Scenario& scenario, std::uint64_t seed, RunShape shape, const MakeWorkload& make_workload,
        Trace::Keep keep);
  ~World();

  RunOutcome run();

  // For runs that are led step by step from outside, instead of `run`.
  void start();
  /// Until then, or until `enough`, or until something is wrong. Whether `enough`.
  bool run_until(SteadyTime when, const std::function<bool()>& enough = {});
  /// A fault that begins now, whatever its start says.
  void inject(FaultEvent event);
  /// Ends all faults, and begins none of those that the plan still has.
  void heal();
  /// Shows `look` what is in the store now, on a store that blocks for nothing. Not inside a body.
  void observe(const std::function<void(Store&)>& look);
  const std::vector<std::string>& violations() const { return outcome_.violations; }
  const Trace& trace() { return timeline_.trace(); }

  // For workloads.
  SteadyTime now() const { return timeline_.now(); }
  std::uint64_t seed() const { return seed_; }
  int nodes() const { return shape_.nodes; }
  const StoreTraits& traits() const { return shape_.traits; }
  /// As the scenario gives it, drawn for this run.
  std::int64_t knob(std::string_view name) const;
  /// A line in the trace.
  void note(std::string_view text) { note("world", text); }
  void note(std::string_view who, std::string_view text) { timeline_.trace().note(now(), who, text); }
  /// Something happened that must not be. The run ends.
  void violation(std::string text);
  void count_operation() { ++outcome_.operations; }
  /// Runs `task` in the world, not on a node: for somebody who watches. It may report, but not use a node's store.
  void at(SteadyTime when, Task task) { world_scheduler_.at(when, std::move(task)); }
  /// The node's present life; null while it is down.
  SimNode* node(int index) { return nodes_[static_cast<std::size_t>(index)].get(); }

  // For deadlines that are fair.
  /// Whether the node is up, awake, and reaches the store.
  bool reachable(int index);
  /// Whether at any time since `since` a fault was there that may hold work up for long: a node that was down or
  /// paused, a store that was out of reach, full or slow.
  bool disturbed_since(SteadyTime since) const { return disturbances_ > 0 || last_disturbed_ >= since; }

 private:
  friend class SimNode;
  friend class Setup;

  void set_up();
  void start_node(int index);
  /// The node's engine is severed: it is taken down before the next task runs.
  void has_died(int index);
  /// What a store uses: the engine, or the remote engine on top of it.
  std::unique_ptr<Engine> stack(std::unique_ptr<Engine> engine, Scheduler& scheduler);
  /// What users of the store would see, whatever it is made of.
  std::shared_ptr<memory::MemoryRows> rows(Scheduler& scheduler);
  void crash(int index, Duration back_after);
  void take_down(int index);
  void take_down_the_dead();
  void power_cut(Duration back_after);
  void begin(const FaultEvent& event);
  void end(const FaultEvent& event);
  void disturb() { ++disturbances_; }
  void calm() {
    --disturbances_;
    last_disturbed_ = now();
  }
  void check_at_the_end();
  std::unique_ptr<Workload> make_named_workload();

  const Scenario& scenario_;
  const std::uint64_t seed_;
  const RunShape shape_;
  std::map<std::string, std::int64_t, std::less<>> knobs_;
  RunOutcome outcome_;
  Timeline timeline_;
  ActiveFaults faults_;
  NodeScheduler world_scheduler_;
  SimStore store_;
  std::unique_ptr<Workload> workload_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<int> lives_;
  std::vector<Duration> wall_offsets_;
  std::vector<int> dead_;
  /// How long a node that dies at an armed moment stays down.
  std::vector<Duration> back_after_;
  std::vector<FaultEvent> active_;
  int disturbances_ = 0;
  SteadyTime last_disturbed_;
  /// While it is so, nodes that die come back at once.
  bool healed_ = false;
  bool plan_is_over_ = false;
};

}  // namespace perdure::sim
