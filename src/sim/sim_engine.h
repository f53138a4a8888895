#pragma once

#include <map>
#include <set>

#include "sim/sim_store.h"
#include "store/engine.h"

namespace perdure::sim {

/// A life of a node as the store sees it: an engine with delays and faults, until it is severed.
class SimEngine final : public Engine {
 public:
  /// `crash` is called when a crash that was armed comes; the engine is severed by then.
  SimEngine(SimStore& store, NodeScheduler& node, int index, std::uint64_t seed, std::function<void()> crash);
  ~SimEngine() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  bool is_durable(std::uint64_t epoch) override { return store_.is_durable(epoch); }
  void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) override;
  void commit(CommitJob& job) override;
  void listen(ChangeListener* listener) override { listener_ = listener; }
  Bytes presence() const override;
  bool is_gone(BytesView presence) override;
  void catch_up(Version reached) override;
  Result<VerifyReport> verify(const std::function<void(double)>& progress) override;
  Result<void> backup(const std::string& path) override;

  /// The node has died: nothing of it reaches the store from now on.
  void sever();
  bool severed() const { return severed_; }
  /// Whether it has a commit that it has not answered.
  bool busy() const { return job_ != nullptr; }
  /// The next commit ends in a crash; or not, after all.
  void arm(std::optional<FaultEvent::Moment> moment) { armed_ = moment; }
  Executor& lane() { return *lane_; }
  int index() const { return index_; }

  /// Whether its commit is between the node and the store.
  bool travels() const { return travels_; }
  /// The writes of the commit reach the rows.
  void arrive();

  // For the store: how bells come.
  void expect_bell(Version version) { untold_.insert(version); }
  void hear(Version version, const std::vector<std::uint64_t>& keys);
  void hear_of_death();

 private:
  class SimSnapshot;

  void after(Duration delay, void (SimEngine::*step)());
  void attempt();
  /// Whether chance takes the commit out of our hands: what its sender is told then.
  std::optional<Error> lose_track();
  void answer(Result<void> outcome);
  void answer_when_durable(std::uint64_t epoch);
  void finish();
  bool crashes(FaultEvent::Moment moment);
  bool reachable() const { return !severed_ && store_.reachable(index_); }
  Error severed_error() const;
  Duration delay(Duration most);
  void note(std::string_view what);

  SimStore& store_;
  NodeScheduler& node_;
  const int index_;
  Random random_;
  const std::function<void()> crash_;
  const Capabilities capabilities_;
  const std::uint64_t id_;
  bool severed_ = false;
  ChangeListener* listener_ = nullptr;
  /// Versions of which others told us nothing yet: their bells are on their way, or lost.
  std::set<Version> untold_;
  std::optional<FaultEvent::Moment> armed_;

  // The commit under way.
  CommitJob* job_ = nullptr;
  std::unique_ptr<memory::MemoryCommit> commit_;
  int attempts_ = 0;
  bool travels_ = false;
  /// Counts attempts, so that the arrival of an earlier one is not taken for that of the present one.
  std::uint64_t journey_ = 0;
  Version base_version_;
  Result<void> outcome_;
  std::unique_ptr<Executor> lane_;
};

}  // namespace perdure::sim
