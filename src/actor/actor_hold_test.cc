// A node that is held leaves mailboxes alone, and takes them up when it is released.
#include "actor/actor_fixture.h"
#include "runtime/latch.h"

namespace perdure::actor {
namespace {

class ActorHoldTest : public ActorFixture {
 protected:
  using Reply = std::shared_ptr<Promise<Result<Value>>>;
  static Reply call(Actors& actors, const std::string& name, int by) {
    auto reply = std::make_shared<Promise<Result<Value>>>();
    actors.actor("counter", name)
        .call_async(internal::message_value(Add{by}), {.timeout = Duration::max()},
                    [reply](Result<Value> value) { reply->set(std::move(value)); });
    return reply;
  }
  std::uint64_t mailbox(Actors& actors, const std::string& name) {
    auto info = actors.actor("counter", name).inspect();
    return info ? info->mailbox_length : 0;
  }
};

TEST_F(ActorHoldTest, CallsAndCastsWaitInTheirMailboxesUntilTheRelease) {
  Actors actors = open({.held = true});
  ASSERT_TRUE(actors.serve(counter, quick()));
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{1}));
  Reply reply = call(actors, "a", 2);
  EXPECT_TRUE(eventually([&] { return mailbox(actors, "a") == 2; }));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}, {.way = Way::kPriority}).value(), 0) << "past the mailbox";
  EXPECT_EQ(mailbox(actors, "a"), 2U);
  actors.release();
  EXPECT_EQ(reply->take().value(), Value(3));
}

TEST_F(ActorHoldTest, AnActorThatWasCalledInlineBeforeIsNotSoWhileItIsHeld) {
  Actors actors = node();
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
  actors.hold();
  Reply reply = call(actors, "a", 2);
  EXPECT_TRUE(eventually([&] { return mailbox(actors, "a") == 1; }));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}, {.way = Way::kPriority}).value(), 1);
  actors.release();
  EXPECT_EQ(reply->take().value(), Value(3));
}

TEST_F(ActorHoldTest, WhatAnotherNodePushesWaitsAsWell) {
  Actors actors = node();
  Actors pusher = open();
  actors.hold();
  std::vector<Reply> replies;
  // More than one walk of the index finds.
  for (int i = 0; i < 300; ++i) replies.push_back(call(pusher, "n" + std::to_string(i), 1));
  EXPECT_TRUE(eventually([&] { return mailbox(pusher, "n299") == 1; }));
  actors.release();
  for (Reply& reply : replies) EXPECT_EQ(reply->take().value(), Value(1));
}

TEST_F(ActorHoldTest, HoldingAndReleasingAgainAndAgainLosesNothing) {
  Actors actors = node();
  Actors pusher = open();
  std::thread toggling([&] {
    for (int i = 0; i < 300; ++i) {
      actors.hold();
      actors.release();
    }
  });
  std::vector<Reply> replies;
  for (int i = 0; i < 200; ++i) {
    replies.push_back(call(actors, "a", 1));
    replies.push_back(call(pusher, "a", 1));
  }
  toggling.join();
  for (Reply& reply : replies) EXPECT_TRUE(reply->take());
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 400);
}

}  // namespace
}  // namespace perdure::actor
