#pragma once

#include <string>

#include "perdure/store.h"
#include "sim/node_scheduler.h"
#include "sim/sim_engine.h"
#include "sim/streams.h"

namespace perdure::sim {

class World;

/// One life of a node, as workloads see it.
class SimNode {
 public:
  SimNode(World& world, int index, int life);
  ~SimNode();
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  World& world() { return world_; }
  int index() const { return index_; }
  /// 1 for the first life of a node, 2 after its first crash, and so on.
  int life() const { return life_; }
  /// "n2.1", node and life.
  const std::string& name() const { return scheduler_.name(); }
  Store& store() { return store_; }
  NodeScheduler& scheduler() { return scheduler_; }
  /// A stream of this life's own.
  Random& random() { return random_; }
  /// False from its crash on: calls that are answered afterwards are answered to nobody.
  bool alive() const { return !engine_->severed(); }
  SteadyTime started() const { return started_; }
  /// What a session does when it has been renewed: lost bells show here.
  void catch_up(Version reached) { top_->catch_up(reached); }

 private:
  friend class World;
  /// Runs what is left of it apart from the world, and closes its store.
  void finish();

  World& world_;
  const int index_;
  const int life_;
  const SteadyTime started_;
  NodeScheduler scheduler_;
  Random random_;
  /// The store's, until that is closed. What the store uses stands on top of it, or is the same.
  SimEngine* const engine_;
  Engine* const top_;
  Store store_;
};

}  // namespace perdure::sim
