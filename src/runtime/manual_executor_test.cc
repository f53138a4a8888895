#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/latch.h"
#include "runtime/manual_scheduler.h"

namespace perdure {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class ManualExecutorTest : public ::testing::Test {
 protected:
  int wakes_ = 0;
  ManualExecutor executor_{[this] { ++wakes_; }};
  ManualScheduler& scheduler_ = ManualExecutorAccess::scheduler(executor_);
};

TEST_F(ManualExecutorTest, RunsNothingButWhenPolledAndInOrder) {
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) scheduler_.post([&ran, i] { ran.push_back(i); });
  EXPECT_TRUE(ran.empty());
  EXPECT_EQ(executor_.next_due(), Duration::zero());
  EXPECT_EQ(executor_.poll(), 3u);
  EXPECT_EQ(ran, (std::vector{0, 1, 2}));
  EXPECT_EQ(executor_.poll(), 0u);
  EXPECT_EQ(executor_.next_due(), std::nullopt);
}

TEST_F(ManualExecutorTest, WakesOnceForAllThatCameSinceTheLastPoll) {
  for (int i = 0; i < 3; ++i) scheduler_.post([] {});
  EXPECT_EQ(wakes_, 1);
  executor_.poll();
  EXPECT_EQ(wakes_, 1);
  scheduler_.post([] {});
  EXPECT_EQ(wakes_, 2);
}

TEST_F(ManualExecutorTest, WhatATaskPostsIsLeftForTheNextPollAndWakes) {
  scheduler_.post([&] { scheduler_.post([] {}); });
  EXPECT_EQ(executor_.poll(), 1u);
  EXPECT_EQ(wakes_, 2);
  EXPECT_EQ(executor_.poll(), 1u);
}

TEST_F(ManualExecutorTest, ABoundedPollWakesForWhatItLeaves) {
  for (int i = 0; i < 3; ++i) scheduler_.post([] {});
  EXPECT_EQ(executor_.poll(2), 2u);
  EXPECT_EQ(wakes_, 2);
  EXPECT_EQ(executor_.poll(2), 1u);
  EXPECT_EQ(wakes_, 2);
}

TEST_F(ManualExecutorTest, PollInsideOfATaskDoesNothing) {
  std::size_t inner = 7;
  scheduler_.post([&] { inner = executor_.poll(); });
  scheduler_.post([] {});
  EXPECT_EQ(executor_.poll(), 2u);
  EXPECT_EQ(inner, 0u);
}

TEST_F(ManualExecutorTest, TimersAreDueInTheirTimeAndCanBeCancelled) {
  bool ran = false;
  auto far = scheduler_.at(scheduler_.now() + hours(1), [] { FAIL(); });
  EXPECT_EQ(wakes_, 1) << "the host sleeps until something else otherwise";
  ASSERT_TRUE(executor_.next_due());
  EXPECT_GT(*executor_.next_due(), milliseconds(1));
  EXPECT_EQ(executor_.poll(), 0u);
  scheduler_.at(scheduler_.now(), [&] { ran = true; });
  EXPECT_EQ(wakes_, 2);
  EXPECT_EQ(executor_.next_due(), Duration::zero());
  EXPECT_EQ(executor_.poll(), 1u);
  EXPECT_TRUE(ran);
  EXPECT_TRUE(scheduler_.cancel(far));
  EXPECT_FALSE(scheduler_.cancel(far));
  EXPECT_EQ(executor_.next_due(), std::nullopt);
}

TEST_F(ManualExecutorTest, AWaitingThreadRunsWhatAnotherPosts) {
  bool ran = false;
  std::thread other([&] { scheduler_.post([&] { ran = true; }); });
  scheduler_.poll_or_wait(SteadyTime::max());
  other.join();
  EXPECT_TRUE(ran);
}

TEST_F(ManualExecutorTest, TasksRunOnItAndNowhereElse) {
  EXPECT_FALSE(scheduler_.runs_here());
  bool here = false;
  scheduler_.post([&] { here = scheduler_.runs_here(); });
  executor_.poll();
  EXPECT_TRUE(here);
  EXPECT_FALSE(scheduler_.runs_here());
}

}  // namespace
}  // namespace perdure
