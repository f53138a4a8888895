// What `perdure bench` measures, and on what: a daemon, or a store that this process opens itself.
#pragma once

#include <string>
#include <vector>

#include "cli/context.h"
#include "perdure/queue.h"

namespace perdure::cli {

/// The events go to this worker, and are cancelled at the end.
inline constexpr const char* kBenchWorker = "perdure-bench";

/// One thing that is measured: callers who are always busy, each with so many events in one request.
struct Load {
  std::string name;
  std::size_t callers;
  std::size_t at_once;
};

struct Measured {
  std::uint64_t events = 0;
  Duration elapsed = {};
  std::vector<Duration> latencies;
};

OrFailure<Measured> measure_daemon(Context& context, const Load& load, Duration length);
OrFailure<Measured> measure_queue(Queue& queue, const Load& load, Duration length);

}  // namespace perdure::cli
