// Calls whose replies are kept in the store until somebody takes them in a transaction, perhaps after a crash.
#include "actor/actor_fixture.h"
#include "runtime/latch.h"

namespace perdure::actor {
namespace {

class ActorPendingTest : public ActorFixture {
 protected:
  /// Pushes a call whose reply is kept; forgets the handle at once, as a process that dies does.
  From push(Actors& actors, const std::string& name, int by) {
    return store
        .transact([&](Transaction& txn) {
          return actors.actor("counter", name).call(txn, internal::message_value(Add{by}), ReplyRows::kKeep).from();
        })
        .value();
  }
  std::optional<Result<Value>> take(Actors& actors, const From& from) {
    return store.transact([&](Transaction& txn) { return actors.take_reply(txn, from); }).value();
  }
};

TEST_F(ActorPendingTest, AnotherProcessWaitsForTheReplyOfACallThatOneWhichIsGoneHasPushed) {
  From from;
  {
    Actors gone = open();
    from = push(gone, "a", 5);
  }
  Actors serving = node();
  auto parsed = From::parse(from.to_string());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(serving.pending(*parsed).wait(20s).value(), Value(5));
  EXPECT_EQ(serving.pending(*parsed).wait(20s).value(), Value(5)) << "it is still there";
  EXPECT_EQ(take(serving, *parsed).value().value(), Value(5));
  EXPECT_EQ(code_of(take(serving, *parsed).value()), ErrorCode::kNotFound) << "it was taken";
  EXPECT_EQ(waiting("a"), 0U);
  EXPECT_EQ(serving.of<Counter>("a").call(Get{}).value(), 5) << "and it was handled once";
}

TEST_F(ActorPendingTest, WhoWaitsBeforeTheReplyComesIsToldWhenItIsThere) {
  Actors pusher = open();
  From from = push(pusher, "a", 5);
  EXPECT_FALSE(take(pusher, from).has_value()) << "not yet";
  // Two at once, as a repeated request that comes while the first still waits.
  std::vector<std::shared_ptr<Promise<Result<Value>>>> replies(2);
  for (auto& reply : replies) {
    reply = std::make_shared<Promise<Result<Value>>>();
    pusher.pending(from).wait_async(Duration::max(), [reply](Result<Value> value) { reply->set(std::move(value)); });
  }
  Actors serving = node();
  for (auto& reply : replies) EXPECT_EQ(reply->take().value(), Value(5));
  EXPECT_EQ(take(pusher, from).value().value(), Value(5));
}

TEST_F(ActorPendingTest, ATimeoutLosesNothingThatIsKept) {
  Actors pusher = open();
  From from = push(pusher, "a", 5);
  EXPECT_EQ(code_of(pusher.pending(from).wait(1ms)), ErrorCode::kReplyTimeout);
  EXPECT_EQ(waiting("a"), 1U);
  Actors serving = node();
  EXPECT_EQ(pusher.pending(from).wait(20s).value(), Value(5));
  EXPECT_EQ(code_of(pusher.pending(from, ReplyRows::kClear).wait(20s)), std::nullopt) << "the last one to look";
  EXPECT_TRUE(eventually([&] { return waiting("a") == 0; }));
  EXPECT_EQ(code_of(pusher.pending(from).wait(20s)), ErrorCode::kReplyTimeout) << "nothing is left of it";
}

TEST_F(ActorPendingTest, AReplyIsTakenWithTheTransactionThatStoresItOrNotAtAll) {
  Actors serving = node();
  From from = push(serving, "a", 5);
  ASSERT_EQ(serving.pending(from).wait(20s).value(), Value(5));
  EXPECT_FALSE(store.transact([&](Transaction& txn) -> Result<void> {
    EXPECT_EQ(serving.take_reply(txn, from).value().value(), Value(5));
    return fail(ErrorCode::kInvalidArgument, "the answer could not be stored");
  }));
  EXPECT_EQ(take(serving, from).value().value(), Value(5));
}

TEST_F(ActorPendingTest, TheErrorOfAHandlerIsKeptAsAReplyIs) {
  Actors serving = node();
  From from = store
                  .transact([&](Transaction& txn) {
                    return serving.actor("counter", "a").call(txn, Value("what is this"), ReplyRows::kKeep).from();
                  })
                  .value();
  EXPECT_EQ(code_of(serving.pending(from).wait(20s)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(take(serving, from).value()), ErrorCode::kInvalidArgument);
}

TEST_F(ActorPendingTest, AFromThatCannotBeIsRefused) {
  Actors actors = open();
  From wrong{{"default", "counter", ""}, 0, {}, 1};
  EXPECT_EQ(code_of(store.transact([&](Transaction& txn) { return actors.take_reply(txn, wrong).has_value(); })),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::actor
