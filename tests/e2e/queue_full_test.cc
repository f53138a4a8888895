// A store that is full: emits are refused, but what is stored can be worked through, which makes room.
#include "queue_fixture.h"

namespace perdure::e2e {
namespace {

TEST(QueueFull, RefusesEmitsAndGoesOnWithCompletions) {
  Scratch scratch;
  StoreOptions options;
  options.map_bytes = std::size_t{8} << 20;
  options.reserve_bytes = std::size_t{1} << 20;
  Store store = must(Store::open(lmdb_url(scratch / "store"), options));
  Queue queue = must(Queue::open(store));
  const Value value(std::string(10'000, 'v'));
  for (int turn = 0; turn < 3; ++turn) {
    must(queue.pause(kTasks));
    std::uint64_t emitted = 0;
    auto one = queue.emit(kTasks, value);
    for (; one; one = queue.emit(kTasks, value)) ++emitted;
    EXPECT_EQ(one.error().code, ErrorCode::kStoreFull) << to_string(one.error());
    EXPECT_GT(emitted, 100u);
    WorkerInfo full = must(queue.worker(kTasks));
    EXPECT_EQ(full.ready, emitted);

    // To claim, to complete and to change a rule use the reserve.
    must(queue.unpause(kTasks));
    must(queue.work(kTasks, [](Job&) {}, {.concurrency = 16}));
    std::int64_t until = steady_ns() + std::chrono::nanoseconds(kPatience).count();
    while (must(queue.worker(kTasks)).total > 0 && steady_ns() < until) {
    }
    queue.stop_working(kTasks);
    WorkerInfo empty = must(queue.worker(kTasks));
    EXPECT_EQ(empty.total + empty.dead + empty.failed + empty.lost, 0u) << empty.total;
    EXPECT_EQ(empty.completed - full.completed, emitted);
  }
  must(queue.close());
  expect_sound(store);
}

}  // namespace
}  // namespace perdure::e2e
