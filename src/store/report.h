// How the store speaks to its host: through the sinks of its options, and to nobody without them.
#pragma once

#include <initializer_list>
#include <string>

#include "perdure/store.h"

namespace perdure {

/// While it lives, this thread is in a sink or in on_fatal: what would wait for the store there is refused.
class InSink {
 public:
  InSink();
  ~InSink();
  InSink(const InSink&) = delete;
  InSink& operator=(const InSink&) = delete;

  static bool here();

 private:
  const bool before_;
};

/// Never called with a lock held: the sink is the user's code.
void log(const StoreOptions& options, LogLevel level, std::string_view component, std::string_view message,
         std::initializer_list<LogField> fields = {});

inline void count(const StoreOptions& options, Metric metric, std::uint64_t count, std::string_view label = {}) {
  if (options.metrics && count > 0) options.metrics->add(info(metric), label, count);
}

inline void observe(const StoreOptions& options, Metric metric, double value) {
  if (options.metrics) options.metrics->observe(info(metric), value);
}

inline void gauge(const StoreOptions& options, Metric metric, double value) {
  if (options.metrics) options.metrics->set(info(metric), value);
}

inline double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace perdure
