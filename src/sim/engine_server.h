// A server for the remote engine that is itself on an engine: its log and its rows are rows there.
//
// On a SimEngine, the remote engine that ships runs under all faults of the simulation: commits that are lost, late or
// applied without an answer, stores that cannot be reached, bells that do not ring, and nodes that die in between.
#pragma once

#include <deque>
#include <memory>

#include "store/remote/server_link.h"

namespace perdure::sim {

/// Not thread-safe: for one thread, or where nothing is asked of it at once.
class EngineServer final : public remote::ServerLink, private ChangeListener {
 public:
  explicit EngineServer(std::unique_ptr<Engine> engine);
  ~EngineServer() override;

  const remote::ServerLimits& limits() const override { return limits_; }
  bool unknown_appends() const override { return engine_->capabilities().unknown_commits; }
  bool blocking_calls() const override { return engine_->capabilities().blocking_calls; }
  Result<remote::Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override;
  void append(const remote::LogEnd& expected, const remote::LogEntry& entry, AppendDone done) override;
  void fold(const remote::Fold& fold, FoldDone done) override;
  void ask_for_turn() override;
  void listen(remote::Bell bell) override;

 private:
  class Write;
  class Append;
  class FoldRows;
  class AskForTurn;

  // ChangeListener
  void keys_changed(std::span<const std::uint64_t> key_hashes) override;
  void anything_changed() override;

  /// One at a time, as engines want them.
  void commit(std::unique_ptr<Write> write);
  void next();

  const std::unique_ptr<Engine> engine_;
  const remote::ServerLimits limits_;
  remote::Bell bell_;
  std::deque<std::unique_ptr<Write>> writes_;
};

}  // namespace perdure::sim
