// The store: read-modify-write at several depths, processes that share a store, watches across processes, a hot
// counter, and seeks into a range that was emptied.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <semaphore>

#include "harness.h"
#include "perdure/store.h"

namespace perdure::bench {
namespace {

constexpr int kKeys = 10'000;
constexpr std::size_t kValueBytes = 100;

std::string key_name(std::uint64_t number) {
  char name[24];
  std::snprintf(name, sizeof name, "key-%08llu", static_cast<unsigned long long>(number));
  return name;
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "bench: %s\n", to_string(result.error()).c_str());
  std::exit(1);
}

void must(Result<void> result) {
  if (result) return;
  std::fprintf(stderr, "bench: %s\n", to_string(result.error()).c_str());
  std::exit(1);
}

std::string fresh_directory(const Settings& settings) {
  std::string directory = settings.directory + "/store";
  std::filesystem::remove_all(directory);
  return directory;
}

void fill(Store& store) {
  for (int from = 0; from < kKeys; from += 1000)
    must(store.transact([&](Transaction& txn) {
      for (int i = from; i < from + 1000; ++i)
        txn.set(key_name(static_cast<std::uint64_t>(i)), Bytes(kValueBytes, 'v'));
    }));
}

/// A fixed number of callers, each of which starts its next transaction in the callback of the one before: no thread
/// waits for anything.
class EventDriven {
 public:
  using Body = std::function<void(Transaction&, std::uint64_t random)>;

  EventDriven(Store& store, Body body, TransactOptions options)
      : store_(store), body_(std::move(body)), options_(options) {}

  Sample run(int callers, std::chrono::milliseconds duration) {
    auto start = Clock::now();
    end_ = start + duration;
    running_ = callers;
    for (int i = 0; i < callers; ++i) next(std::random_device()());
    finished_.acquire();
    Sample sample;
    sample.elapsed = Clock::now() - start;
    sample.operations = latencies_.size();
    sample.latencies = std::move(latencies_);
    sample.extra = ",\"runs_per_commit\":" +
                   std::to_string(static_cast<double>(runs_) / static_cast<double>(sample.operations)).substr(0, 5);
    return sample;
  }

 private:
  void next(std::uint64_t random) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    auto begun = Clock::now();
    store_.transact_async(
        [this, random](Transaction& txn) {
          runs_.fetch_add(1, std::memory_order_relaxed);
          body_(txn, random >> 33);
        },
        [this, random, begun](Result<void> result) {
          must(std::move(result));
          auto now = Clock::now();
          {
            std::lock_guard lock(mutex_);
            latencies_.push_back(now - begun);
          }
          if (now < end_)
            next(random);
          else if (--running_ == 0)
            finished_.release();
        },
        options_);
  }

  Store& store_;
  const Body body_;
  const TransactOptions options_;
  Clock::time_point end_;
  std::atomic<int> running_ = 0;
  std::atomic<std::uint64_t> runs_ = 0;
  std::mutex mutex_;
  std::vector<Clock::duration> latencies_;
  std::binary_semaphore finished_{0};
};

void read_modify_write(Transaction& txn, std::uint64_t random) {
  Bytes key = key_name(random % kKeys);
  Bytes value = txn.get(key).value_or(Bytes(kValueBytes, 'v'));
  value[random % kValueBytes] = static_cast<char>('a' + random % 26);
  txn.set(key, value);
}

void bench_rmw(const Settings& settings, int callers) {
  std::string name = "rmw/" + std::to_string(callers);
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Store store = must(Store::open("lmdb:" + fresh_directory(settings)));
    fill(store);
    return EventDriven(store, read_modify_write, {}).run(callers, settings.duration);
  });
}

/// Several processes on one store directory; the children write how many transactions each did to a pipe.
void bench_processes(const Settings& settings, int processes, int callers) {
  std::string name = "rmw/" + std::to_string(processes) + "x" + std::to_string(callers);
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    std::string url = "lmdb:" + fresh_directory(settings);
    {
      Store store = must(Store::open(url));
      fill(store);
    }
    int pipe_fds[2];
    if (pipe(pipe_fds) != 0) std::exit(1);
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
      pid_t child = fork();
      if (child == 0) {
        Store store = must(Store::open(url));
        Sample sample = EventDriven(store, read_modify_write, {}).run(callers, settings.duration);
        double rate = static_cast<double>(sample.operations) / std::chrono::duration<double>(sample.elapsed).count();
        if (write(pipe_fds[1], &rate, sizeof rate) != sizeof rate) _exit(1);
        store.close();
        _exit(0);
      }
      children.push_back(child);
    }
    close(pipe_fds[1]);  // So that reading ends if a child does without a word.
    double total = 0;
    for (int i = 0; i < processes; ++i) {
      double rate = 0;
      if (read(pipe_fds[0], &rate, sizeof rate) == sizeof rate) total += rate;
    }
    for (pid_t child : children) waitpid(child, nullptr, 0);
    Sample sample;
    sample.operations = static_cast<std::uint64_t>(total * 1000);
    sample.elapsed = std::chrono::seconds(1000);
    return sample;
  });
}

