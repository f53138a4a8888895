// Replies: through the store, in chunks, later, or not in time.
#include "actor/actor_fixture.h"

namespace perdure::actor {
namespace {

class ActorReplyTest : public ActorFixture {};

TEST_F(ActorReplyTest, RepliesMayBeLargeAndLeaveNothingBehind) {  // DGEN-14, DGEN-15, DGEN-23
  Actors serving = node();
  Actors pusher = open();
  EXPECT_EQ(pusher.of<Counter>("a").call(Big{250'000}).value(), std::string(250'000, 'x'));
  // A reply takes a transaction, which holds less on etcd: then its caller is told so.
  auto large = pusher.of<Counter>("a").call(Big{3'000'000});
  if (store.limits().transaction_bytes_max > 3'000'000)
    EXPECT_EQ(large.value().size(), 3'000'000U);
  else
    EXPECT_EQ(code_of(large), ErrorCode::kHandlerFailed);
  EXPECT_TRUE(eventually([&] { return waiting("a") == 0; }));
}

TEST_F(ActorReplyTest, AReplyInTheStoreIsCutIntoChunks) {  // DGEN-14, DGEN-15
  Actors actors = open();
  ActorId a = id("a");
  Caller caller{1, Stamp{Version{7}, 0}, 1};
  auto reply = [&](Transaction& txn) {
    SystemAccess access(txn);
    write_reply(txn, prefix_of(a), caller, Value(std::string(250'000, 'x')));
  };
  ASSERT_TRUE(store.transact(reply));
  EXPECT_EQ(waiting("a"), 0U) << "nobody waits";  // DGEN-21
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    put_placeholder(txn, a, prefix_of(a), caller);
  }));
  ASSERT_TRUE(store.transact(reply));
  auto chunks = rows(waiting_key(prefix_of(a)));
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0].key, sentinel_key(prefix_of(a), caller));
  auto read = [&] {
    auto seen = store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return read_reply(txn, prefix_of(a), caller);
    });
    return seen->reply.value();
  };
  EXPECT_EQ(read().value().as_text()->size(), 250'000U);
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    write_reply(txn, prefix_of(a), caller, Value("another"));
  }));
  auto again = read();
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->as_text()->size(), 250'000U) << "the first reply counts";
}

TEST_F(ActorReplyTest, ATimedOutCallIsStillExecutedAndLeavesNothingBehind) {  // DGEN-21, DGEN-24, DGEN-B7
  Actors pusher = open();
  auto late = pusher.of<Counter>("a").call(Add{5}, {.timeout = 1ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(code_of(late), ErrorCode::kReplyTimeout);
  EXPECT_EQ(late.error().outcome(), Outcome::kUnknown);
  EXPECT_TRUE(eventually([&] { return waiting("a") == 0; }));
  Actors serving = node();
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 5);
  EXPECT_TRUE(eventually([&] { return waiting("a") == 0; }));
}

TEST_F(ActorReplyTest, ATimeoutThatIsOverBeforeThePushReturnsLeavesNothingBehind) {  // DGEN-B7
  Actors pusher = open();
  for (int i = 0; i < 50; ++i) {
    auto late = pusher.of<Counter>("a").call(Add{1}, {.timeout = Duration::zero()});
    EXPECT_EQ(code_of(late), ErrorCode::kReplyTimeout);
  }
  EXPECT_TRUE(eventually([&] { return waiting("a") == 0; }));
}

TEST_F(ActorReplyTest, ACallMayWaitWithoutLimit) {  // DGEN-B8
  Actors pusher = open();
  std::binary_semaphore answered{0};
  std::int64_t reply = 0;
  pusher.of<Counter>("a").call_async(Add{3}, {.timeout = Duration::max()}, [&](Result<std::int64_t> result) {
    reply = result.value_or(-1);
    answered.release();
  });
  EXPECT_TRUE(eventually([&] { return pusher.actor("counter", "a").inspect().value_or(ActorInfo{}).waiting == 1; }))
      << "DGEN-28: its waiters are under one prefix";
  Actors serving = node();
  answered.acquire();
  EXPECT_EQ(reply, 3);
}

TEST_F(ActorReplyTest, AReplyMayComeLater) {  // DGEN-B9, DGEN-12
  for (bool queued : {false, true}) {
    Actors serving = node();
    Actors pusher = queued ? open() : serving;
    std::string name = queued ? "queued" : "inline";
    std::binary_semaphore answered{0};
    std::int64_t reply = 0;
    pusher.of<Counter>(name).call_async(Ask{}, {}, [&](Result<std::int64_t> result) {
      reply = result.value_or(-1);
      answered.release();
    });
    EXPECT_TRUE(eventually([&] {
      auto state = pusher.of<Counter>(name).state();
      return state && *state && (*state)->asking.size() == 1;
    }));
    ASSERT_TRUE(pusher.of<Counter>(name).cast(Tell{42}));
    answered.acquire();
    EXPECT_EQ(reply, 42);
    EXPECT_TRUE(eventually([&] { return waiting(name) == 0; }));
  }
}

TEST_F(ActorReplyTest, AReplyMayComeFromOutside) {  // DGEN-B9
  Actors actors = node();
  std::binary_semaphore answered{0};
  std::int64_t reply = 0;
  actors.of<Counter>("a").call_async(Ask{}, {}, [&](Result<std::int64_t> result) {
    reply = result.value_or(-1);
    answered.release();
  });
  std::optional<Counter::State> state;
  EXPECT_TRUE(eventually([&] { return (state = *actors.of<Counter>("a").state()) && !state->asking.empty(); }));
  ASSERT_TRUE(actors.reply(*From::parse(state->asking[0]), Value(9)));
  answered.acquire();
  EXPECT_EQ(reply, 9);
}

TEST_F(ActorReplyTest, ACallerIsNamedByItsActorItsTimeAndAReference) {  // DGEN-12
  From from{id("a"), 1700000000, Stamp{Version{12}, 3}, 99};
  EXPECT_EQ(From::parse(from.to_string()).value(), from);
  EXPECT_FALSE(From::parse("0102"));
  EXPECT_FALSE(From::parse("zz"));
  Bytes key = caller_key(prefix_of(from.actor), Caller::of(from));
  EXPECT_TRUE(key.starts_with(waiting_key(prefix_of(from.actor))));
}

TEST_F(ActorReplyTest, CallersThatWaitAreToldApartAndSayWhenTheyCame) {  // DGEN-12, DGEN-28
  Actors pusher = open();
  std::counting_semaphore<> answered{0};
  for (int i = 0; i < 2; ++i)
    pusher.of<Counter>("a").call_async(Get{}, {.timeout = 60s}, [&](const auto&) { answered.release(); });
  EXPECT_TRUE(eventually([&] { return waiting("a") == 2; }));
  auto pushed = std::chrono::duration_cast<std::chrono::seconds>(
                    pusher.actor("counter", "a").inspect()->oldest->time_since_epoch())
                    .count();
  Bytes under = waiting_key(prefix_of(id("a")));
  std::set<std::uint64_t> numbers;
  for (const Row& row : rows(under)) {
    auto parts = tuple::unpack_after<std::int64_t, Stamp, std::uint64_t, std::uint64_t>(under, row.key);
    ASSERT_TRUE(parts);
    EXPECT_LE(std::abs(std::get<0>(*parts) - pushed), 1);
    numbers.insert(std::get<2>(*parts));
  }
  EXPECT_EQ(numbers.size(), 2U);
  ASSERT_TRUE(pusher.actor("counter", "a").kill());
  answered.acquire();
  answered.acquire();
}

}  // namespace
}  // namespace perdure::actor
