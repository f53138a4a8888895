// `perdure bench`: how quick the daemon is on this machine, seen from a client.
//
// Connections that are always busy emit events to a worker of their own, alone and in batches, and then take them off
// again. One thread polls all of them, so what is measured is the daemon and its disk.
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "cli/commands.h"
#include "cli/duration.h"
#include "http/polled_connection.h"
#include "runtime/latch.h"

namespace perdure::cli {
namespace {

constexpr const char* kWorker = "perdure-bench";
constexpr std::size_t kBatch = 100;

/// One thing that is measured.
struct Load {
  std::string name;
  std::size_t connections;
  std::string body;
  /// Events in one request.
  std::size_t at_once;
};

struct Measured {
  std::uint64_t events = 0;
  Duration elapsed = {};
  std::vector<Duration> latencies;
};

struct Line {
  std::unique_ptr<http::PolledConnection> connection;
  SteadyTime began;
};

std::string event_json() {
  return std::string(R"({"worker":")") + kWorker + R"(","value":{"n":1}})";
}

std::string batch_json() {
  std::string out = "[";
  for (std::size_t i = 0; i < kBatch; ++i) out += (i == 0 ? "" : ",") + event_json();
  return out + "]";
}

OrFailure<void> begin(Context& context, Line& line, const Load& load) {
  Call call{.method = "POST", .target = "/v1/" + context.space() + "/events", .body = load.body};
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

OrFailure<Measured> measure(Context& context, const Load& load, Duration length) {
  auto url = context.daemon().url();
  if (!url) return std::unexpected(std::move(url.error()));
  std::vector<Line> lines(load.connections);
  Measured measured;
  SteadyTime began = steady_now();
  for (Line& line : lines) {
    line.connection = std::make_unique<http::PolledConnection>(*url);
    if (auto good = begin(context, line, load); !good) return std::unexpected(std::move(good.error()));
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
      else if (auto good = begin(context, line, load); !good)
        return std::unexpected(std::move(good.error()));
    }
  }
  measured.elapsed = steady_now() - began;
  return measured;
}

double milliseconds(std::vector<Duration>& latencies, double share) {
  auto at = latencies.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(latencies.size() - 1) * share);
  std::nth_element(latencies.begin(), at, latencies.end());
  return std::chrono::duration<double, std::milli>(*at).count();
}

std::string rounded(double number) {
  std::string text = std::to_string(number);
  return text.substr(0, text.find('.') + 3);
}

Value row_of(const Load& load, Measured measured) {
  double seconds = std::chrono::duration<double>(measured.elapsed).count();
  return Value::Map{{"load", load.name},
                    {"connections", load.connections},
                    {"events_per_s", static_cast<std::int64_t>(static_cast<double>(measured.events) / seconds)},
                    {"p50_ms", rounded(milliseconds(measured.latencies, 0.5))},
                    {"p99_ms", rounded(milliseconds(measured.latencies, 0.99))}};
}

/// What was emitted goes again, so that a benchmark leaves nothing behind.
OrFailure<void> clean_up(Context& context) {
  std::string target = "/v1/" + context.space() + "/workers/" + kWorker + "/events";
  auto gone = context.ask({.method = "DELETE", .target = target, .timeout = std::chrono::minutes(5)});
  if (!gone) return std::unexpected(std::move(gone.error()));
  return {};
}

OrFailure<void> bench(Context& context, const Arguments& arguments) {
  Duration length = std::chrono::seconds(3);
  if (auto text = arguments.maybe("seconds")) {
    double seconds = 0;
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (error != std::errc() || end != text->data() + text->size() || seconds < 0.1 || seconds > 600)
      return usage("--seconds is '" + *text + "', but must be a number from 0.1 to 600");
    length = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  std::vector<Value> rows;
  for (const Load& load : {Load{"emit", 1, event_json(), 1}, Load{"emit", 64, event_json(), 1},
                           Load{"emit 100 at once", 16, batch_json(), kBatch}}) {
    context.say("measuring: " + load.name + ", " + std::to_string(load.connections) + " connections");
    auto measured = measure(context, load, length);
    if (!measured) return std::unexpected(std::move(measured.error()));
    rows.push_back(row_of(load, std::move(*measured)));
  }
  if (auto cleaned = clean_up(context); !cleaned) return cleaned;
  context.print_rows(rows, {{"LOAD", "load"},
                            {"CONNECTIONS", "connections", Style::kRight},
                            {"EVENTS/S", "events_per_s", Style::kRight},
                            {"P50 MS", "p50_ms", Style::kRight},
                            {"P99 MS", "p99_ms", Style::kRight}});
  return {};
}

}  // namespace

std::vector<Command> bench_commands() {
  return {{"bench",
           kSystem,
           "Measure how quick the daemon is here",
           {},
           {{"seconds", "N", "How long each of the three loads lasts; 3 unless told"}},
           bench,
           "It emits to the worker perdure-bench of the space, and cancels those events at the end.\n"}};
}

}  // namespace perdure::cli
