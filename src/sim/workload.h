// Workloads: what nodes do in a simulated world, and what must hold of it.
//
// A workload is one .cc file that registers itself, and a scenario file that says under which faults it runs:
//
//   class Ring final : public ClientWorkload { ... };
//   const RegisterWorkload kRing({"ring", "what it does", {{"clients", {1, 4}, "on each node"}}, make<Ring>});
//
// The life of one, for a run:
//
//   setup { start(node) | node_stopped(node) } [ quiesce { idle } ] check
//
// Everything that it does on nodes is asynchronous: Store::transact_async and the node's Scheduler, never a call that
// blocks. It runs on one thread, so its own state needs no locks; that state stands outside of the simulated world and
// outlives crashes, as the notes of somebody who watches.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario.h"

namespace perdure {
class Store;
}

namespace perdure::sim {

class World;
class SimNode;
class Setup;

class Workload {
 public:
  virtual ~Workload() = default;

  /// Before any node starts and without faults: writes what the workload begins with.
  virtual void setup(Setup& setup) { (void)setup; }
  /// A life of a node has begun. `node` stays until after its node_stopped.
  virtual void start(SimNode& node) = 0;
  /// The node is dead: nothing it does reaches the store any more. Called right before what is left of its tasks is run
  /// apart from the world; calls that are under way are then answered, mostly with kCommitUnknown. Drop what holds the
  /// store, and start nothing new for a node that is not alive().
  virtual void node_stopped(SimNode& node) { (void)node; }
  /// Its calls have been answered and its store is closed: the last moment in which it is there.
  virtual void node_gone(SimNode& node) { (void)node; }
  /// Liveness only: the faults are over. Start no new work, and bring what there is to its end.
  virtual void quiesce() {}
  /// Liveness only: whether everything has come to its end.
  virtual bool idle() const { return true; }
  /// After all nodes have stopped: reads `store`, which blocks for nothing, and reports what is wrong to the world.
  virtual void check(Store& store) = 0;
};

struct KnobInfo {
  std::string_view name;
  NumberRange range;  ///< If the scenario does not say.
  std::string_view what;
};

struct WorkloadInfo {
  std::string_view name;
  std::string_view what;
  std::vector<KnobInfo> knobs;
  std::unique_ptr<Workload> (*make)(World& world);
};

class RegisterWorkload {
 public:
  explicit RegisterWorkload(WorkloadInfo info);
};

template <class T>
std::unique_ptr<Workload> make(World& world) {
  return std::make_unique<T>(world);
}

/// Null if there is none of that name.
const WorkloadInfo* find_workload(std::string_view name);
/// "bank, ring", for messages.
std::string workload_names();

}  // namespace perdure::sim
