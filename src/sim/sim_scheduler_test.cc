#include "sim/sim_scheduler.h"

#include <gtest/gtest.h>

#include <set>

#include "perdure/store.h"
#include "store/memory/memory_engine.h"

namespace perdure::sim {
namespace {

using std::chrono::seconds;

TEST(SimScheduler, TimeMovesOnlyToTheNextTimer) {
  SimScheduler scheduler(1);
  SteadyTime start = scheduler.now();
  std::vector<int> seen;
  scheduler.at(start + seconds(100), [&] { seen.push_back(2); });
  scheduler.at(start + seconds(5), [&] {
    seen.push_back(1);
    EXPECT_LT(scheduler.now(), start + seconds(6));
  });
  EXPECT_TRUE(scheduler.run());
  EXPECT_EQ(seen, (std::vector{1, 2}));
  EXPECT_GE(scheduler.now(), start + seconds(100));
}

TEST(SimScheduler, LanesKeepTheirOrderAndThePoolDoesNot) {
  std::set<std::vector<int>> pool_orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimScheduler scheduler(seed);
    auto lane = scheduler.lane("lane");
    std::vector<int> pool, in_lane;
    for (int i = 0; i < 4; ++i) {
      scheduler.post([&pool, i] { pool.push_back(i); });
      lane->post([&in_lane, i] { in_lane.push_back(i); });
    }
    EXPECT_TRUE(scheduler.run());
    EXPECT_EQ(in_lane, (std::vector{0, 1, 2, 3}));
    pool_orders.insert(pool);
  }
  EXPECT_GT(pool_orders.size(), 10u);
}

TEST(SimScheduler, ACancelledTimerNeverRuns) {
  SimScheduler scheduler(1);
  auto timer = scheduler.at(scheduler.now() + seconds(1), [] { FAIL(); });
  EXPECT_TRUE(scheduler.cancel(timer));
  EXPECT_FALSE(scheduler.cancel(timer));
  EXPECT_TRUE(scheduler.run());
}

TEST(SimScheduler, TheWallClockMayJumpAndTheSteadyOneDoesNot) {
  SimScheduler scheduler(1);
  SteadyTime steady = scheduler.now();
  WallTime wall = scheduler.wall_now();
  scheduler.jump_wall_clock(-seconds(3600));
  EXPECT_EQ(scheduler.now(), steady);
  EXPECT_EQ(scheduler.wall_now(), wall - seconds(3600));
}

/// Twenty callers that each increment one counter five times on the store that ships, under virtual time.
std::pair<std::int64_t, std::uint64_t> count_under(std::uint64_t seed, int& runs) {
  SimScheduler scheduler(seed);
  auto store = Store::on_engine(std::make_unique<memory::MemoryEngine>(scheduler), scheduler).value();
  std::function<void(int)> next = [&](int left) {
    if (left == 0) return;
    store.transact_async(
        [&runs](Transaction& txn) {
          ++runs;
          txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1));
        },
        [&next, left](Result<void> done) {
          EXPECT_TRUE(done) << to_string(done.error());
          next(left - 1);
        },
        {.timeout = seconds(60)});
  };
  for (int i = 0; i < 20; ++i) next(5);
  EXPECT_TRUE(scheduler.run());
  std::int64_t counted = decode_counter(store.read([](Reader& reader) { return reader.get("n"); }).value());
  return {counted, scheduler.trace_hash()};
}

TEST(SimScheduler, TheStoreRunsUnderVirtualTimeAndTheSameSeedRepeatsItself) {
  std::set<std::uint64_t> traces;
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto [counted, trace] = count_under(seed, runs);
    EXPECT_EQ(counted, 100) << "seed " << seed;
    EXPECT_EQ(count_under(seed, runs), std::pair(counted, trace)) << "seed " << seed;
    traces.insert(trace);
  }
  EXPECT_EQ(traces.size(), 20u);
  EXPECT_GT(runs, 2 * 20 * 100) << "no transaction ever lost a race";
}

}  // namespace
}  // namespace perdure::sim
