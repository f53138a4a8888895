// What perdure counts and measures, for the host's own system of metrics. Names, kinds and labels are those of
// Prometheus; each label has few, fixed values, and is never an id.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "perdure/export.h"

namespace perdure {

enum class MetricKind {
  kCounter,    ///< Only grows: MetricsSink::add.
  kGauge,      ///< Is what it was last set to: MetricsSink::set.
  kHistogram,  ///< Single observations, whose spread matters: MetricsSink::observe.
};

enum class Metric {
  kCommits,
  kConflicts,
  kCommitDuration,
  kSyncDuration,
  kBatchTransactions,
  kBatchesRemade,
  kStoreBytes,
  kPeerDeaths,
  kLeasesLost,
  kScheduleMissed,
  kStartDelay,
  kAttemptDuration,
};

/// One row of the table of metrics.
struct MetricInfo {
  Metric metric;
  MetricKind kind;
  std::string_view name;  ///< "perdure_commits_total"
  std::string_view help;  ///< What it means, one sentence.
  std::string_view label_name;
  std::span<const std::string_view> label_values;  ///< All there are; empty if it has no label.
};

/// The row of `metric`, and the whole table in the order of the enum: what a host may register beforehand.
PERDURE_EXPORT const MetricInfo& info(Metric metric);
PERDURE_EXPORT std::span<const MetricInfo> metric_table();

/// Where a store's metrics go. Calls come on the store's threads, and perhaps on several at once; they should take no
/// longer than a few hundred nanoseconds, and must neither throw nor use the store. `label` is one of the metric's
/// label_values, empty if it has none.
class PERDURE_EXPORT MetricsSink {
 public:
  virtual ~MetricsSink();
  virtual void add(const MetricInfo& metric, std::string_view label, std::uint64_t count) = 0;
  virtual void set(const MetricInfo& metric, double value) = 0;
  /// Durations are in seconds.
  virtual void observe(const MetricInfo& metric, double value) = 0;
};

}  // namespace perdure
