// Actors: calls and casts of one caller and of many, on many actors and on one, through the mailbox and past it, and
// what a great number of other actors changes about that.
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "callers.h"
#include "harness.h"
#include "perdure/actor.h"
#include "perdure/store.h"

namespace perdure::bench {
namespace {

using namespace std::chrono_literals;

struct Add {
  using Reply = std::int64_t;
  std::int64_t by = 1;
  PERDURE_DESCRIBE(Add, by)
};

struct Counter {
  static constexpr std::string_view kKind = "counter";
  struct State {
    std::int64_t count = 0;
    PERDURE_DESCRIBE(State, count)
  };
  using Messages = MessageList<Add>;
  Answer<std::int64_t> handle_call(const Add& add, State& state, Turn&) { return state.count += add.by; }
  void handle_cast(const Add& add, State& state, Turn&) { state.count += add.by; }
};

using Counters = std::vector<ActorOf<Counter>>;

constexpr std::size_t kCounters = 1000;

class ConflictCount final : public MetricsSink {
 public:
  void add(const MetricInfo& metric, std::string_view, std::uint64_t count) override {
    if (metric.metric == Metric::kConflicts) conflicts += count;
  }
  void set(const MetricInfo&, double) override {}
  void observe(const MetricInfo&, double) override {}

  std::atomic<std::uint64_t> conflicts = 0;
};

/// A store and a node that serves the counters.
struct Node {
  explicit Node(const std::string& url, std::size_t cache_bytes = ActorsOptions().cache_bytes)
      : store(must(Store::open(url, {.metrics = metrics}))),
        actors(must(Actors::open(store, {.cache_bytes = cache_bytes}))) {
    must(actors.serve<Counter>());
  }

  std::shared_ptr<ConflictCount> metrics = std::make_shared<ConflictCount>();
  Store store;
  Actors actors;
};

std::string counter_name(std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "actor-%08llu", static_cast<unsigned long long>(number));
  return name;
}

/// The actors that a result is about, and those that exist besides.
struct Population {
  std::string suffix = {};  ///< Of the names of results.
  std::string url = {};     ///< Where they are; a fresh store for each result if empty.
  std::uint64_t first = 0;
  std::uint64_t step = 1;

