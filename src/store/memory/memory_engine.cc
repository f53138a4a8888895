#include "store/memory/memory_engine.h"

namespace perdure::memory {

MemoryEngine::MemoryEngine(Scheduler& scheduler) : MemoryEngine(scheduler, std::make_shared<MemoryRows>()) {}

MemoryEngine::MemoryEngine(Scheduler& scheduler, std::shared_ptr<MemoryRows> rows)
    : capabilities_{.name = "memory", .limits = {}, .durable = false},
      rows_(std::move(rows)),
      lane_(scheduler.lane("perdure-commit")) {}

Result<std::unique_ptr<Snapshot>> MemoryEngine::snapshot() {
  return rows_->snapshot();
}

void MemoryEngine::when_durable(std::uint64_t, std::move_only_function<void(Result<void>)> then) {
  lane_->post([then = std::move(then)]() mutable { then({}); });
}

void MemoryEngine::commit(CommitJob& job) {
  lane_->post([this, &job] { run(job); });
}

void MemoryEngine::run(CommitJob& job) {
  auto commit = rows_->begin();
  auto applied = job.apply(*commit);
  if (applied && *applied == Applied::kSomething) rows_->install(*commit);
  job.done(applied ? Result<void>() : Result<void>(std::unexpected(std::move(applied.error()))));
}

Result<VerifyReport> MemoryEngine::verify(const std::function<void(double)>& progress) {
  VerifyReport report = rows_->verify();
  if (progress) progress(1);
  return report;
}

Result<void> MemoryEngine::backup(const std::string&) {
  return fail(ErrorCode::kInvalidArgument, "a memory: store has nothing to back up; use lmdb:DIR");
}

}  // namespace perdure::memory
