#pragma once

#include <memory>

#include "runtime/scheduler.h"
#include "store/engine.h"
#include "store/memory/memory_rows.h"

namespace perdure::memory {

/// Rows in memory. For tests and simulation: it passes the same conformance suite as every engine, and nothing of it
/// outlives the process.
class MemoryEngine final : public Engine {
 public:
  explicit MemoryEngine(Scheduler& scheduler);
  /// On rows that were made before, and that another engine may use once this one is gone.
  MemoryEngine(Scheduler& scheduler, std::shared_ptr<MemoryRows> rows);

  const Capabilities& capabilities() const override { return capabilities_; }
  bool was_new() const override { return true; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  bool is_durable(std::uint64_t) override { return true; }
  void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) override;
  void commit(CommitJob& job) override;
  void listen(ChangeListener*) override {}
  Result<VerifyReport> verify(const std::function<void(double)>& progress) override;
  Result<void> backup(const std::string& path) override;

 private:
  void run(CommitJob& job);

  const Capabilities capabilities_;
  const std::shared_ptr<MemoryRows> rows_;
  std::unique_ptr<Executor> lane_;
};

}  // namespace perdure::memory
