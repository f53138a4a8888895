#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "runtime/latch.h"
#include "runtime/thread_pool.h"

namespace perdure {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(ThreadPool, DestructionRunsWhatWasPostedAndWhatThatPosts) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool("test", 2);
    for (int i = 0; i < 1000; ++i)
      pool.post([&] {
        ++ran;
        pool.post([&] { ++ran; });
      });
  }
  EXPECT_EQ(ran, 2000);
}

TEST(ThreadPool, LaneKeepsTheOrderOfPosting) {
  ThreadPool pool("test", 2);
  std::vector<int> seen;
  {
    auto lane = pool.lane("lane");
    for (int i = 0; i < 1000; ++i) lane->post([&seen, i] { seen.push_back(i); });
  }
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(ThreadPool, TimersRunInOrderOfTheirTimeAndNeverEarly) {
  ThreadPool pool("test", 1);
  std::vector<int> seen;
  Latch done;
  SteadyTime start = pool.now();
  SteadyTime late = start + milliseconds(20);
  pool.at(late, [&] {
    seen.push_back(2);
    EXPECT_GE(pool.now(), late);
    done.set();
  });
  pool.at(start + milliseconds(5), [&] { seen.push_back(1); });
  done.wait();
  EXPECT_EQ(seen, (std::vector{1, 2}));
}

TEST(ThreadPool, ACancelledTimerNeverRuns) {
  ThreadPool pool("test", 1);
  Latch done;
  bool ran = false;
  auto timer = pool.at(pool.now() + milliseconds(10), [&] { ran = true; });
  EXPECT_TRUE(pool.cancel(timer));
  EXPECT_FALSE(pool.cancel(timer));
  pool.at(pool.now() + milliseconds(20), [&] { done.set(); });
  done.wait();
  EXPECT_FALSE(ran);
}

TEST(ThreadPool, FarTimersAreDroppedAtTheEnd) {
  ThreadPool pool("test", 1);
  pool.at(pool.now() + hours(24 * 365 * 100), [] { FAIL(); });
}

TEST(Latch, WaitSeesWhatWasSetBeforeAndTimesOutWhenNot) {
  Latch event;
  EXPECT_FALSE(event.wait_for(milliseconds(1)));
  event.set();
  EXPECT_TRUE(event.wait_for(Duration::max()));
  event.wait();
}

}  // namespace
}  // namespace perdure
