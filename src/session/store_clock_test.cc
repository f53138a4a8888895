#include "session/store_clock.h"

#include <gtest/gtest.h>

#include "perdure/store.h"
#include "runtime/latch.h"
#include "sim/sim_scheduler.h"
#include "store/store_test_util.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;

class StoreClockTest : public ::testing::Test {
 protected:
  /// Lets `time` pass on both clocks.
  void pass(Duration time) {
    SteadyTime until = scheduler_.now() + time;
    bool over = false;
    scheduler_.at(until, [&] { over = true; });
    while (!over) ASSERT_TRUE(scheduler_.step());
  }

  sim::SimScheduler scheduler_{1};
  StoreClock clock_{scheduler_};
};

TEST_F(StoreClockTest, IsTheWallClockWhileThatGoesForward) {
  EXPECT_EQ(clock_.now(), scheduler_.wall_now());
  pass(10s);
  EXPECT_EQ(clock_.now(), scheduler_.wall_now());
  scheduler_.jump_wall_clock(1h);
  EXPECT_EQ(clock_.now(), scheduler_.wall_now());
}

TEST_F(StoreClockTest, AWallClockThatJumpsBackDoesNotTakeItAlong) {
  WallTime before = clock_.now();
  SteadyTime at = scheduler_.now();
  scheduler_.jump_wall_clock(-1h);
  EXPECT_EQ(clock_.now(), before);
  pass(10s);
  EXPECT_EQ(clock_.now(), before + (scheduler_.now() - at)) << "it goes on at the pace of the steady clock";
  scheduler_.jump_wall_clock(-1h);
  pass(10s);
  EXPECT_EQ(clock_.now(), before + (scheduler_.now() - at));
  // Once the wall clock is right again, it is the time.
  scheduler_.jump_wall_clock(2h + 1min);
  EXPECT_EQ(clock_.now(), scheduler_.wall_now());
}

TEST_F(StoreClockTest, AJumpForwardIsNotTakenBack) {
  scheduler_.jump_wall_clock(24h);
  WallTime ahead = clock_.now();
  SteadyTime at = scheduler_.now();
  scheduler_.jump_wall_clock(-24h);
  pass(1min);
  EXPECT_EQ(clock_.now(), ahead + (scheduler_.now() - at));
}

TEST_F(StoreClockTest, GoesOnFromWhatWasLearned) {
  WallTime floor = scheduler_.wall_now() + 1h;
  clock_.learn(floor);
  SteadyTime at = scheduler_.now();
  EXPECT_EQ(clock_.now(), floor);
  pass(10s);
  EXPECT_EQ(clock_.now(), floor + (scheduler_.now() - at));
  clock_.learn(floor);
  EXPECT_EQ(clock_.now(), floor + (scheduler_.now() - at)) << "it has been later than that since";
  scheduler_.jump_wall_clock(2h);
  EXPECT_EQ(clock_.now(), scheduler_.wall_now());
}

TEST_F(StoreClockTest, NeverGoesBackHoweverTheWallClockJumps) {
  WallTime last = clock_.now();
  for (int i = 0; i < 1000; ++i) {
    auto seconds = static_cast<Duration::rep>(scheduler_.random() % 7200) - 3600;
    scheduler_.jump_wall_clock(std::chrono::seconds(seconds));
    if (i % 3 == 0) pass(1s);
    if (i % 7 == 0) clock_.learn(last + 10s);
    WallTime now = clock_.now();
    ASSERT_GE(now, last + (i % 7 == 0 ? 10s : 0s));
    ASSERT_GE(now, scheduler_.wall_now());
    last = now;
  }
}

TEST_F(StoreClockTest, StandsStillAtTheEndOfTime) {
  clock_.learn(WallTime::max());
  pass(1s);
  EXPECT_EQ(clock_.now(), WallTime::max());
}

TEST(StoreClockRow, HoldsTheLatestTimeThatWasActedUpon) {
  Store store = fresh_store();
  auto read = [&] { return store.read([](Reader& reader) { return StoreClock::read(reader); }).value(); };
  EXPECT_EQ(read(), WallTime{});
  for (auto [time, expected] : std::vector<std::pair<Duration, Duration>>{{5s, 5s}, {3s, 5s}, {5s, 5s}, {8s, 8s}}) {
    ASSERT_TRUE(store.transact([&](Transaction& txn) { StoreClock::advance(txn, WallTime(time)); }));
    EXPECT_EQ(read(), WallTime(expected));
  }
}

TEST(StoreClockRow, DoesNotGoBackInATransactionThatWasOvertaken) {
  Store store = fresh_store();
  int runs = 0;
  auto done = store.transact([&](Transaction& txn) {
    StoreClock::advance(txn, WallTime(5s));
    if (++runs > 1) return;
    // Another commits in between, on a thread of the store.
    Latch committed;
    store.transact_async([](Transaction& other) { StoreClock::advance(other, WallTime(9s)); },
                         [&](Result<void> result) {
                           EXPECT_TRUE(result);
                           committed.set();
                         });
    ASSERT_TRUE(committed.wait_for(60s));
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(store.read([](Reader& reader) { return StoreClock::read(reader); }).value(), WallTime(9s));
}

}  // namespace
}  // namespace perdure
