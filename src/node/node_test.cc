// A node: opened, held, released, closed, and opened again.
#include <unistd.h>

#include "actor/test_kinds.h"
#include "node/node_fixture.h"

namespace perdure {
namespace {

using actor::Add;
using actor::Counter;
using actor::Get;

class NodeTest : public NodeFixture {
 protected:
  void SetUp() override {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    directory_ = std::filesystem::temp_directory_path() / ("perdure-" + name + "-" + std::to_string(getpid()));
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  NodeOptions options(Dispatch dispatch = Dispatch::kOn, StoreTime time = StoreTime::kPasses) const {
    return {.store = "lmdb:" + directory_.string(), .dispatch = dispatch, .time = time};
  }

  std::filesystem::path directory_;
};

TEST_F(NodeTest, WhatOneNodeStoredTheNextFinds) {
  Uuid id;
  {
    auto node = open(options());
    ASSERT_TRUE(node->actors().serve(Counter()));
    id = node->queue().emit("mail", "hello")->id;
    EXPECT_EQ(node->actors().of<Counter>("a").call(Add{3}).value(), 3);
    ASSERT_TRUE(node->schedules().set("daily", {.every = "Daily", .worker = "report"}));
    ASSERT_TRUE(node->debouncers().set("build", {.quiet = 1h}));
    ASSERT_TRUE(node->debouncers().touch("build", "main"));
    EXPECT_TRUE(node->close(10s));
    EXPECT_EQ(code_of(node->queue().emit("mail", "late")), ErrorCode::kClosed);
  }
  auto node = open(options());
  ASSERT_TRUE(node->actors().serve(Counter()));
  EXPECT_EQ(node->queue().get(id)->value, Value("hello"));
  EXPECT_EQ(node->actors().of<Counter>("a").call(Get{}).value(), 3);
  EXPECT_TRUE(node->schedules().get("daily"));
  EXPECT_EQ(node->debouncers().key("build", "main")->status, KeyStatus::kWaiting);
}

TEST_F(NodeTest, ANodeThatIsOpenedHeldStoresAllAndBeginsNothingUntilTheRelease) {
  auto node = open(options(Dispatch::kHeld));
  EXPECT_TRUE(node->held());
  std::atomic<int> runs = 0;
  ASSERT_TRUE(node->queue().work("mail", [&](Job&) { ++runs; }));
  ASSERT_TRUE(node->actors().serve(Counter()));
  ASSERT_TRUE(node->debouncers().set("build", {.quiet = 1ms, .worker = "mail"}));
  ASSERT_TRUE(node->schedules().set("often", {.every = "Every 1min", .worker = "mail"}));
  auto id = node->queue().emit("mail", 1)->id;
  ASSERT_TRUE(node->actors().of<Counter>("a").cast(Add{1}));
  ASSERT_TRUE(node->debouncers().touch("build", "main"));
  EXPECT_EQ(node->queue().get(id)->state, EventState::kReady);
  EXPECT_EQ(node->actors().actor("counter", "a").inspect()->mailbox_length, 1U);
  EXPECT_EQ(node->schedules().get("often")->last, std::nullopt) << "its first time is now";
  EXPECT_EQ(runs, 0);
  node->release();
  EXPECT_FALSE(node->held());
  EXPECT_TRUE(eventually([&] { return runs == 3; })) << "the event, the schedule's and the window's";
  EXPECT_EQ(node->actors().of<Counter>("a").call(Get{}).value(), 1);
}

TEST_F(NodeTest, HoldingAndReleasingAreIdempotent) {
  auto node = open(options());
  EXPECT_FALSE(node->held());
  node->hold();
  node->hold();
  EXPECT_TRUE(node->held());
  std::atomic<int> runs = 0;
  ASSERT_TRUE(node->queue().work("mail", [&](Job&) { ++runs; }));
  ASSERT_TRUE(node->queue().emit("mail", 1));
  EXPECT_EQ(node->queue().worker("mail")->ready, 1U);
  node->release();
  node->release();
  EXPECT_TRUE(eventually([&] { return runs == 1; }));
}

TEST_F(NodeTest, ClosingWithAHandlerThatRunsGivesItsEventBackAndTheNextNodeRunsIt) {
  std::binary_semaphore begun(0);
  Uuid id;
  {
    auto node = open(options());
    ASSERT_TRUE(node->queue().work("mail", [&](Job& job) {
      begun.release();
      (void)job.cancel_signal().wait(Duration::max());
    }));
    id = node->queue().emit("mail", 1)->id;
    begun.acquire();
    EXPECT_EQ(code_of(node->close(1ms)), ErrorCode::kDeadline);
    EXPECT_TRUE(node->close(1ms)) << "it is closed";
  }
  auto node = open(options());
  ASSERT_TRUE(node->queue().work("mail", [](Job&) { return Value("done"); }));
  auto ended = node->queue().wait(id, 20s);
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_EQ(ended->result, Value("done"));
}

TEST_F(NodeTest, TimeThatStandsStillBeginsWhereTheStoreHasBeen) {
  WallTime later;
  {
    auto node = open(options(Dispatch::kOn, StoreTime::kStandsStill));
    WallTime begun = node->now();
    EXPECT_GT(begun, kStart) << "the wall clock's";
    later = node->advance(std::chrono::hours(48)).value();
    EXPECT_EQ(later, begun + std::chrono::hours(48));
  }
  auto node = open(options(Dispatch::kOn, StoreTime::kStandsStill));
  EXPECT_EQ(node->now(), later);
}

}  // namespace
}  // namespace perdure
