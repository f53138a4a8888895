// What becomes of messages that cannot be handled, and of bad input.
#include <atomic>

#include "actor/actor_fixture.h"

namespace perdure::actor {
namespace {

class ActorFailureTest : public ActorFixture {};

TEST_F(ActorFailureTest, WhatFailsIsTriedAgainAndChangesNothingUntilItSucceeds) {  // DGEN-26, DGEN-U10, DGEN-U16
  Actors actors = node();
  EXPECT_EQ(actors.of<Counter>("a").call(Fail{2}).value(), 3) << "the third attempt";
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1000);
  EXPECT_FALSE(rows(mailbox_key(prefix_of(id("a")))).size());
}

TEST_F(ActorFailureTest, WhatAlwaysFailsBecomesADeadLetterAndItsCallerIsTold) {  // DGEN-B6
  Actors actors = node();
  Actors pusher = open();
  auto failed = pusher.of<Counter>("a").call(Fail{100});
  ASSERT_FALSE(failed);
  EXPECT_EQ(code_of(failed), ErrorCode::kHandlerFailed);
  EXPECT_NE(failed.error().message.find("not yet"), std::string::npos) << failed.error().message;
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 0) << "those behind it go on";
  auto info = actors.actor("counter", "a").inspect();
  EXPECT_EQ(info->dead, 1U);
  auto letters =
      store.transact([&](Transaction& txn) { return actors.actor("counter", "a").dead_letters(txn); }).value();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].attempts, 5);
  EXPECT_NE(letters[0].error.find("not yet"), std::string::npos);
  EXPECT_EQ(letters[0].message.to_json(), R"({"Fail":{"times":100}})");
}

TEST_F(ActorFailureTest, DeadLettersCanBeRedriven) {  // DGEN-B6
  std::atomic<bool> broken = true;
  counter.hooks->call = [&](Turn&) {
    if (broken) throw std::runtime_error("broken");
  };
  Actors actors = node();
  Actors pusher = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{1}));
  EXPECT_TRUE(eventually([&] { return pusher.actor("counter", "a").inspect().value_or(ActorInfo{}).dead == 3; }));
  broken = false;
  EXPECT_EQ(pusher.actor("counter", "a").redrive().value(), 3U);
  EXPECT_TRUE(eventually([&] { return pusher.of<Counter>("a").call(Get{}).value_or(0) == 3; }));
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->dead, 0U);
  EXPECT_EQ(pusher.actor("counter", "a").redrive().value(), 0U);
}

TEST_F(ActorFailureTest, TheOthersOfABatchAreNotHeldBack) {  // DGEN-26
  Actors pusher = open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{1}));
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Pass{"b", 3}));
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Fail{100}));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{10}));
  Actors actors = node();
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 52);
  EXPECT_EQ(pusher.of<Counter>("b").call(Get{}).value(), 3) << "what they ask for is done once";
  EXPECT_EQ(actors.actor("counter", "a").inspect()->dead, 1U);
}

TEST_F(ActorFailureTest, AMessageThatTheKindDoesNotTakeIsRefusedAtOnce) {  // DGEN-U18
  Actors actors = node();
  Actors pusher = open();
  for (Actors& from : {std::ref(actors), std::ref(pusher)}) {
    auto unknown = from.actor("counter", "a").call(Value(Value::Map{{"Nonsense", Value()}}));
    EXPECT_EQ(code_of(unknown), ErrorCode::kInvalidArgument);
    EXPECT_NE(unknown.error().message.find("Add, Get"), std::string::npos) << unknown.error().message;
    auto wrong = from.actor("counter", "a").call(Value(Value::Map{{"Add", Value(Value::Map{{"by", "x"}})}}));
    EXPECT_EQ(code_of(wrong), ErrorCode::kInvalidArgument);
    auto no_call = from.of<Counter>("a").call(Tell{});
    EXPECT_EQ(code_of(no_call), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 0);
}

TEST_F(ActorFailureTest, ACastThatTheKindDoesNotTakeBecomesADeadLetter) {  // DGEN-U18
  Actors actors = node();
  EXPECT_EQ(code_of(actors.of<Counter>("inline").cast(Get{})), ErrorCode::kInvalidArgument);
  Actors pusher = open();
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Get{})) << "who pushes does not know the kind";
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 0);
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->dead, 1U);
}

