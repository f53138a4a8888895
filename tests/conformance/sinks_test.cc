// What the store tells its host, and what the host may do while it is told.
#include <algorithm>
#include <map>

#include "conformance/conformance.h"
#include "conformance/faulty_engine.h"

namespace perdure::conformance {
namespace {

/// "commits_total/committed" -> how much, or how often.
class Recorder final : public MetricsSink {
 public:
  void add(const MetricInfo& metric, std::string_view label, std::uint64_t count) override {
    EXPECT_EQ(metric.kind, MetricKind::kCounter);
    EXPECT_EQ(label.empty(), metric.label_values.empty());
    EXPECT_EQ(std::ranges::count(metric.label_values, label), label.empty() ? 0 : 1) << label;
    note(metric, label, static_cast<double>(count));
  }
  void set(const MetricInfo& metric, double value) override {
    EXPECT_EQ(metric.kind, MetricKind::kGauge);
    EXPECT_GT(value, 0);
    note(metric, "", 1);
  }
  void observe(const MetricInfo& metric, double value) override {
    EXPECT_EQ(metric.kind, MetricKind::kHistogram);
    EXPECT_GE(value, 0);
    note(metric, "", 1);
  }
  double operator[](const std::string& name) {
    MutexLock lock(mutex_);
    return values_[name];
  }

 private:
  void note(const MetricInfo& metric, std::string_view label, double by) {
    MutexLock lock(mutex_);
    values_[std::string(metric.name) + (label.empty() ? "" : "/") + std::string(label)] += by;
  }

  Mutex mutex_;
  std::map<std::string, double> values_ PERDURE_GUARDED_BY(mutex_);
};

TEST(MetricTable, NamesAreUniqueAndSaySoInTheirUnits) {
  std::map<std::string_view, int> names;
  for (const MetricInfo& metric : metric_table()) {
    EXPECT_EQ(&info(metric.metric), &metric);
    EXPECT_EQ(++names[metric.name], 1) << metric.name;
    EXPECT_TRUE(metric.name.starts_with("perdure_")) << metric.name;
    EXPECT_EQ(metric.kind == MetricKind::kCounter, metric.name.ends_with("_total")) << metric.name;
    EXPECT_TRUE(metric.help.ends_with(".")) << metric.name;
    EXPECT_EQ(metric.label_name.empty(), metric.label_values.empty()) << metric.name;
  }
}

TEST_P(Conformance, MetricsCountWhatHappened) {
  auto recorder = std::make_shared<Recorder>();
  StoreOptions options;
  options.metrics = recorder;
  reopen(options);
  set("a", "1");
  Bytes text = "not eight bytes";
  set("text", text);
  EXPECT_FALSE(store().transact([](Transaction& txn) { txn.add("text", 1); }));
  int runs = runs_against([](Transaction& txn) { (void)txn.get("a"); }, [](Transaction& txn) { txn.set("a", "2"); });
  EXPECT_EQ(runs, 2);
  close();
  Recorder& seen = *recorder;
  EXPECT_EQ(seen["perdure_commits_total/committed"], 4);
  EXPECT_EQ(seen["perdure_commits_total/refused"], 1);
  EXPECT_EQ(seen["perdure_commits_total/unknown"], 0);
  EXPECT_EQ(seen["perdure_conflicts_total"], 1);
  EXPECT_EQ(seen["perdure_commit_duration_seconds"], seen["perdure_batch_transactions"]);
  EXPECT_GE(seen["perdure_batch_transactions"], 4);
  if (capabilities().durable && capabilities().name == "lmdb") {
    EXPECT_EQ(seen["perdure_sync_duration_seconds"], 4);
    EXPECT_EQ(seen["perdure_store_bytes"], 4);
  }
}

TEST_P(Conformance, FailedStoreTellsTheLogOnceThenOnFatalAndRefusesCalls) {
  std::vector<std::string> told;
  StoreOptions options;
  Result<void> used_inside, closed_inside;
  options.log = [&](const LogRecord& record) {
    if (record.level != LogLevel::kError) return;
    told.push_back("log " + std::string(record.component) + ": " + std::string(record.message));
    used_inside = store().transact([](Transaction& txn) { txn.set("b", "1"); });
    closed_inside = store().close();
    throw std::runtime_error("a sink that fails");
  };
  options.on_fatal = [&](const Error& error) { told.push_back("on_fatal " + std::string(error.name())); };
  options.when_failed = WhenFailed::kRefuseCalls;
  FaultScript script;
  close();
  open_on(std::make_unique<FaultyEngine>(make_engine(), script), options);
  script.then({Fault::kFails});
  EXPECT_EQ(error_of(store().transact([](Transaction& txn) { txn.set("a", "1"); })).code, ErrorCode::kCommitUnknown);
  EXPECT_EQ(error_of(store().transact([](Transaction& txn) { txn.set("a", "1"); })).code, ErrorCode::kStoreFailed);
  must(store().close());
  EXPECT_EQ(told, (std::vector<std::string>{"log store: the store has failed, and writes nothing more",
                                            "on_fatal store_failed"}));
  EXPECT_EQ(error_of(used_inside).code, ErrorCode::kInvalidArgument) << "a sink must not use the store";
  EXPECT_EQ(error_of(closed_inside).code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::conformance
