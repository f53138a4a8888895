#include "session/due_loop.h"

#include <gtest/gtest.h>

#include "perdure/testing.h"
#include "perdure/tuple.h"
#include "store/store_part.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;

constexpr std::size_t kAtOnce = 2;

Bytes due_key(WallTime when, int number) {
  return tuple::pack("due", when.time_since_epoch().count(), number);
}

Bytes bell_key() {
  return tuple::pack("bell");
}

/// Clears rows whose time has come, and notes when that was.
class Home : public StorePart<Home> {
 public:
  explicit Home(Store& store) : StorePart(store, "the homes of this test"), clock_(scheduler_) {}

  StoreClock& clock() { return clock_; }
  DueLoop<Home>& loop() { return loop_; }
  void close() { gate_.close(); }

  std::vector<WallTime> done;
  int turns = 0;
  int failures = 0;
  int told = 0;

 private:
  DueLoop<Home>::Turn turn(Transaction& txn, WallTime now) {
    ++turns;
    if (failures > 0) {
      --failures;
      SystemAccess(txn).refuse({ErrorCode::kInvalidArgument, "as the test wants it"});
    }
    DueLoop<Home>::Turn turn;
    turn.committed = [this] { ++told; };
    std::size_t count = 0;
    for (const Row& row : txn.get_range(tuple::extensions(tuple::pack("due")), {.limit = kAtOnce + 1})) {
      auto parts = tuple::unpack_after<std::int64_t, std::int64_t>(tuple::pack("due"), row.key);
      WallTime when{Duration(std::get<0>(*parts))};
      if (when > now) {
        turn.next = when;
        break;
      }
      turn.more = count == kAtOnce;
      if (turn.more) break;
      ++count;
      txn.clear(row.key);
      done.push_back(now);
    }
    turn.acted = count > 0;
    return turn;
  }

  StoreClock clock_;
  DueLoop<Home> loop_{*this, bell_key(), [this](Transaction& txn, WallTime now) { return turn(txn, now); }};
};

class DueLoopTest : public ::testing::Test {
 protected:
  DueLoopTest() : sim_({.seed = 1, .nodes = 1, .store = testing::StoreKind::kEmbedded}) {
    sim_.on_start([this](Node& node) {
      node_ = &node;
      home_ = std::make_shared<Home>(node.store());
      node.keep(std::shared_ptr<Home>(home_.get(), [home = home_](Home* raw) { raw->close(); }));
    });
    sim_.run_for(1ms);
  }
  void start() {
    home_->loop().start();
    sim_.run_for(10ms);
  }
  /// From now, at store time.
  WallTime in(Duration delay) { return node_->wall_now() + delay; }
  void put(std::vector<WallTime> due) {
    node_->store().transact_async(
        [due](Transaction& txn) {
          for (std::size_t i = 0; i < due.size(); ++i) txn.set(due_key(due[i], static_cast<int>(i)), "");
          txn.add(bell_key(), 1);
        },
        [](const Result<void>& put, Receipt) { ASSERT_TRUE(put); });
    sim_.run_for(10ms);
  }
  WallTime floor() {
    return sim_.read([](Reader& reader) { return StoreClock::read(reader); }).value();
  }

  Simulation sim_;
  Node* node_ = nullptr;
  std::shared_ptr<Home> home_;
};

TEST_F(DueLoopTest, WithNothingStoredItTakesOneTurnAndWritesNothing) {
  start();
  sim_.run_for(24h);
  EXPECT_EQ(home_->turns, 1);
  EXPECT_EQ(floor(), WallTime{});
}

TEST_F(DueLoopTest, DoesEachInItsTimeAndAdvancesTheClock) {
  start();
  WallTime first = in(10s), second = in(20s);
  put({second, first});
  sim_.run_for(1min);
  ASSERT_EQ(home_->done.size(), 2u);
  EXPECT_GE(home_->done[0], first);
  EXPECT_LT(home_->done[0], first + 100ms);
  EXPECT_GE(home_->done[1], second);
  EXPECT_LT(home_->done[1], second + 100ms);
  EXPECT_EQ(floor(), home_->done[1]);
  EXPECT_LE(home_->turns, 4) << "the first, by the bell, and one for each";
}

TEST_F(DueLoopTest, TheBellTellsOfOneThatIsSooner) {
  WallTime late = in(30s);
  put({late});
  start();
  WallTime soon = in(5s);
  put({soon});
  sim_.run_for(10s);
  ASSERT_EQ(home_->done.size(), 1u);
  EXPECT_LT(home_->done[0], soon + 100ms);
  sim_.run_for(30s);
  EXPECT_EQ(home_->done.size(), 2u);
}

TEST_F(DueLoopTest, MoreThanATurnTakesIsDoneAtOnceInSeveral) {
  std::vector<WallTime> due(5, in(1s));
  put(due);
  start();
  sim_.run_for(1100ms);
  EXPECT_EQ(home_->done.size(), 5u);
}

TEST_F(DueLoopTest, ATurnThatFailsIsTakenAgain) {
  home_->failures = 3;
  put({in(0s)});
  start();
  EXPECT_EQ(home_->done.size(), 0u);
  sim_.run_for(1s);
  EXPECT_EQ(home_->done.size(), 1u);
  EXPECT_EQ(home_->turns, 4);
  EXPECT_EQ(home_->told, 1) << "only of what has committed";
}

TEST_F(DueLoopTest, AWallClockThatJumpsAheadIsNoticedWithinAMinute) {
  put({in(24h)});
  start();
  sim_.jump_wall_clock(0, 24h);
  sim_.run_for(61s);
  EXPECT_EQ(home_->done.size(), 1u);
}

TEST_F(DueLoopTest, WakingItTakesATurnThatNeitherBellNorTimerBrought) {
  start();
  home_->loop().wake();
  home_->loop().wake();
  sim_.run_for(1s);
  EXPECT_EQ(home_->turns, 3) << "the first, and one for each: the second came while that was under way";
}

TEST_F(DueLoopTest, ItEndsWithItsHome) {
  put({in(1h)});
  start();
  home_->close();
  int before = home_->turns;
  sim_.run_for(2h);
  home_->loop().wake();
  sim_.run_for(1s);
  EXPECT_EQ(home_->turns, before);
}

}  // namespace
}  // namespace perdure
