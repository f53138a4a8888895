// `perdure bench`: how quick perdure is on this machine.
//
// Callers that are always busy emit events to a worker of their own, alone and in batches: to the daemon, or to a store
// that this process opens.
#include <algorithm>
#include <charconv>
#include <functional>

#include "cli/bench_load.h"
#include "cli/commands.h"

namespace perdure::cli {
namespace {

using Measure = std::function<OrFailure<Measured>(const Load&, Duration)>;

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
                    {"callers", load.callers},
                    {"events_per_s", static_cast<std::int64_t>(static_cast<double>(measured.events) / seconds)},
                    {"p50_ms", rounded(milliseconds(measured.latencies, 0.5))},
                    {"p99_ms", rounded(milliseconds(measured.latencies, 0.99))}};
}

OrFailure<Duration> length_of(const Arguments& arguments) {
  auto text = arguments.maybe("seconds");
  if (!text) return std::chrono::seconds(3);
  double seconds = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size() || seconds < 0.1 || seconds > 600)
    return usage("--seconds is '" + *text + "', but must be a number from 0.1 to 600");
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

OrFailure<void> measure_all(Context& context, const Arguments& arguments, const Measure& measure) {
  auto length = length_of(arguments);
  if (!length) return std::unexpected(std::move(length.error()));
  std::vector<Value> rows;
  for (const Load& load : {Load{"emit", 1, 1}, Load{"emit", 64, 1}, Load{"emit 100 at once", 16, 100}}) {
    context.say("measuring: " + load.name + ", " + std::to_string(load.callers) +
                (load.callers == 1 ? " caller" : " callers"));
    auto measured = measure(load, *length);
    if (!measured) return std::unexpected(std::move(measured.error()));
    rows.push_back(row_of(load, std::move(*measured)));
  }
  context.print_rows(rows, {{"LOAD", "load"},
                            {"CALLERS", "callers", Style::kRight},
                            {"EVENTS/S", "events_per_s", Style::kRight},
                            {"P50 MS", "p50_ms", Style::kRight},
                            {"P99 MS", "p99_ms", Style::kRight}});
  return {};
}

// What was emitted goes again, so that a benchmark leaves nothing behind.

OrFailure<void> bench_daemon(Context& context, const Arguments& arguments) {
  auto done = measure_all(context, arguments,
                          [&](const Load& load, Duration length) { return measure_daemon(context, load, length); });
  if (!done) return done;
  std::string target = "/v1/" + context.space() + "/workers/" + kBenchWorker + "/events";
  auto gone = context.ask({.method = "DELETE", .target = target, .timeout = std::chrono::minutes(5)});
  if (!gone) return std::unexpected(std::move(gone.error()));
  return {};
}

OrFailure<void> bench_store(Context& context, const Arguments& arguments, const std::string& url) {
  auto store = Store::open(url);
  if (!store) return std::unexpected(failure_of(store.error()));
  auto queue = Queue::open(*store, {.space = context.space()});
  if (!queue) return std::unexpected(failure_of(queue.error()));
  auto done = measure_all(context, arguments,
                          [&](const Load& load, Duration length) { return measure_queue(*queue, load, length); });
  if (!done) return done;
  if (auto gone = queue->cancel_all(kBenchWorker); !gone) return std::unexpected(failure_of(gone.error()));
  return {};
}

OrFailure<void> bench(Context& context, const Arguments& arguments) {
  if (auto url = arguments.maybe("store")) return bench_store(context, arguments, *url);
  return bench_daemon(context, arguments);
}

}  // namespace

std::vector<Command> bench_commands() {
  return {{"bench",
           kSystem,
           "Measure how quick perdure is here: the daemon, or a store without one",
           {},
           {{"seconds", "N", "How long each of the three loads lasts; 3 unless told"},
            {"store", "URL", "Measure in this process, on this store: lmdb:DIR or memory:"}},
           bench,
           "It emits to the worker perdure-bench of the space, and cancels those events at the end.\n"}};
}

}  // namespace perdure::cli
