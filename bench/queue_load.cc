#include "queue_load.h"

#include <unistd.h>

#include <semaphore>

namespace perdure::bench {

using namespace std::chrono_literals;

void work(QueueNode& node, Runs& runs, unsigned concurrency) {
  must(node.queue.work(kWorker, [&runs](Job& job) { runs.note(job); }, {.concurrency = concurrency}));
}

void fill(QueueNode& node, std::uint64_t count) {
  constexpr std::uint64_t kBatch = 1000;
  constexpr int kInFlight = 8;
  std::counting_semaphore<> free(kInFlight);
  for (std::uint64_t first = 0; first < count; first += kBatch) {
    free.acquire();
    node.queue.emit_many_async(batch_of(first, std::min(kBatch, count - first)),
                               [&](Result<std::vector<Emitted>> emitted) {
                                 must(std::move(emitted));
                                 free.release();
                               });
  }
  for (int i = 0; i < kInFlight; ++i) free.acquire();
}

Sample emit_for(QueueNode& node, int callers, std::uint64_t at_once, std::chrono::milliseconds duration) {
  std::atomic<std::uint64_t> next = 0;
  auto cpu = cpu_time();
  Sample sample =
      Callers([&](int, std::function<void()> done) {
        std::uint64_t first = next.fetch_add(at_once);
        if (at_once == 1)
          node.queue.emit_async(kWorker, numbered(first), {}, [done = std::move(done)](Result<Emitted> one) {
            must(std::move(one));
            done();
          });
        else
          node.queue.emit_many_async(batch_of(first, at_once),
                                     [done = std::move(done)](Result<std::vector<Emitted>> all) {
                                       must(std::move(all));
                                       done();
                                     });
      }).run(callers, duration);
  sample.operations *= at_once;
  sample.cpu = cpu_time() - cpu;
  return sample;
}

void wait_for_completed(QueueNode& node, std::uint64_t count) {
  for (auto patience = Clock::now() + 300s; node.info().completed < count;) {
    if (Clock::now() > patience)
      give_up(std::to_string(node.info().completed) + " of " + std::to_string(count) + " events were completed");
    usleep(1000);
  }
}

void expect_counts(QueueNode& node, const Runs& runs, std::uint64_t completed, std::uint64_t stored) {
  auto expect = [](const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found != expected)
      give_up(std::string(what) + ": " + std::to_string(found) + " instead of " + std::to_string(expected));
  };
  WorkerInfo info = node.info();
  expect("events that have run", runs.count(), completed);
  expect("completed", info.completed, completed);
  expect("total", info.total, stored);
  expect("ready", info.ready, stored);
  expect("running", info.running, 0);
  expect("scheduled, dead, failed, lost", info.scheduled + info.dead + info.failed + info.lost, 0);
}

}  // namespace perdure::bench
