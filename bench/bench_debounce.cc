// Debouncers: touches of many keys and of one, what a million open windows change about that, and how late windows
// fire.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "callers.h"
#include "perdure/debounce.h"
#include "perdure/store.h"

namespace perdure::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kKeys = 10'000;
constexpr std::size_t kPayloadBytes = 16;
const std::string kName = "bench";

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

struct DebounceNode {
  DebounceNode(const std::string& url, const DebounceSettings& wanted)
      : store(must(Store::open(url))), debouncers(must(Debouncers::open(store))) {
    must(debouncers.set(kName, wanted));
  }
  Store store;
  Debouncers debouncers;
};

std::string key_of(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "k%09llu", static_cast<unsigned long long>(number));
  return text;
}

/// Memory of this process beyond the pages of files, as it stands.
std::uint64_t anonymous_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::uint64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes;
  return 0;
}

/// Opens a window for each of so many keys.
void open_windows(DebounceNode& node, std::uint64_t count) {
  constexpr std::uint64_t kAtOnce = 1'000;
  for (std::uint64_t first = 0; first < count; first += kAtOnce)
    must(node.store.transact([&](Transaction& txn) {
      for (std::uint64_t i = first; i < std::min(first + kAtOnce, count); ++i)
        node.debouncers.touch(txn, kName, key_of(i), std::string(kPayloadBytes, 'p'));
    }));
}

/// Touches by all callers, each of one of `keys` keys that are `apart` numbers from each other.
Sample touch_for(DebounceNode& node, int callers, std::uint64_t keys, std::uint64_t apart,
                 std::chrono::milliseconds duration) {
  std::atomic<std::uint64_t> next = 0;
  auto cpu = cpu_time();
  Sample sample = Callers([&](int, std::function<void()> done) {
                    // A walk through all of them in no order.
                    std::uint64_t number = next.fetch_add(1) * 7'919 % keys * apart;
                    node.debouncers.touch_async(kName, key_of(number), std::string(kPayloadBytes, 'p'),
                                                [done = std::move(done)](Result<Window> window) {
                                                  must(std::move(window));
                                                  done();
                                                });
                  }).run(callers, duration);
  sample.cpu = cpu_time() - cpu;
  return sample;
}

std::uint64_t touches(DebounceNode& node, std::uint64_t keys, std::uint64_t apart) {
  return must(node.store.read([&](Reader& reader) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
      auto key = node.debouncers.key(reader, kName, key_of(i * apart));
      if (key && key->window) sum += key->window->count;
    }
    return sum;
  }));
}

struct TouchCase {
  int callers;
  std::uint64_t keys;
  /// Open before it begins.
  std::uint64_t windows = 0;
  /// The keys that are touched lie among the others as far from each other as they can, each on a page of its own.
  /// Otherwise they are neighbours, as the names of what is used together mostly are.
  bool scattered = false;
};

void bench_touch(const Settings& settings, const std::string& name, const TouchCase& given) {
  if (!settings.wants(name)) return;
  DebounceNode node(fresh_url(settings), {.quiet = 24h});
  open_windows(node, given.windows);
  std::uint64_t apart = given.scattered ? given.windows / given.keys : 1;
  report(settings, name, [&] {
    std::uint64_t before = touches(node, given.keys, apart);
    Sample sample = touch_for(node, given.callers, given.keys, apart, settings.duration);
    if (touches(node, given.keys, apart) != before + sample.operations) give_up("touches are missing");
    sample.extra = ",\"anon_kb\":" + std::to_string(anonymous_kilobytes());
    return sample;
  });
}

/// A thousand windows a second fall due, beside those that are open; the latencies are from when each was due to the
/// start of its run.
void bench_fire(const Settings& settings, const std::string& name, std::uint64_t windows) {
  if (!settings.wants(name)) return;
  constexpr Duration kQuiet = 1s;
  DebounceNode node(fresh_url(settings), {.quiet = 24h});
  open_windows(node, windows);
  must(node.debouncers.set("firing", {.quiet = kQuiet}));
  Queue queue = must(Queue::open(node.store));
  report(settings, name, [&] {
    Sample sample;
    std::mutex mutex;
    must(node.debouncers.handle(queue, "firing",
                                [&](DebounceRun& run) {
                                  auto now = std::chrono::system_clock::now().time_since_epoch();
                                  std::lock_guard lock(mutex);
                                  sample.latencies.push_back(now - (run.latest() + kQuiet).time_since_epoch());
                                },
                                {.concurrency = 64}));
    auto start = Clock::now();
    std::uint64_t touched = 0;
    for (; Clock::now() - start < settings.duration; ++touched) {
      node.debouncers.touch_async("firing", key_of(touched), Value(), [](Result<Window> window) { must(window); });
      std::this_thread::sleep_until(start + touched * 1ms);
    }
    for (bool all = false; !all; usleep(1000)) {
      std::lock_guard lock(mutex);
      all = sample.latencies.size() >= touched;
    }
    sample.elapsed = Clock::now() - start - kQuiet;
    queue.stop_working("firing");
    if (must(queue.worker("firing")).failed > 0 || sample.latencies.size() != touched) give_up("runs went wrong");
    sample.operations = touched;
    sample.extra = ",\"anon_kb\":" + std::to_string(anonymous_kilobytes());
    return sample;
  });
  must(queue.close());
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  bench_touch(settings, "touch/1024x10k", {1024, kKeys});
  bench_touch(settings, "touch/1024x10k+100k", {1024, kKeys, 100'000});
  bench_touch(settings, "touch/1024x10k+1m", {1024, kKeys, 1'000'000});
  bench_touch(settings, "touch/1024x10k+1m/scattered", {1024, kKeys, 1'000'000, true});
  bench_touch(settings, "touch/256x10k", {256, kKeys});
  bench_touch(settings, "touch/256x1", {256, 1});
  bench_fire(settings, "fire/1000", 0);
  bench_fire(settings, "fire/1000+1m", 1'000'000);
  std::filesystem::remove_all(settings.directory + "/store");
}
