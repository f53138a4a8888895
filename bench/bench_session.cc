// Sessions: taking and releasing leases, handing them over, what renewing costs, what a fence costs, and the sweeping
// of a session that died.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <semaphore>

#include "callers.h"
#include "harness.h"
#include "perdure/session.h"
#include "perdure/store.h"

namespace perdure::bench {
namespace {

using namespace std::chrono_literals;

void take_and_release(Session& session, const std::string& name, std::function<void()> done) {
  session.acquire_async(name, 1h, [done = std::move(done)](Result<Lease> lease) mutable {
    must(std::move(lease)).release_async([done = std::move(done)](Result<void> released) {
      must(std::move(released));
      done();
    });
  });
}

/// Acquire and release, each caller with a name of its own.
void bench_pairs(const Settings& settings, int callers) {
  std::string name = "pairs/" + std::to_string(callers);
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Store store = must(Store::open(fresh_url(settings)));
    Session session = must(Session::open(store));
    return Callers([&](int caller, std::function<void()> done) {
             take_and_release(session, "lease/" + std::to_string(caller), std::move(done));
           })
        .run(callers, settings.duration);
  });
}

/// The same with one name for all: each waits for those before it.
void bench_hot_name(const Settings& settings) {
  if (!settings.wants("hot/64")) return;
  report(settings, "hot/64", [&] {
    Store store = must(Store::open(fresh_url(settings)));
    Session session = must(Session::open(store));
    return Callers([&](int, std::function<void()> done) { take_and_release(session, "lease", std::move(done)); })
        .run(64, settings.duration);
  });
}

/// Two sessions take one lease from each other in turn.
void bench_hand_over(const Settings& settings) {
  if (!settings.wants("hand-over/sessions")) return;
  report(settings, "hand-over/sessions", [&] {
    Store store = must(Store::open(fresh_url(settings)));
    std::vector<Session> sessions;
    for (int i = 0; i < 2; ++i) sessions.push_back(must(Session::open(store)));
    return Callers([&](int caller, std::function<void()> done) {
             take_and_release(sessions[static_cast<std::size_t>(caller)], "lease", std::move(done));
           })
        .run(2, settings.duration);
  });
}

/// Another process with a session, which tells when it is ready and goes on until it is killed.
class OtherProcess {
 public:
  /// `run` calls `ready` when it is.
  explicit OtherProcess(const std::function<void(const std::function<void()>& ready)>& run) {
    int ready[2];
    if (pipe(ready) != 0) std::exit(1);
    pid_ = fork();
    if (pid_ == 0) {
      run([&] {
        if (write(ready[1], "r", 1) != 1) _exit(1);
      });
      for (;;) pause();
    }
    close(ready[1]);
    char byte;
    if (read(ready[0], &byte, 1) != 1) std::exit(1);
    close(ready[0]);
  }
  ~OtherProcess() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

/// Two processes take one lease from each other in turn. Counts what this one does, half of all.
void bench_hand_over_processes(const Settings& settings) {
  if (!settings.wants("hand-over/processes")) return;
  report(settings, "hand-over/processes", [&] {
    std::string url = fresh_url(settings);
    OtherProcess other([&](const std::function<void()>& ready) {
      Store store = must(Store::open(url));
      Session session = must(Session::open(store));
      ready();
      Callers([&](int, std::function<void()> done) {
        take_and_release(session, "lease", std::move(done));
      }).run(1, 24h);
    });
    Store store = must(Store::open(url));
    Session session = must(Session::open(store));
    return Callers([&](int, std::function<void()> done) { take_and_release(session, "lease", std::move(done)); })
        .run(1, settings.duration);
  });
}

/// The store's newest version: each transaction that writes takes the next.
std::uint64_t last_version(Store& store) {
  Receipt receipt;
  must(store.transact([](Transaction& txn) { txn.set("mark", ""); }, {}, &receipt));
  return receipt.version.number;
}

void hold(Session& session, int leases) {
  std::counting_semaphore<> answered(0);
  for (int i = 0; i < leases; ++i)
    session.acquire_async("held/" + std::to_string(i), 0s, [&](Result<Lease> lease) {
      must(std::move(lease));
      answered.release();
    });
  for (int i = 0; i < leases; ++i) answered.acquire();
}

/// How much is written for a session that only holds what it has. The rate is that of the renewals.
void bench_renewals(const Settings& settings, int leases) {
  std::string name = "renewals/" + std::to_string(leases) + "-held";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    constexpr int kPeriods = 10;
    constexpr auto kRenew = 100ms;
    Store store = must(Store::open(fresh_url(settings)));
    Session session = must(Session::open(store, {.ttl = 2s, .renew = kRenew}));
    hold(session, leases);
    std::uint64_t before = last_version(store);
    auto start = Clock::now();
    usleep(kPeriods * std::chrono::microseconds(kRenew).count());
    Sample sample;
    sample.elapsed = Clock::now() - start;
    // One of them is that of the mark.
    sample.operations = last_version(store) - before - 1;
    char extra[64];
    std::snprintf(extra, sizeof extra, ",\"writes_per_period\":%.2f",
                  static_cast<double>(sample.operations) * (kRenew / std::chrono::duration<double>(sample.elapsed)));
    sample.extra = extra;
    return sample;
  });
}

