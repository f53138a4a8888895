// What the committer tells the sinks.
#include "base/assert.h"
#include "store/committer.h"
#include "store/report.h"

namespace perdure {
namespace {

/// A commit that takes this long is worth a record, and this often at most.
constexpr Duration kSlow = std::chrono::seconds(1);
constexpr Duration kSlowRecordEvery = std::chrono::minutes(1);

}  // namespace

void Committer::report_batch(std::size_t transactions, Duration took, SteadyTime now) {
  observe(options_, Metric::kCommitDuration, seconds(took));
  observe(options_, Metric::kBatchTransactions, static_cast<double>(transactions));
  if (took < kSlow) return;
  {
    MutexLock lock(mutex_);
    if (now < slow_record_from_) return;
    slow_record_from_ = now + kSlowRecordEvery;
  }
  auto ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  log(options_, LogLevel::kWarning, "store", "a commit was slow: the disk is busy, or another process held the store",
      {{"duration_ms", ms}, {"transactions", std::to_string(transactions)}});
}

void Committer::report_outcomes(const std::vector<Delivery>& deliveries) const {
  if (!options_.metrics) return;
  std::uint64_t committed = 0, refused = 0, unknown = 0, beaten = 0;
  for (const Delivery& delivery : deliveries) {
    const auto* answer = std::get_if<Result<Receipt>>(&delivery.what);
    if (!answer)
      ++beaten;
    else if (*answer) {
      ++committed;
      for (auto [metric, duration] : delivery.call->state().observed()) observe(options_, metric, seconds(duration));
    } else if (answer->error().code == ErrorCode::kCommitUnknown)
      ++unknown;
    else
      ++refused;
  }
  count(options_, Metric::kConflicts, beaten);
  count(options_, Metric::kCommits, committed, "committed");
  count(options_, Metric::kCommits, refused, "refused");
  count(options_, Metric::kCommits, unknown, "unknown");
}

void Committer::report_failure(const Error& error) {
  log(options_, LogLevel::kError, "store", "the store has failed, and writes nothing more", {{"error", error.message}});
  if (options_.on_fatal) {
    InSink mark;
    options_.on_fatal(error);
  }
  if (options_.when_failed == WhenFailed::kAbort) die("the store failed: " + error.message);
}

}  // namespace perdure