/// Asks for the lock, and has nothing to do under it.
struct Careless {
  static constexpr std::string_view kKind = "careless";
  struct State {
    PERDURE_DESCRIBE(State)
  };
  using Messages = MessageList<Get>;
  Answer<std::int64_t> handle_call(const Get&, State&, Turn&) { return take_lock; }
};

TEST_F(ActorFailureTest, TheLockWithoutHandleLockedIsAnErrorAndFreed) {  // DGEN-U18, DGEN-U13
  Actors actors = open();
  ASSERT_TRUE(actors.serve(Careless{}));
  for (int i = 0; i < 2; ++i) {
    auto refused = actors.of<Careless>("a").call(Get{});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("has no handle_locked"), std::string::npos) << refused.error().message;
  }
}

/// The counter with another state of the same schema.
struct Texts : Counter {
  struct State {
    std::string count;
    PERDURE_DESCRIBE(State, count)
  };
  using Messages = MessageList<Get>;
  Answer<std::int64_t> handle_call(const Get&, State&, Turn&) { return 0; }
};

TEST_F(ActorFailureTest, AStateThatTheKindCannotReadIsAnErrorAndStays) {  // DGEN-U18
  {
    ASSERT_TRUE(node().of<Counter>("a").cast(Add{4}));
  }
  Actors actors = open();
  ASSERT_TRUE(actors.serve(Texts{}, quick()));
  auto refused = actors.of<Texts>("a").call(Get{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused), ErrorCode::kHandlerFailed);
  EXPECT_NE(refused.error().message.find("cannot be read"), std::string::npos) << refused.error().message;
  EXPECT_EQ(*actors.actor("counter", "a").inspect()->state->find("count")->as_integer(), 4);
}

TEST_F(ActorFailureTest, AHandlerThatHangsIsGivenUpAndHoldsUpNobody) {  // DGEN-U1: too slow
  // Shared, for the handler that is given up outlives the test.
  struct Shared {
    std::binary_semaphore go_on{0};
    std::atomic<int> begun = 0;
  };
  auto shared = std::make_shared<Shared>();
  counter.hooks->call = [shared](Turn& turn) {
    if (turn.actor().id == "slow" && shared->begun++ == 0) shared->go_on.acquire();
  };
  Actors actors = open({.handler_threads = 1});
  ASSERT_TRUE(actors.serve(counter, {.limit = 20ms, .back_off = 1ms, .back_off_max = 1ms, .batch_time = 1ms}));
  std::binary_semaphore answered{0};
  Result<std::int64_t> reply = 0;
  actors.of<Counter>("slow").call_async(Add{1}, {.timeout = 60s}, [&](Result<std::int64_t> result) {
    reply = std::move(result);
    answered.release();
  });
  EXPECT_EQ(actors.of<Counter>("other").call(Get{}).value(), 0) << "another thread stands in";
  answered.acquire();
  EXPECT_EQ(reply.value_or(-1), 1) << "the second attempt went well, and the first changes nothing";
  shared->go_on.release();
  EXPECT_EQ(actors.of<Counter>("slow").call(Get{}).value(), 1);
}

TEST_F(ActorFailureTest, WhatComesToAnEndPastItsLimitHasFailed) {  // DGEN-U1: too slow
  Actors actors = open();
  // Nobody is given up for an hour, so that it is judged by what it took.
  ASSERT_TRUE(actors.serve(counter, {.limit = 1ns, .attempts_max = 1, .batch_time = 1h}));
  auto failed = actors.of<Counter>("a").call(Add{1});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kHandlerFailed);
  EXPECT_NE(failed.error().message.find("past its limit"), std::string::npos) << failed.error().message;
  EXPECT_FALSE(actors.of<Counter>("a").state().value());
}

TEST_F(ActorFailureTest, AFullMailboxSaysSo) {
  Actors serving = node({.consume = false, .mailbox_max = 3});
  Actors pusher = open();
  EXPECT_TRUE(eventually([&] { return rows(kind_key("default", "counter")).empty(); }));
  ASSERT_TRUE(pusher.of<Counter>("a").cast_many(std::vector<Add>(2)));
  auto too_many = pusher.of<Counter>("a").cast_many(std::vector<Add>(2));
  EXPECT_EQ(code_of(too_many), ErrorCode::kMailboxFull);
  EXPECT_TRUE(too_many.error().retryable());
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{}));
  EXPECT_EQ(code_of(pusher.of<Counter>("a").cast(Add{})), ErrorCode::kMailboxFull);
  EXPECT_EQ(code_of(pusher.of<Counter>("a").call(Add{})), ErrorCode::kMailboxFull);
  EXPECT_EQ(waiting("a"), 0U);
  EXPECT_TRUE(pusher.of<Counter>("b").cast(Add{})) << "others are not concerned";
}

