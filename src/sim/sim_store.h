// One store that all nodes of a simulated world have open.
//
// It keeps the rows, knows which commits are synced, carries the bells from the node that commits to the others, and
// lets commits that are late arrive. What a node does with it goes through a SimEngine, one for each life of a node.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "sim/active_faults.h"
#include "sim/node_scheduler.h"
#include "store/memory/memory_rows.h"

namespace perdure::sim {

class SimEngine;

/// What kind of engine it is, drawn for each run.
struct StoreTraits {
  /// A database across a network: what is visible is durable, and bodies run before the commit. Otherwise an embedded
  /// store: a commit is visible at once and durable after its sync.
  bool remote = false;
  /// With `remote`: nodes have the remote engine on top, with a server that is made of this store.
  bool replicas = false;
  bool unknown_commits = true;
  /// Whether nodes learn at once that another has died.
  bool knows_deaths = false;
  // The most that each way takes. Every call costs time: with calls that are free, races would vanish.
  Duration request_max = std::chrono::milliseconds(2);
  Duration sync_max = std::chrono::milliseconds(5);
  Duration bell_max = std::chrono::milliseconds(5);
};

class SimStore {
 public:
  /// Its own events are tasks of `world`.
  SimStore(NodeScheduler& world, const StoreTraits& traits, ActiveFaults& faults, Trace& trace, std::uint64_t seed);

  const StoreTraits& traits() const { return traits_; }
  ActiveFaults& faults() { return faults_; }
  Trace& trace() { return trace_; }
  NodeScheduler& world() { return world_; }
  const std::shared_ptr<memory::MemoryRows>& rows() const { return rows_; }
  bool reachable(int node) const {
    return !faults_.degree(FaultClass::kUnavailable, node) && !faults_.degree(FaultClass::kOutage, node);
  }

  // For engines. An id names one life of a node for ever.
  std::uint64_t join(SimEngine& engine);
  /// Nothing of it reaches the store any more, and it hears of nothing.
  void sever(std::uint64_t id);
  bool is_gone(std::uint64_t id) const { return !engines_.contains(id); }
  /// Null once it is severed.
  SimEngine* find(std::uint64_t id) const;

  /// What a commit leads to: whether others hear of it right away is the sender's to do, which may die before.
  enum class Bells { kRung, kForgotten };
  /// Makes the commit visible, starts its sync, and rings. Answers its epoch.
  std::uint64_t install(memory::MemoryCommit& commit, std::uint64_t by, std::vector<std::uint64_t> keys, Bells bells);
  bool is_durable(std::uint64_t epoch) const { return epoch <= durable_epoch_; }
  /// Hands `then` to the lane of the engine once it is, or once the engine is severed.
  void when_durable(std::uint64_t epoch, std::uint64_t id, std::move_only_function<void(Result<void>)> then);
  /// The commit is on its way, and is applied when it arrives if nobody has committed meanwhile.
  void send_late(std::unique_ptr<memory::MemoryCommit> commit, std::uint64_t by, std::vector<std::uint64_t> keys);

  /// Runs `task` a moment after the next commit becomes visible, mostly before it is durable; an empty one takes back
  /// what was asked for.
  void after_next_commit(Task task) { after_next_commit_ = std::move(task); }
  /// Lets the commit of another node that is on its way arrive now, if there is one: what happens to a body between
  /// two of its reads.
  void let_one_arrive(std::uint64_t reader);

  /// Every engine has been severed: commits that were not durable are lost, from a point on that chance picks.
  void power_cut();
  /// Everything visible is durable, and nothing is on its way any more.
  void settle();

 private:
  struct Waiter {
    std::uint64_t epoch;
    std::uint64_t id;
    std::move_only_function<void(Result<void>)> then;
  };
  struct Unsynced {
    std::uint64_t epoch;
    Version version_before;
  };

  void synced(std::uint64_t epoch);
  void ring(std::uint64_t by, Version version, const std::vector<std::uint64_t>& keys, Bells bells);
  void tell_waiters();

  void note(std::string_view what) { trace_.note(world_.now(), "store", what); }

  NodeScheduler& world_;
  const StoreTraits traits_;
  ActiveFaults& faults_;
  Trace& trace_;
  Random random_;
  const std::shared_ptr<memory::MemoryRows> rows_ = std::make_shared<memory::MemoryRows>();
  std::map<std::uint64_t, SimEngine*> engines_;
  std::uint64_t last_id_ = 0;
  std::uint64_t durable_epoch_ = 1;
  std::deque<Unsynced> unsynced_;
  std::vector<Waiter> waiters_;
  Task after_next_commit_;
  /// Grows with each power cut: what was on its way then never arrives.
  std::uint64_t era_ = 0;
};

}  // namespace perdure::sim
