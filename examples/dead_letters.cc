// An event that fails again and again becomes a dead letter: nothing is lost, somebody looks, mends and redrives.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "perdure/queue.h"

using namespace perdure;
using namespace std::chrono_literals;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  Queue queue = must(Queue::open(store));
  std::atomic<bool> mended = false;
  auto import = [&](Job& job) -> Result<std::string> {
    if (!mended) return fail(ErrorCode::kNotFound, "there is no table for " + *job.value().as_text());
    return "imported " + *job.value().as_text();
  };
  // [dead]
  // Two attempts in all, 50 ms apart; kept in the store, for all nodes that work on it.
  if (!queue.configure("import", WorkerSettings{.retry = {.delay = 50ms, .max = 1}})) return 1;
  if (!queue.work("import", import)) return 1;

  Uuid id = must(queue.emit("import", "orders.csv")).id;
  while (must(queue.get(id)).state != EventState::kDead) std::this_thread::sleep_for(10ms);
  for (const Event& dead : must(queue.list({.worker = "import", .state = EventState::kDead})).events)
    std::printf("dead after %d attempts: %s\n", dead.attempts, dead.last_error.c_str());

  mended = true;
  std::printf("%llu put back\n", static_cast<unsigned long long>(must(queue.redrive("import"))));
  std::printf("%s\n", must(queue.wait(id, 10s)).result.as_text()->c_str());
  // [dead]
}