TEST_F(ActorFailureTest, NamesAndMessagesThatCannotBeAreRefused) {
  Actors actors = node();
  for (const char* bad : {"", ".", "..", "a\nb", "\xff"})
    EXPECT_EQ(code_of(actors.of<Counter>(bad).cast(Add{})), ErrorCode::kInvalidArgument) << bad;
  EXPECT_EQ(code_of(actors.of<Counter>(std::string(201, 'x')).cast(Add{})), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(actors.of<Counter>(std::string(200, 'x')).cast(Add{}));
  EXPECT_EQ(code_of(actors.actor("no kind", "a").cast(Value())), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(actors.in("no/space").actor("counter", "a").cast(Value())), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(actors.actor("counter", "a").cast(Value("\xff"))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(actors.actor("counter", "a").cast(Value(std::string(kMessageBytesMax, 'x')))),
            ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(actors.actor("counter", "a").inspect()), ErrorCode::kNotFound) << "nothing has changed";
  EXPECT_EQ(code_of(actors.serve(counter, {.attempts_max = 0})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(actors.serve("counter", nullptr)), ErrorCode::kInvalidArgument);
}

TEST_F(ActorFailureTest, AReplyOrStateThatIsTooLargeIsAFailureOfItsMessage) {
  Actors actors = node();
  EXPECT_EQ(code_of(actors.of<Counter>("a").call(Big{kReplyBytesMax + 1})), ErrorCode::kHandlerFailed);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 0);
}

TEST_F(ActorFailureTest, AnUnknownKindWaitsForSomebodyWhoServesIt) {
  Actors actors = open();
  ASSERT_TRUE(actors.actor("later", "a").cast(Value(1)));
  EXPECT_EQ(actors.actor("later", "a").inspect()->mailbox_length, 1U);
}

/// The counter with another schema.
struct NewCounter : Counter {
  static constexpr int kSchema = 2;
  struct State {
    std::int64_t total = 0;
    PERDURE_DESCRIBE(State, total)
  };
  using Messages = MessageList<Add, Get>;
  Answer<std::int64_t> handle_call(const Add& add, State& state, Turn&) { return state.total += add.by; }
  Answer<std::int64_t> handle_call(const Get&, State& state, Turn&) { return state.total; }
  Result<Value> upgrade(int from, Value old) {
    if (from != 1) return fail(ErrorCode::kUnsupportedFormat, "unknown");
    return Value(Value::Map{{"total", Value(*old.find("count")->as_integer() * 10)}});
  }
};

TEST_F(ActorFailureTest, AStateOfAnOlderSchemaIsUpgradedWhenItIsMet) {
  {
    ASSERT_TRUE(node().of<Counter>("a").cast(Add{4}));
  }
  Actors actors = open();
  ASSERT_TRUE(actors.serve(NewCounter{}));
  EXPECT_EQ(actors.of<NewCounter>("a").call(Add{1}).value(), 41);
  EXPECT_EQ(actors.actor("counter", "a").inspect()->schema, 2);
  EXPECT_EQ(actors.actor("counter", "a").inspect()->state->to_json(), R"({"total":41})");
}

TEST_F(ActorFailureTest, AStateOfANewerSchemaIsLeftToNewerCode) {
  Actors newer = open();
  ASSERT_TRUE(newer.serve(NewCounter{}));
  ASSERT_TRUE(newer.of<NewCounter>("a").call(Add{1}));
  ASSERT_TRUE(newer.close());
  Actors older = node();
  auto refused = older.of<Counter>("a").call(Add{1});
  EXPECT_EQ(code_of(refused), ErrorCode::kUnsupportedFormat);
  EXPECT_EQ(older.of<Counter>("b").call(Add{1}).value(), 1) << "others are not concerned";
  // What is in the mailbox waits.
  Actors pusher = open();
  std::binary_semaphore answered{0};
  Result<std::int64_t> reply = 0;
  pusher.of<Counter>("a").call_async(Get{}, {.timeout = 60s}, [&](Result<std::int64_t> result) {
    reply = std::move(result);
    answered.release();
  });
  ASSERT_TRUE(older.of<Counter>("b").call(Add{1}));
  Actors again = open();
  ASSERT_TRUE(again.serve(NewCounter{}));
  answered.acquire();
  EXPECT_EQ(reply.value_or(-1), 1);
}

TEST_F(ActorFailureTest, ClosingAnswersThoseWhoseHandlersHaveNotBegun) {
  std::binary_semaphore began{0}, go_on{0};
  counter.hooks->call = [&](Turn& turn) {
    if (turn.actor().id != "slow") return;
    began.release();
    go_on.acquire();
  };
  Actors actors = open({.handler_threads = 1});
  ASSERT_TRUE(actors.serve(counter));
  std::counting_semaphore<> answered{0};
  Result<std::int64_t> slow = 0, behind = 0;
  auto call = [&](const char* name, Result<std::int64_t>& into) {
    actors.of<Counter>(name).call_async(Add{1}, {.timeout = Duration::max()}, [&](Result<std::int64_t> reply) {
      into = std::move(reply);
      answered.release();
    });
  };
  call("slow", slow);
  began.acquire();
  call("behind", behind);
  std::binary_semaphore closed{0};
  Result<void> result;
  actors.close_async(60s, [&](Result<void> done) {
    result = std::move(done);
    closed.release();
  });
  answered.acquire();
  EXPECT_EQ(code_of(behind), ErrorCode::kClosed);
  go_on.release();
  answered.acquire();
  EXPECT_EQ(slow.value_or(-1), 1);
  closed.acquire();
  EXPECT_TRUE(result);
}

TEST_F(ActorFailureTest, WhateverAMessageHoldsItCanBeBuried) {
  Actors actors = node();
  Actors pusher = open();
  auto refused = pusher.actor("counter", "a").call(Value(Blob{Bytes(900'000, '\0')}));
  EXPECT_EQ(code_of(refused), ErrorCode::kInvalidArgument);
  counter.hooks->call = [](Turn&) { throw std::runtime_error(std::string(2'000'000, 'x')); };
  EXPECT_EQ(code_of(pusher.of<Counter>("a").call(Add{})), ErrorCode::kHandlerFailed);
  EXPECT_EQ(actors.actor("counter", "a").inspect()->dead, 2U);
}

TEST_F(ActorFailureTest, DelayedCastsOfAnySizeArrive) {
  Actors actors = node();
  for (int i = 0; i < 15; ++i)
    ASSERT_TRUE(actors.actor("counter", "a").cast(Value(std::string(900'000, 'x')), {.delay = 1ms}));
  EXPECT_TRUE(eventually([&] { return actors.actor("counter", "a").inspect().value_or(ActorInfo{}).dead == 15; }));
}

TEST_F(ActorFailureTest, ADelayBeyondTheEndOfTimeIsOneThatDoesNotEnd) {
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{1}, {.delay = Duration::max()}));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 0);
  EXPECT_EQ(rows(due_prefix()).size(), 1U);
}

/// Sends itself a message while it stops.
struct Phoenix {
  static constexpr std::string_view kKind = "phoenix";
  struct State {
    std::int64_t lives = 1;
    PERDURE_DESCRIBE(State, lives)
  };
  using Messages = MessageList<Finish, Add, Get>;
  Answer<std::string> handle_call(const Finish& finish, State&, Turn& turn) {
    turn.cast(turn.actor(), Add{1});
    return Answer<std::string>("bye").and_stop(finish.reason);
  }
  void handle_cast(const Add& add, State& state, Turn&) { state.lives += add.by; }
  Answer<std::int64_t> handle_call(const Get&, State& state, Turn&) { return state.lives; }
};

TEST_F(ActorFailureTest, WhatStopsMaySendItselfAMessage) {
  Actors actors = open();
  ASSERT_TRUE(actors.serve<Phoenix>());
  EXPECT_EQ(actors.of<Phoenix>("a").call(Finish{"enough"}).value(), "bye");
  EXPECT_EQ(actors.of<Phoenix>("a").call(Get{}).value(), 2);
}

TEST_F(ActorFailureTest, OpeningIsRefusedWhereItWouldWaitForItself) {
  std::binary_semaphore done{0};
  std::optional<ErrorCode> refused;
  store.transact_async([](Transaction& txn) { txn.set("a", "b"); },
                       [&](const Result<void>&) {
                         refused = code_of(Actors::open(store));
                         done.release();
                       });
  done.acquire();
  EXPECT_EQ(refused, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::actor