/// How long after a commit was acknowledged in one process a watch in another has fired.
void bench_watch(const Settings& settings) {
  if (!settings.wants("watch/cross-process")) return;
  report(settings, "watch/cross-process", [&] {
    constexpr int kRounds = 300;
    std::string url = "lmdb:" + fresh_directory(settings);
    int ready[2], fired[2];
    if (pipe(ready) != 0 || pipe(fired) != 0) std::exit(1);
    pid_t child = fork();
    if (child == 0) {
      Store store = must(Store::open(url));
      for (int i = 0; i < kRounds; ++i) {
        Watch watch = must(store.transact([](Transaction& txn) { return txn.watch("bell"); }));
        if (write(ready[1], "r", 1) != 1 || !watch.wait(std::chrono::seconds(10))) _exit(1);
        auto now = Clock::now();
        if (write(fired[1], &now, sizeof now) != sizeof now) _exit(1);
      }
      store.close();
      _exit(0);
    }
    close(ready[1]);
    close(fired[1]);
    Sample sample;
    auto start = Clock::now();
    Store store = must(Store::open(url));
    for (int i = 0; i < kRounds; ++i) {
      char byte;
      Clock::time_point woken;
      if (read(ready[0], &byte, 1) != 1) break;
      usleep(2000);  // Idle, so that what is measured is the wake-up and not the rest of the round before.
      must(store.transact([i](Transaction& txn) { txn.set("bell", std::to_string(i)); }));
      auto committed = Clock::now();
      if (read(fired[0], &woken, sizeof woken) != sizeof woken) break;
      sample.latencies.push_back(std::max(woken - committed, Clock::duration::zero()));
    }
    waitpid(child, nullptr, 0);
    sample.operations = sample.latencies.size();
    sample.elapsed = Clock::now() - start;
    return sample;
  });
}

void bench_counter(const Settings& settings) {
  if (!settings.wants("counter/64")) return;
  report(settings, "counter/64", [&] {
    Store store = must(Store::open("lmdb:" + fresh_directory(settings)));
    auto draw = [](Transaction& txn, std::uint64_t) {
      txn.set("counter", encode_counter(decode_counter(txn.get("counter")) + 1));
    };
    return EventDriven(store, draw, {.body = Body::kShort}).run(64, settings.duration);
  });
}

Sample measure_seeks(Store& store, const KeyRange& range) {
  constexpr int kSeeks = 20'000;
  Sample sample;
  auto start = Clock::now();
  for (int i = 0; i < kSeeks; ++i) {
    auto begun = Clock::now();
    (void)must(store.read([&](Reader& reader) { return reader.get_range(range, {.limit = 1}).size(); }));
    sample.latencies.push_back(Clock::now() - begun);
  }
  sample.operations = kSeeks;
  sample.elapsed = Clock::now() - start;
  return sample;
}

/// A queue that was long once must not be slow for ever.
void bench_emptied_range(const Settings& settings) {
  if (!settings.wants("seek/fresh") && !settings.wants("seek/emptied")) return;
  constexpr int kRows = 1'000'000, kPerTransaction = 5000;
  Store store = must(Store::open("lmdb:" + fresh_directory(settings)));
  auto row_key = [](int i) { return "emptied/" + key_name(static_cast<std::uint64_t>(i)); };
  for (int from = 0; from < kRows; from += kPerTransaction)
    must(store.transact([&](Transaction& txn) {
      for (int i = from; i < from + kPerTransaction; ++i) txn.set(row_key(i), "x");
    }));
  must(store.transact([](Transaction& txn) { txn.set("fresh/1", "x"); }));
  for (int from = 0; from < kRows; from += kPerTransaction)
    must(store.transact([&](Transaction& txn) { txn.clear_range({row_key(from), row_key(from + kPerTransaction)}); }));
  must(store.transact([](Transaction& txn) { txn.set("emptied/z", "x"); }));
  report(settings, "seek/fresh", [&] { return measure_seeks(store, prefix_range("fresh/")); });
  report(settings, "seek/emptied", [&] { return measure_seeks(store, prefix_range("emptied/")); });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  for (int callers : {1, 64, 256, 1024}) bench_rmw(settings, callers);
  bench_processes(settings, 4, 256);
  bench_counter(settings);
  bench_watch(settings);
  bench_emptied_range(settings);
  std::filesystem::remove_all(settings.directory + "/store");
}
