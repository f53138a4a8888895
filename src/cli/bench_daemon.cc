// The loads of `perdure bench`, sent to a daemon. One thread polls all connections, so what is measured is the daemon
// and its disk.
#include <poll.h>

#include <memory>

#include "cli/bench_load.h"
#include "http/polled_connection.h"
#include "runtime/latch.h"

namespace perdure::cli {
namespace {

struct Line {
  std::unique_ptr<http::PolledConnection> connection;
  SteadyTime began;
};

std::string body_of(const Load& load) {
  std::string event = std::string(R"({"worker":")") + kBenchWorker + R"(","value":{"n":1}})";
  if (load.at_once == 1) return event;
  std::string out = "[";
  for (std::size_t i = 0; i < load.at_once; ++i) out += (i == 0 ? "" : ",") + event;
  return out + "]";
}

OrFailure<void> begin(Context& context, Line& line, const std::string& body) {
  Call call{.method = "POST", .target = "/v1/" + context.space() + "/events", .body = body};
  line.began = steady_now();
  if (auto started = line.connection->start(context.daemon().request_of(call)); !started)
    return std::unexpected(Failure{kExitUnavailable, started.error().message});
  return {};
}

/// Takes the answer if it is there; whether it was.
OrFailure<bool> advance(Line& line) {
  auto done = line.connection->advance();
  if (!done) return std::unexpected(Failure{kExitUnavailable, done.error().message});
  if (!*done) return false;
  http::Response answer = line.connection->take();
  if (answer.status != 201)
    return std::unexpected(Failure{1, "the daemon answered " + std::to_string(answer.status) + ": " + answer.body});
  return true;
}

}  // namespace

OrFailure<Measured> measure_daemon(Context& context, const Load& load, Duration length) {
  const std::string body = body_of(load);
  auto url = context.daemon().url();
  if (!url) return std::unexpected(std::move(url.error()));
  std::vector<Line> lines(load.callers);
  Measured measured;
  SteadyTime began = steady_now();
  for (Line& line : lines) {
    line.connection = std::make_unique<http::PolledConnection>(*url);
    if (auto good = begin(context, line, body); !good) return std::unexpected(std::move(good.error()));
  }
  for (std::size_t busy = lines.size(); busy > 0;) {
    std::vector<pollfd> polled;
    for (Line& line : lines)
      if (line.connection->busy()) polled.push_back({line.connection->fd(), line.connection->events(), 0});
    ::poll(polled.data(), polled.size(), 30'000);
    for (Line& line : lines) {
      if (!line.connection->busy()) continue;
      auto done = advance(line);
      if (!done) return std::unexpected(std::move(done.error()));
      if (!*done) continue;
      measured.latencies.push_back(steady_now() - line.began);
      measured.events += load.at_once;
      if (steady_now() - began >= length)
        --busy;
      else if (auto good = begin(context, line, body); !good)
        return std::unexpected(std::move(good.error()));
    }
  }
  measured.elapsed = steady_now() - began;
  return measured;
}

}  // namespace perdure::cli
