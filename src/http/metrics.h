// What the daemon counts and measures, as Prometheus reads it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/api.h"
#include "perdure/metrics.h"
#include "perdure/uuid.h"
#include "runtime/mutex.h"

namespace perdure::http {

/// The text format of Prometheus, line by line.
class Exposition {
 public:
  /// Labels as they stand between the braces: `worker="mail"`.
  void begin(std::string_view name, std::string_view kind, std::string_view help);
  void sample(std::string_view name, std::string_view labels, double value);
  std::string take() { return std::move(text_); }
  static std::string label(std::string_view name, std::string_view value);

 private:
  std::string text_;
};

/// Takes the store's metrics and those of requests. Thread-safe.
class Metrics : public MetricsSink {
 public:
  Metrics();
  void add(const MetricInfo& metric, std::string_view label, std::uint64_t count) override PERDURE_EXCLUDES(mutex_);
  void set(const MetricInfo& metric, double value) override PERDURE_EXCLUDES(mutex_);
  void observe(const MetricInfo& metric, double value) override PERDURE_EXCLUDES(mutex_);
  void served(const Served& served) PERDURE_EXCLUDES(mutex_);

  void write(Exposition& out) PERDURE_EXCLUDES(mutex_);

 private:
  struct Histogram {
    static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                           0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   5.0,  10.0};
    std::array<std::uint64_t, kBounds.size() + 1> counts = {};
    double sum = 0;
    void add(double value);
    void write(Exposition& out, std::string_view name, const std::string& labels) const;
  };
  Mutex mutex_;
  std::map<std::pair<Metric, std::string>, std::uint64_t> counters_ PERDURE_GUARDED_BY(mutex_);
  std::map<Metric, double> gauges_ PERDURE_GUARDED_BY(mutex_);
  std::map<Metric, Histogram> histograms_ PERDURE_GUARDED_BY(mutex_);
  /// By the labels: there are as many as routes and statuses.
  std::map<std::string, Histogram> requests_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::http
