// The event queue: emitting, working through a backlog, both at once, from an emit to the start of its handler, and
// what a great number of stored events changes about that.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "queue_load.h"

namespace perdure::bench {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kConcurrency = 1024;
constexpr std::uint64_t kDrained = 100'000;

/// Nobody serves the worker while the clock runs; what was stored is worked through afterwards, as a proof.
void bench_emit(const Settings& settings, const std::string& name, int callers, std::uint64_t at_once) {
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Runs runs;
    QueueNode node(fresh_url(settings));
    Sample sample = emit_for(node, callers, at_once, settings.duration);
    expect_counts(node, runs, 0, sample.operations);
    work(node, runs, kConcurrency);
    wait_for_completed(node, sample.operations);
    expect_counts(node, runs, sample.operations, 0);
    return sample;
  });
}

/// The clock runs until everything that was emitted has been completed; the latency is that of the emits.
void bench_both(const Settings& settings) {
  const std::string name = "both/64+1024";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    Runs runs;
    QueueNode node(fresh_url(settings));
    work(node, runs, kConcurrency);
    auto start = Clock::now();
    auto cpu = cpu_time();
    Sample sample = emit_for(node, 64, 1, settings.duration);
    double emitted = static_cast<double>(sample.operations) / std::chrono::duration<double>(sample.elapsed).count();
    wait_for_completed(node, sample.operations);
    sample.elapsed = Clock::now() - start;
    sample.cpu = cpu_time() - cpu;
    expect_counts(node, runs, sample.operations, 0);
    sample.extra = ",\"emitted_per_s\":" + std::to_string(static_cast<std::uint64_t>(emitted));
    return sample;
  });
}

/// One event at a time on a queue where nothing else happens, from the call of emit to the start of its handler.
void bench_start(const Settings& settings) {
  const std::string name = "start/1";
  if (!settings.wants(name)) return;
  report(settings, name, [&] {
    QueueNode node(fresh_url(settings));
    Clock::time_point started;
    std::binary_semaphore ran{0};
    must(node.queue.work(kWorker, [&](Job&) {
      started = Clock::now();
      ran.release();
    }));
    Sample sample;
    auto start = Clock::now();
    while (Clock::now() - start < settings.duration) {
      auto begun = Clock::now();
      must(node.queue.emit(kWorker, numbered(sample.operations)));
      if (!ran.try_acquire_for(30s)) give_up("an event was not started");
      sample.latencies.push_back(started - begun);
      ++sample.operations;
      // Idle again: the completion is another commit, which the next emit must not share.
      for (QueueActivity now = node.queue.activity(); now.running + now.settling > 0; now = node.queue.activity())
        usleep(100);
    }
    sample.elapsed = Clock::now() - start;
    wait_for_completed(node, sample.operations);
    if (node.info().total != 0) give_up("events are left");
    sample.in_syncs = true;
    return sample;
  });
}

/// Memory of this process beyond the pages of files, as it stands.
std::uint64_t anonymous_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::uint64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes;
  return 0;
}

std::string short_number(std::uint64_t number) {
  if (number % 1'000'000 == 0) return std::to_string(number / 1'000'000) + "m";
  return number % 1000 == 0 ? std::to_string(number / 1000) + "k" : std::to_string(number);
}

/// In a process of its own, so that what it leaves in the heap is not measured.
void fill_elsewhere(const std::string& url, std::uint64_t count) {
  pid_t child = fork();
  if (child == 0) {
    {
      QueueNode node(url);
      fill(node, count);
    }
    _exit(0);
  }
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) give_up("the store could not be filled");
}

/// Works through the first `kDrained` events or all that there are; the clock runs from the registration of the handler
/// until so many completions are durable.
Sample drain(QueueNode& node, std::uint64_t backlog) {
  Runs runs;
  std::uint64_t wanted = std::min(backlog, kDrained);
  auto start = Clock::now();
  auto cpu = cpu_time();
  work(node, runs, kConcurrency);
  wait_for_completed(node, wanted);
  Sample sample;
  sample.elapsed = Clock::now() - start;
  sample.cpu = cpu_time() - cpu;
  sample.operations = node.info().completed;
  sample.extra = ",\"anon_kb\":" + std::to_string(anonymous_kilobytes());
  node.queue.stop_working(kWorker);
  while (node.info().running > 0) usleep(1000);
  std::uint64_t completed = runs.count();
  expect_counts(node, runs, completed, backlog - completed);
  return sample;
}

/// Opening, looking at the counts, and draining, with so many events stored.
void bench_backlog(const Settings& settings, std::uint64_t backlog) {
  std::string suffix = "+" + short_number(backlog);
  std::string opening = "open" + suffix, counts = "counts" + suffix;
  std::string draining = "drain/1024" + (backlog == kDrained ? "" : suffix);
  if (!settings.wants(opening) && !settings.wants(counts) && !settings.wants(draining)) return;
  std::string url = fresh_url(settings);
  fill_elsewhere(url, backlog);
  if (settings.wants(opening))
    report(settings, opening, [&] {
      Sample sample;
      auto start = Clock::now();
      QueueNode node(url);
      sample.elapsed = Clock::now() - start;
      sample.operations = 1;
      sample.latencies = {sample.elapsed};
      std::uint64_t bytes = std::filesystem::file_size(settings.directory + "/store/data.mdb");
      sample.extra =
          ",\"open_ms\":" + std::to_string(std::chrono::duration<double, std::milli>(sample.elapsed).count()) +
          ",\"file_mb\":" + std::to_string(bytes >> 20);
      if (node.info().ready != backlog) give_up("events are missing");
      return sample;
    });
  if (settings.wants(counts))
    report(settings, counts, [&] {
      QueueNode node(url);
      Sample sample;
      auto start = Clock::now();
      for (int i = 0; i < 2000; ++i) {
        auto begun = Clock::now();
        if (node.info().total != backlog) give_up("events are missing");
        sample.latencies.push_back(Clock::now() - begun);
      }
      sample.elapsed = Clock::now() - start;
      sample.operations = sample.latencies.size();
      return sample;
    });
  if (!settings.wants(draining)) return;
  report(settings, draining, [&] {
    Sample sum;
    // Small ones are made and drained again and again: a single one is over before it has begun.
    for (std::uint64_t round = 0; round < std::max<std::uint64_t>(1, kDrained / backlog); ++round) {
      if (round > 0) fill_elsewhere(url = fresh_url(settings), backlog);
      QueueNode node(url);
      Sample sample = drain(node, backlog);
      sum.operations += sample.operations;
      sum.elapsed += sample.elapsed;
      sum.cpu += sample.cpu;
      sum.extra = sample.extra;
    }
    return sum;
  });
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) {
  using namespace perdure::bench;
  Settings settings = parse_settings(argc, argv);
  bench_emit(settings, "emit/64", 64, 1);
  bench_emit(settings, "emit_many/100x16", 16, 100);
  bench_both(settings);
  bench_start(settings);
  for (std::uint64_t backlog : {10'000u, 100'000u, 1'000'000u, 10'000'000u})
    if (backlog <= settings.events) bench_backlog(settings, backlog);
  std::filesystem::remove_all(settings.directory + "/store");
}