  Counters pick(const Actors& actors, std::size_t count) const {
    Counters picked;
    for (std::size_t i = 0; i < count; ++i) picked.push_back(actors.of<Counter>(counter_name(first + i * step)));
    return picked;
  }
};

std::int64_t sum(Store& store, Counters& counters) {
  return must(store.read([&](Reader& reader) {
    std::int64_t total = 0;
    for (auto& counter : counters) {
      auto info = counter.untyped().inspect(reader);
      if (info && info->state) total += must(from_value<Counter::State>(*info->state)).count;
    }
    return total;
  }));
}

/// Each operation on an actor chosen at random, without a lock that callers would meet at.
class Choice {
 public:
  explicit Choice(Counters& counters) : counters_(counters) {}
  ActorOf<Counter>& next() {
    std::uint64_t x = (count_.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    return counters_[(x ^ (x >> 31)) % counters_.size()];
  }

 private:
  Counters& counters_;
  std::atomic<std::uint64_t> count_ = 0;
};

void expect_sum(std::int64_t found, std::int64_t expected) {
  if (found == expected) return;
  std::fprintf(stderr, "bench: the counters say %lld, but %lld were acknowledged\n", static_cast<long long>(found),
               static_cast<long long>(expected));
  std::exit(1);
}

void add_conflicts(Sample& sample, const Node& node, std::uint64_t before) {
  sample.extra += ",\"conflicts\":" + std::to_string(node.metrics->conflicts - before);
}

/// Calls by `caller` of counters that `node` serves; each is looked for in the states at the end.
Sample measure_calls(Node& node, Counters& called, int callers, std::chrono::milliseconds duration) {
  std::int64_t before = sum(node.store, called);
  std::uint64_t conflicts = node.metrics->conflicts;
  Choice choice(called);
  Sample sample = Callers([&](int, std::function<void()> done) {
                    choice.next().call_async(Add{}, {.timeout = 60s}, [done = std::move(done)](Result<std::int64_t> n) {
                      must(std::move(n));
                      done();
                    });
                  }).run(callers, duration);
  expect_sum(sum(node.store, called) - before, static_cast<std::int64_t>(sample.operations));
  add_conflicts(sample, node, conflicts);
  return sample;
}

/// An operation is one cast, however many are sent at once. The clock runs until all of them have been executed and are
/// durable; the latency is that of the acknowledgement.
Sample measure_casts(Node& node, Counters& called, int in_flight, std::size_t at_once,
                     std::chrono::milliseconds duration) {
  std::int64_t before = sum(node.store, called);
  std::uint64_t conflicts = node.metrics->conflicts;
  Choice choice(called);
  const std::vector<Value> many(at_once, internal::message_value(Add{}));
  auto start = Clock::now();
  Sample sample = Callers([&](int, std::function<void()> done) {
                    auto acknowledged = [done = std::move(done)](Result<void> result) {
                      must(std::move(result));
                      done();
                    };
                    if (at_once == 1)
                      choice.next().cast_async(Add{}, {}, std::move(acknowledged));
                    else
                      choice.next().untyped().cast_many_async(many, std::move(acknowledged));
                  }).run(in_flight, duration);
  auto sent = Clock::now() - start;
  sample.operations *= at_once;
  auto expected = static_cast<std::int64_t>(sample.operations);
  for (auto patience = Clock::now() + 120s; sum(node.store, called) - before < expected && Clock::now() < patience;)
    usleep(5000);
  sample.elapsed = Clock::now() - start;
  expect_sum(sum(node.store, called) - before, expected);
  char extra[64];
  std::snprintf(extra, sizeof extra, ",\"sent_per_s\":%.0f",
                static_cast<double>(sample.operations) / std::chrono::duration<double>(sent).count());
  sample.extra = extra;
  add_conflicts(sample, node, conflicts);
  return sample;
}

using Measure = std::function<Sample(Node&)>;

void measured(const Settings& settings, const Population& there, const std::string& name, const Measure& measure) {
  if (!settings.wants(name + there.suffix)) return;
  report(settings, name + there.suffix, [&] {
    Node node(there.url.empty() ? fresh_url(settings) : there.url);
    return measure(node);
  });
}

void bench_calls(const Settings& settings, const Population& there, const std::string& name, int callers,
                 std::size_t actors) {
  measured(settings, there, name, [&](Node& node) {
    Counters called = there.pick(node.actors, actors);
    return measure_calls(node, called, callers, settings.duration);
  });
}

void bench_casts(const Settings& settings, const Population& there, const std::string& name, int in_flight,
                 std::size_t at_once) {
  measured(settings, there, name, [&](Node& node) {
    Counters called = there.pick(node.actors, kCounters);
    return measure_casts(node, called, in_flight, at_once, settings.duration);
  });
}

constexpr std::array kCoreNames = {"call/1",        "call/256x1000", "hot/256",
                                   "cast/executed", "cast_many/100", "queued/256"};

/// The results that many other actors must not change.
void bench_core(const Settings& settings, const Population& there) {
  bench_calls(settings, there, kCoreNames[0], 1, kCounters);
  bench_calls(settings, there, kCoreNames[1], 256, kCounters);
  bench_calls(settings, there, kCoreNames[2], 256, 1);
  bench_casts(settings, there, kCoreNames[3], 16 * 64, 1);
  bench_casts(settings, there, kCoreNames[4], 16, 100);
  measured(settings, there, kCoreNames[5], [&](Node& node) {
    Actors pusher = must(Actors::open(node.store));
    Counters called = there.pick(pusher, kCounters);
    return measure_calls(node, called, 256, settings.duration);
  });
}

/// What this process has allocated; without the pages of the store, which are the file's.
std::uint64_t resident_kilobytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::uint64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes;
  return 0;
}

std::string short_number(std::uint64_t number) {
  if (number % 1'000'000 == 0) return std::to_string(number / 1'000'000) + "m";
  return number % 1000 == 0 ? std::to_string(number / 1000) + "k" : std::to_string(number);
}

/// Makes the actors with a cast each, in a node whose cache has room for a thousand or so. What they cost in memory
/// once they are idle is what the process has more than with the first 20,000.
Sample make_actors(const std::string& url, std::uint64_t count) {
  Node node(url, 1 << 20);
  std::uint64_t made = 0;
  auto make = [&](std::uint64_t until) {
    std::counting_semaphore<> free(1024);
    for (; made < until; ++made) {
      free.acquire();
      node.actors.of<Counter>(counter_name(made)).cast_async(Add{}, {}, [&](Result<void> result) {
        must(std::move(result));
        free.release();
      });
    }
    for (int i = 0; i < 1024; ++i) free.acquire();
  };
  auto start = Clock::now();
  make(std::min<std::uint64_t>(count / 2, 20'000));
  std::uint64_t few = made, before = resident_kilobytes();
  make(count);
  Sample sample;
  sample.operations = count;
  sample.elapsed = Clock::now() - start;
  usleep(100'000);
  std::uint64_t after = resident_kilobytes();
  char extra[128];
  std::snprintf(extra, sizeof extra, ",\"anon_kb_at_%s\":%llu,\"anon_kb\":%llu,\"bytes_per_idle_actor\":%.1f",
                short_number(few).c_str(), static_cast<unsigned long long>(before),
                static_cast<unsigned long long>(after),
                (static_cast<double>(after) - static_cast<double>(before)) * 1024 / static_cast<double>(count - few));
  sample.extra = extra;
  return sample;
}

void bench_existing(const Settings& settings) {
  std::string suffix = "+" + short_number(settings.actors), memory = "memory/idle" + suffix;
  bool any = settings.wants(memory);
  // A result that is wanted with the longer suffix may not be without it.
  for (const char* name : kCoreNames) any = any || settings.wants(name + suffix + "-spread");
  if (!any) return;
  std::string url = fresh_url(settings);
  auto make = [&] { return make_actors(url, settings.actors); };
  if (settings.wants(memory))
    report(settings, memory, make);
  else
    make();
  bench_core(settings, {.suffix = suffix, .url = url, .first = settings.actors / 2});
  // Of all of them, evenly: each has pages of its own in the store.
  Population spread{.suffix = suffix + "-spread", .url = url, .step = settings.actors / kCounters};
  bench_calls(settings, spread, "call/256x1000", 256, kCounters);
  bench_casts(settings, spread, "cast/executed", 16 * 64, 1);
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  bench_core(settings, {});
  bench_existing(settings);
  std::filesystem::remove_all(settings.directory + "/store");
}
