#pragma once

#include <atomic>
#include <map>
#include <set>

#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "store/engine.h"

namespace perdure::memory {

/// Rows in a map, each with the versions that some snapshot may still need. For tests and simulation: it passes the
/// same conformance suite as every engine, and nothing of it outlives the process.
class MemoryEngine final : public Engine {
 public:
  explicit MemoryEngine(Scheduler& scheduler);

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  bool is_durable(std::uint64_t) override { return true; }
  void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) override;
  void commit(CommitJob& job) override;
  void listen(ChangeListener*) override {}
  Result<VerifyReport> verify(const std::function<void(double)>& progress) override;
  Result<void> backup(const std::string& path) override;

 private:
  class View;
  class MemorySnapshot;
  class MemoryCommit;

  /// A row as of an epoch; no value means that it was erased then.
  struct Revision {
    std::uint64_t epoch;
    std::optional<Versioned> row;
  };
  using History = std::vector<Revision>;
  using Rows = std::map<Bytes, History, std::less<>>;

  void run(CommitJob& job);
  void install(MemoryCommit& commit) PERDURE_REQUIRES(mutex_);
  static const Versioned* at(const History& history, std::uint64_t epoch);

  const Capabilities capabilities_;
  Mutex mutex_;
  Rows rows_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t epoch_ PERDURE_GUARDED_BY(mutex_) = 1;
  Version last_version_ PERDURE_GUARDED_BY(mutex_);
  std::multiset<std::uint64_t> open_snapshots_ PERDURE_GUARDED_BY(mutex_);
  std::unique_ptr<Executor> lane_;
};

}  // namespace perdure::memory
