#include "http/metrics.h"

#include <algorithm>
#include <charconv>

namespace perdure::http {
namespace {

std::string text_of(double value) {
  std::array<char, 32> out{};
  auto [end, error] = std::to_chars(out.data(), out.data() + out.size(), value);
  return {out.data(), end};
}

std::string joined(const std::string& labels, std::string_view more) {
  return labels.empty() ? std::string(more) : labels + "," + std::string(more);
}

}  // namespace

void Exposition::begin(std::string_view name, std::string_view kind, std::string_view help) {
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(kind).append("\n");
}

void Exposition::sample(std::string_view name, std::string_view labels, double value) {
  text_.append(name);
  if (!labels.empty()) text_.append("{").append(labels).append("}");
  text_.append(" ").append(text_of(value)).append("\n");
}

std::string Exposition::label(std::string_view name, std::string_view value) {
  std::string out(name);
  out += "=\"";
  for (char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

void Metrics::Histogram::add(double value) {
  auto bound = std::ranges::lower_bound(kBounds, value);
  ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  sum += value;
}

void Metrics::Histogram::write(Exposition& out, std::string_view name, const std::string& labels) const {
  std::uint64_t total = 0;
  std::string bucket = std::string(name) + "_bucket";
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    std::string bound = i < kBounds.size() ? text_of(kBounds[i]) : "+Inf";
    out.sample(bucket, joined(labels, Exposition::label("le", bound)), static_cast<double>(total));
  }
  out.sample(std::string(name) + "_sum", labels, sum);
  out.sample(std::string(name) + "_count", labels, static_cast<double>(total));
}

Metrics::Metrics() {
  // What has not happened yet is 0, and not unknown.
  MutexLock lock(mutex_);
  for (const MetricInfo& info : metric_table()) {
    if (info.kind != MetricKind::kCounter) continue;
    if (info.label_values.empty()) counters_[{info.metric, ""}] = 0;
    for (std::string_view value : info.label_values) counters_[{info.metric, std::string(value)}] = 0;
  }
}

void Metrics::add(const MetricInfo& metric, std::string_view label, std::uint64_t count) {
  MutexLock lock(mutex_);
  counters_[{metric.metric, std::string(label)}] += count;
}

void Metrics::set(const MetricInfo& metric, double value) {
  MutexLock lock(mutex_);
  gauges_[metric.metric] = value;
}

void Metrics::observe(const MetricInfo& metric, double value) {
  MutexLock lock(mutex_);
  histograms_[metric.metric].add(value);
}

void Metrics::served(const Served& served) {
  std::string labels = Exposition::label("method", served.method) + "," + Exposition::label("route", served.pattern) +
                       "," + Exposition::label("code", std::to_string(served.status));
  MutexLock lock(mutex_);
  requests_[labels].add(std::chrono::duration<double>(served.took).count());
}

void Metrics::write(Exposition& out) {
  MutexLock lock(mutex_);
  for (const MetricInfo& info : metric_table()) {
    switch (info.kind) {
      case MetricKind::kCounter:
        out.begin(info.name, "counter", info.help);
        for (const auto& [key, value] : counters_)
          if (key.first == info.metric)
            out.sample(info.name, key.second.empty() ? "" : Exposition::label(info.label_name, key.second),
                       static_cast<double>(value));
        break;
      case MetricKind::kGauge:
        out.begin(info.name, "gauge", info.help);
        if (auto found = gauges_.find(info.metric); found != gauges_.end()) out.sample(info.name, "", found->second);
        break;
      case MetricKind::kHistogram:
        out.begin(info.name, "histogram", info.help);
        histograms_[info.metric].write(out, info.name, "");
        break;
    }
  }
  out.begin("perdure_http_request_duration_seconds", "histogram", "How long requests took, by route and status.");
  for (const auto& [labels, histogram] : requests_)
    histogram.write(out, "perdure_http_request_duration_seconds", labels);
}

}  // namespace perdure::http
