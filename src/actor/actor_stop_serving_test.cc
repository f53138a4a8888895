// Kinds that a node does not serve any more.
#include "actor/actor_fixture.h"
#include "runtime/latch.h"

namespace perdure::actor {
namespace {

class ActorStopServingTest : public ActorFixture {
 protected:
  bool served() { return !rows(server_prefix("default", "counter")).empty(); }
};

TEST_F(ActorStopServingTest, MessagesWaitUntilTheKindIsServedAgain) {
  Actors actors = node();
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
  EXPECT_TRUE(eventually([&] { return served(); }));
  actors.stop_serving("counter");
  EXPECT_TRUE(eventually([&] { return !served(); }));
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{2}));
  EXPECT_EQ(code_of(actors.of<Counter>("a").call(Get{}, {.timeout = 1ms})), ErrorCode::kReplyTimeout);
  EXPECT_EQ(actors.of<Counter>("a").state().value()->count, 1);
  EXPECT_EQ(code_of(actors.of<Counter>("a").call(Get{}, {.way = Way::kPriority})), ErrorCode::kInvalidArgument);
  actors.stop_serving("counter");
  actors.stop_serving("nobody");
  ASSERT_TRUE(actors.serve(counter, quick()));
  EXPECT_EQ(actors.of<Counter>("a").call(Add{4}).value(), 7);
}

TEST_F(ActorStopServingTest, WhatRunsComesToItsEndAndWhatWaitsBehindItStays) {
  std::binary_semaphore began{0}, go_on{0};
  counter.hooks->call = [&](Turn&) {
    began.release();
    go_on.acquire();
  };
  Actors actors = node();
  Latch first, second;
  Result<std::int64_t> reply = 0;
  actors.of<Counter>("a").call_async(Add{1}, {.timeout = 60s}, [&](Result<std::int64_t> result) {
    reply = std::move(result);
    first.set();
  });
  began.acquire();
  std::optional<Result<std::int64_t>> later;
  actors.of<Counter>("a").call_async(Add{2}, {.timeout = 60s}, [&](Result<std::int64_t> result) {
    later.emplace(std::move(result));
    second.set();
  });
  actors.stop_serving("counter");
  go_on.release();
  first.wait();
  EXPECT_EQ(reply.value(), 1);
  EXPECT_TRUE(eventually([&] { return rows(mailbox_key(prefix_of(id("a")))).size() == 1; }));
  EXPECT_FALSE(second.is_set());
  counter.hooks->call = {};
  ASSERT_TRUE(actors.serve(counter, quick()));
  second.wait();
  EXPECT_EQ(later->value(), 3);
}

TEST_F(ActorStopServingTest, AMessageThatIsTriedAgainWaitsForWhoServesTheKindNext) {
  Actors actors = node({.attempts_max = 100, .back_off = 1h, .back_off_max = 1h});
  ASSERT_TRUE(open().of<Counter>("a").cast(Fail{1}));
  EXPECT_TRUE(eventually([&] {
    return *store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return txn.get(attempts_key(prefix_of(id("a")))).has_value();
    });
  }));
  actors.stop_serving("counter");
  Actors other = node();
  EXPECT_TRUE(eventually([&] {
    auto state = other.of<Counter>("a").state();
    return state && *state && (*state)->count == 1000;
  }));
}

}  // namespace
}  // namespace perdure::actor
