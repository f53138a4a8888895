#pragma once

#include <vector>

#include "sim/history.h"
#include "sim/world.h"

namespace perdure::sim {

/// A workload of clients that each do one operation after another, with a pause in between. It needs the knobs
/// kClientsKnob and kThinkKnob.
class ClientWorkload : public Workload {
 public:
  explicit ClientWorkload(World& world);

  void start(SimNode& node) override;
  void node_stopped(SimNode& node) override;
  void quiesce() override { quiescing_ = true; }
  bool idle() const override;

 protected:
  using Done = std::move_only_function<void()>;
  /// Does one operation of one client. Calls `done` once it has its answer.
  virtual void operate(SimNode& node, std::uint64_t client, Done done) = 0;

  World& world() { return world_; }
  /// Of a body that may be run inside the commit, or not, as chance has it; with a timeout that matters at times.
  static TransactOptions draw_options(SimNode& node);

 private:
  void loop(SimNode& node, std::uint64_t client);

  World& world_;
  const std::uint64_t clients_;
  const Duration think_max_;
  bool quiescing_ = false;
  /// Operations without their answer, for the present life of each node.
  std::vector<std::uint64_t> under_way_;
};

inline const KnobInfo kClientsKnob{"clients", {1, 3}, "clients on each node"};
inline const KnobInfo kThinkKnob{"think_ms", {300, 3000}, "the longest pause between a client's operations"};

/// How an operation ended, as its client knows.
template <class T>
Ending ending_of(const Result<T>& result) {
  if (result) return Ending::kOk;
  return result.error().outcome() == Outcome::kNone ? Ending::kFail : Ending::kUnknown;
}

}  // namespace perdure::sim
