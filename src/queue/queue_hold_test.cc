// A node that is held claims nothing, and takes up where it was when it is released.
#include "queue/queue_fixture.h"
#include "runtime/latch.h"

namespace perdure::queue {
namespace {

class QueueHold : public QueueFixture {};

TEST_F(QueueHold, NothingIsClaimedFromTheOpeningOnUntilItIsReleased) {
  Queue queue = open({.held = true});
  Queue other = open();
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }));
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(queue.claim("mail")->size(), 0U) << "nor by hand";
  // Another node is not held: what this one has left alone is there for it.
  EXPECT_EQ(claim_one(other, "mail").id, id);
  auto next = queue.emit("mail", 2)->id;
  queue.release();
  ended(queue, next);
  EXPECT_EQ(runs, 1);
}

TEST_F(QueueHold, AClaimByHandThatComesWhileItIsHeldWaitsForTheRelease) {
  Queue queue = open();
  queue.hold();
  auto id = queue.emit("hand", 1)->id;
  auto answer = std::make_shared<Promise<Result<std::vector<Claimed>>>>();
  queue.claim_async("hand", {.wait = Duration::max()}, [answer](auto claimed) { answer->set(std::move(claimed)); });
  EXPECT_EQ(queue.claim("hand", {.wait = 1ms})->size(), 0U);
  EXPECT_EQ(queue.get(id)->state, EventState::kReady);
  queue.release();
  auto claimed = answer->take();
  ASSERT_EQ(claimed.value().size(), 1U);
  EXPECT_EQ((*claimed)[0].id, id);
}

TEST_F(QueueHold, AClaimThatWaitedBeforeTheHoldClaimsNothingDuringIt) {
  Queue queue = open();
  auto answer = std::make_shared<Promise<Result<std::vector<Claimed>>>>();
  queue.claim_async("hand", {.wait = Duration::max()}, [answer](auto claimed) { answer->set(std::move(claimed)); });
  EXPECT_EQ(queue.claim("hand")->size(), 0U);
  queue.hold();
  auto id = queue.emit("hand", 1)->id;
  // Its watch has fired, and found the node held, or will: either way it waits for the release.
  EXPECT_EQ(queue.claim("hand", {.wait = 10ms})->size(), 0U);
  EXPECT_EQ(queue.get(id)->state, EventState::kReady);
  queue.release();
  EXPECT_EQ(answer->take().value().size(), 1U);
}

TEST_F(QueueHold, WhatIsRunningComesToItsEndAndNothingFollowsIt) {
  Queue queue = open();
  std::binary_semaphore begun(0), go_on(0);
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.work("mail",
                         [&](Job&) {
                           ++runs;
                           begun.release();
                           go_on.acquire();
                         },
                         {.concurrency = 1}));
  auto first = queue.emit("mail", 1)->id;
  begun.acquire();
  queue.hold();
  auto second = queue.emit("mail", 2)->id;
  go_on.release();
  ended(queue, first);
  EXPECT_EQ(queue.get(second)->state, EventState::kReady);
  EXPECT_EQ(runs, 1);
  queue.release();
  begun.acquire();
  go_on.release();
  ended(queue, second);
}

TEST_F(QueueHold, WhatFallsDueMeanwhileBecomesReady) {
  Queue queue = open({.held = true});
  auto id = queue.emit("mail", 1, {.delay = 1ms})->id;
  EXPECT_TRUE(eventually([&] { return queue.get(id)->state == EventState::kReady; }));
}

TEST_F(QueueHold, HoldingAndReleasingAgainAndAgainLosesNothing) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }));
  std::thread toggling([&] {
    for (int i = 0; i < 200; ++i) {
      queue.hold();
      queue.release();
    }
  });
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(queue.emit("mail", i));
  toggling.join();
  EXPECT_TRUE(eventually([&] { return runs == 200; }));
}

}  // namespace
}  // namespace perdure::queue