/// The same transaction without a fence and with one, 64 in flight.
void bench_fence(const Settings& settings, bool fenced) {
  std::string name = fenced ? "write/fenced" : "write/unfenced";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Store store = must(Store::open(fresh_url(settings)));
    Session session = must(Session::open(store));
    Lease lease = must(session.acquire("lease"));
    return Callers([&](int caller, std::function<void()> done) {
             store.transact_async(
                 [&lease, caller, fenced](Transaction& txn) {
                   if (fenced) lease.fence(txn);
                   txn.set("key/" + std::to_string(caller), "value");
                 },
                 [done = std::move(done)](Result<void> result) {
                   must(std::move(result));
                   done();
                 });
           })
        .run(64, settings.duration);
  });
}

/// A process that holds many leases is killed: how long until the last of them is free for others, and until nothing of
/// it is left.
void bench_sweep(const Settings& settings) {
  if (!settings.wants("sweep/10000")) return;
  report(settings, "sweep/10000", [&] {
    constexpr int kLeases = 10'000;
    std::string url = fresh_url(settings);
    OtherProcess other([&](const std::function<void()>& ready) {
      static Store store = must(Store::open(url));
      static Session session = must(Session::open(store));
      hold(session, kLeases);
      ready();
    });
    Store store = must(Store::open(url));
    Session session = must(Session::open(store));
    must(store.transact([](Transaction& txn) { txn.set("mark", ""); }));
    std::uint64_t rows = must(store.verify()).rows;
    std::uint64_t before = last_version(store);
    auto start = Clock::now();
    other.kill();
    must(session.acquire("held/9999", 10s));
    auto free = Clock::now();
    // Two rows for each lease, two of the dead session; this one has taken a lease in its place.
    while (must(store.verify()).rows > rows - 2 * kLeases) usleep(1000);
    Sample sample;
    sample.elapsed = Clock::now() - start;
    sample.operations = kLeases;
    char extra[96];
    std::snprintf(extra, sizeof extra, ",\"free_ms\":%.1f,\"swept_ms\":%.1f,\"transactions\":%llu",
                  std::chrono::duration<double, std::milli>(free - start).count(),
                  std::chrono::duration<double, std::milli>(sample.elapsed).count(),
                  static_cast<unsigned long long>(last_version(store) - before - 1));
    sample.extra = extra;
    return sample;
  });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  for (int callers : {1, 64, 256}) bench_pairs(settings, callers);
  bench_hot_name(settings);
  bench_hand_over(settings);
  bench_hand_over_processes(settings);
  for (int leases : {100, 10'000}) bench_renewals(settings, leases);
  for (bool fenced : {false, true}) bench_fence(settings, fenced);
  bench_sweep(settings);
  std::filesystem::remove_all(settings.directory + "/store");
}
