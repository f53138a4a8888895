#include "sim/node_scheduler.h"

#include <gtest/gtest.h>

#include "sim/streams.h"

namespace perdure::sim {
namespace {

using std::chrono::seconds;

struct TwoNodes : testing::Test {
  Timeline timeline{1};
  NodeScheduler a{timeline, "a", 1}, b{timeline, "b", 1};
};

TEST_F(TwoNodes, APausedNodeRunsNothingWhileTimeGoesOnForTheOther) {
  SteadyTime begin = timeline.now();
  std::vector<std::string> seen;
  a.pause_until(begin + seconds(10));
  a.post([&] { seen.push_back("a posted"); });
  a.at(begin + seconds(1), [&] {
    seen.push_back("a timer");
    EXPECT_GE(a.now(), begin + seconds(10));
  });
  b.at(begin + seconds(5), [&] { seen.push_back("b"); });
  while (timeline.step()) continue;
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], "b");
}

TEST_F(TwoNodes, StepsEndAtTheGivenTime) {
  SteadyTime begin = timeline.now();
  bool ran = false;
  a.at(begin + seconds(2), [&] { ran = true; });
  EXPECT_FALSE(timeline.step(begin + seconds(1)));
  EXPECT_EQ(timeline.now(), begin + seconds(1));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(timeline.step(begin + seconds(3)));
  EXPECT_TRUE(ran);
}

TEST_F(TwoNodes, WallClocksAreEachNodesOwn) {
  WallTime before = b.wall_now();
  a.jump_wall_clock(seconds(60));
  EXPECT_EQ(b.wall_now(), before);
  EXPECT_EQ(a.wall_now(), before + seconds(60));
}

TEST_F(TwoNodes, TasksRunOnTheirOwnNode) {
  bool right = false;
  a.post([&] { right = a.runs_here() && !b.runs_here(); });
  EXPECT_FALSE(a.runs_here());
  EXPECT_TRUE(timeline.step());
  EXPECT_TRUE(right);
}

TEST_F(TwoNodes, ChanceOfANodeDependsOnItsNameAndOnNobodyElse) {
  Timeline other(1);
  NodeScheduler alone(other, "b", 1), renamed(other, "c", 1);
  a.random();
  std::uint64_t drawn = b.random();
  EXPECT_EQ(drawn, alone.random());
  EXPECT_NE(drawn, renamed.random());
}

TEST_F(TwoNodes, DrainRunsOneNodeAloneOnAClockThatRunsAhead) {
  SteadyTime begin = timeline.now();
  bool a_done = false, b_ran = false;
  a.at(begin + seconds(100), [&] { a.post([&] { a_done = true; }); });
  b.post([&] { b_ran = true; });
  EXPECT_TRUE(a.drain([&] { return a_done; }, 100));
  EXPECT_EQ(timeline.now(), begin);
  EXPECT_GE(a.now(), begin + seconds(100));
  EXPECT_FALSE(b_ran);
  a.post([] { FAIL() << "the node is out of the world"; });
  while (timeline.step()) continue;
  EXPECT_TRUE(b_ran);
}

TEST_F(TwoNodes, DrainGivesUpOnWhatNeverEnds) {
  std::function<void()> again = [&] { a.post([&] { again(); }); };
  again();
  EXPECT_FALSE(a.drain([] { return false; }, 1000));
  EXPECT_FALSE(b.drain([] { return false; }, 1000)) << "nothing is left to run";
}

TEST_F(TwoNodes, DroppedTasksMayPostAndCancelWhileTheyDie) {
  struct Meddler {
    NodeScheduler& node;
    Executor::TimerId timer;
    ~Meddler() {
      node.cancel(timer);
      node.post([] {});
    }
  };
  auto timer = a.at(timeline.now() + seconds(1), [] {});
  a.post([meddler = std::make_shared<Meddler>(a, timer)] {});
  a.drop_everything();
  while (timeline.step()) continue;
  EXPECT_EQ(timeline.steps(), 0u);
}

TEST(Streams, DelaysStayWithinTheirBoundAndShortOnesAreMoreLikely) {
  Random random = stream(1, "delays");
  int below_half = 0;
  for (int i = 0; i < 1000; ++i) {
    Duration delay = draw_delay(random, Duration(100));
    EXPECT_LE(delay, Duration(100));
    below_half += delay < Duration(50) ? 1 : 0;
  }
  EXPECT_GT(below_half, 600);
}

}  // namespace
}  // namespace perdure::sim
