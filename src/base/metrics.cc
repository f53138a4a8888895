#include "perdure/metrics.h"

#include <array>

#include "base/assert.h"

namespace perdure {
namespace {

using enum Metric;
using enum MetricKind;

constexpr std::string_view kOutcomes[] = {"committed", "refused", "unknown"};

// clang-format off
constexpr std::array kTable = {
    MetricInfo{kCommits,           kCounter,   "perdure_commits_total",           "Transactions whose commit has ended, by outcome.", "outcome", kOutcomes},
    MetricInfo{kConflicts,         kCounter,   "perdure_conflicts_total",         "Runs of transactions that were beaten by others, and repeated.", {}, {}},
    MetricInfo{kCommitDuration,    kHistogram, "perdure_commit_duration_seconds", "From handing a batch to the engine until its outcome, other processes' commits included.", {}, {}},
    MetricInfo{kSyncDuration,      kHistogram, "perdure_sync_duration_seconds",   "Writing one batch to the disk and syncing it.", {}, {}},
    MetricInfo{kBatchTransactions, kHistogram, "perdure_batch_transactions",      "Transactions in one batch.", {}, {}},
    MetricInfo{kBatchesRemade,     kCounter,   "perdure_batches_remade_total",    "Batches made again because another process had committed first.", {}, {}},
    MetricInfo{kStoreBytes,        kGauge,     "perdure_store_bytes",             "Bytes of the data file that are in use or were.", {}, {}},
    MetricInfo{kPeerDeaths,        kCounter,   "perdure_peer_deaths_total",       "Other processes found to have ended without closing the store.", {}, {}},
    MetricInfo{kLeasesLost,        kCounter,   "perdure_leases_lost_total",       "Leases that were held by sessions when they were lost.", {}, {}},
    MetricInfo{kScheduleMissed,    kCounter,   "perdure_schedule_missed_total",   "Nominal times of schedules that became no event of their own because nobody was there.", {}, {}},
    MetricInfo{kStartDelay,        kHistogram, "perdure_start_delay_seconds",     "From when an event could be claimed until it was.", {}, {}},
    MetricInfo{kAttemptDuration,   kHistogram, "perdure_attempt_duration_seconds", "From the claim of an event until it was completed, failed, released or lost.", {}, {}},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<std::size_t>(kTable[i].metric) != i) return false;
  return kTable.back().metric == kAttemptDuration;
}
static_assert(in_order(), "the table of metrics has one row per metric, in the order of the enum");

}  // namespace

const MetricInfo& info(Metric metric) {
  auto index = static_cast<std::size_t>(metric);
  check(index < kTable.size(), "a metric outside of the table");
  return kTable[index];
}

std::span<const MetricInfo> metric_table() {
  return kTable;
}

MetricsSink::~MetricsSink() = default;

}  // namespace perdure
