// Messages and effects, as users see them.
#include <atomic>
#include <set>

#include "actor/actor_fixture.h"

namespace perdure::actor {
namespace {

class ActorTest : public ActorFixture {};

TEST_F(ActorTest, ACallChangesTheStateAndIsAnswered) {  // DGEN-1, DGEN-8, DGEN-18, DGEN-19
  Actors actors = node();
  auto visits = actors.of<Counter>("visits");
  EXPECT_EQ(visits.call(Add{2}).value(), 2);
  EXPECT_EQ(visits.call(Add{3}).value(), 5);
  EXPECT_EQ(visits.call(Get{}).value(), 5);
  EXPECT_EQ(visits.state().value()->count, 5);
}

TEST_F(ActorTest, TheStateOutlivesEveryNode) {  // DGEN-1, DGEN-2
  {
    ASSERT_TRUE(node().of<Counter>("visits").cast(Add{4}));
  }
  EXPECT_EQ(node().of<Counter>("visits").call(Get{}).value(), 4);
}

TEST_F(ActorTest, ACastIsHandled) {  // DGEN-9, DGEN-25
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("visits").cast(Add{4}));
  EXPECT_EQ(actors.of<Counter>("visits").call(Get{}).value(), 4);
}

TEST_F(ActorTest, APushOnlyProcessIsServedByAnother) {  // DGEN-8, DGEN-11, DGEN-17, DGEN-18, DGEN-29, DGEN-30
  Actors serving = node();
  Actors pusher = open();
  EXPECT_EQ(pusher.of<Counter>("visits").call(Add{2}).value(), 2);
  ASSERT_TRUE(pusher.of<Counter>("visits").cast(Add{3}));
  EXPECT_EQ(pusher.of<Counter>("visits").call(Get{}).value(), 5);
}

TEST_F(ActorTest, NodesThatServeTheSameActorSeeEachOthersChanges) {  // DGEN-2, DGEN-3, DGEN-U14, DGEN-U15
  Actors nodes[] = {node(), node(), open()};
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::multiset<std::int64_t> replies;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        auto reply = nodes[t % 3].of<Counter>("hot").call(Add{1}, {.timeout = 60s});
        ASSERT_TRUE(reply) << to_string(reply.error());
        std::lock_guard lock(mutex);
        replies.insert(*reply);
      }
    });
  for (auto& thread : threads) thread.join();
  std::multiset<std::int64_t> each_once;
  for (int i = 1; i <= 300; ++i) each_once.insert(i);
  EXPECT_EQ(replies, each_once);
}

/// The counter under another name.
struct Gauge : Counter {
  static constexpr std::string_view kKind = "gauge";
};

TEST_F(ActorTest, KindsDoNotMeet) {  // DGEN-6
  Actors actors = node();
  ASSERT_TRUE(actors.serve(Gauge{}));
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
  EXPECT_EQ(actors.of<Gauge>("a").call(Add{10}).value(), 10);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1);
}

TEST_F(ActorTest, SpacesDoNotMeet) {  // DGEN-4, DGEN-6
  Actors actors = node();
  Actors other = actors.in("other");
  ASSERT_TRUE(other.serve(counter));
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
  EXPECT_EQ(other.of<Counter>("a").call(Add{10}).value(), 10);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1);
  ASSERT_TRUE(other.actor("counter", "a").kill());
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1);
}

TEST_F(ActorTest, ACastToAnotherSpaceIsAFailureOfItsMessage) {  // DGEN-4
  Actors actors = node();
  counter.hooks->call = [](Turn& turn) { turn.cast({"other", "counter", "a"}, Add{1}); };
  auto refused = actors.of<Counter>("a").call(Add{1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused), ErrorCode::kHandlerFailed);
  EXPECT_NE(refused.error().message.find("would leave the space"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(rows(prefix_of({"other", "counter", "a"})).empty());
}

TEST_F(ActorTest, ActorsAreListedInOrderByPrefix) {  // DGEN-5
  Actors actors = node();
  for (const char* name : {"b", "a/2", "a", "a/10", "ab", "a\xc3\xa9"})
    ASSERT_TRUE(actors.of<Counter>(name).cast(Add{}));
  auto list = [&](ActorPage page) {
    return *store.transact([&](Transaction& txn) { return actors.list(txn, "counter", page); });
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(list({}), (Ids{"a", "a/10", "a/2", "ab", "a\xc3\xa9", "b"}));
  EXPECT_EQ(list({.prefix = "a/"}), (Ids{"a/10", "a/2"}));
  EXPECT_EQ(list({.after = "a/2", .limit = 2}), (Ids{"ab", "a\xc3\xa9"}));
  EXPECT_EQ(list({.prefix = "c"}), Ids{});
}

TEST_F(ActorTest, MessagesWaitInOrderUntilSomebodyServes) {  // DGEN-7, DGEN-9, DGEN-25, DGEN-27
  Actors pusher = open();
  for (int i = 1; i <= 20; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{i}));
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->mailbox_length, 20U);
  std::vector<std::int64_t> seen;
  std::mutex mutex;
  struct Watching : Counter {
    std::function<void(std::int64_t)> saw;
    using Counter::handle_call;
    using Counter::handle_cast;
    void handle_cast(const Add& add, State& state, Turn&) { saw(add.by), state.count += add.by; }
  } watching;
  watching.saw = [&](std::int64_t by) {
    std::lock_guard lock(mutex);
    if (seen.empty() || seen.back() != by) seen.push_back(by);
  };
  Actors serving = open();
  ASSERT_TRUE(serving.serve(watching));
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 210);
  std::lock_guard lock(mutex);
  std::vector<std::int64_t> in_order(20);
  for (int i = 0; i < 20; ++i) in_order[i] = i + 1;
  EXPECT_EQ(seen, in_order);
}

TEST_F(ActorTest, PushesAndPopsAreCounted) {  // DGEN-16, DGEN-29
  Actors pusher = open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{}));
  Actors serving = node();
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 5);
  auto counted = [&](const Bytes& key) {
    return *store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return decode_counter(txn.get(key));
    });
  };
  EXPECT_EQ(counted(pushes_key(prefix_of(id("a")))), 6);
  EXPECT_EQ(counted(pops_key(prefix_of(id("a")))), 6);
  EXPECT_TRUE(eventually([&] { return !ready("a"); })) << "the mark of an empty mailbox is taken away";
}

TEST_F(ActorTest, AnIdleActorIsCalledWithoutItsMailbox) {  // DGEN-U9
  Actors actors = node();
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
  auto there = rows_of("a");
  EXPECT_EQ(there.size(), 4U) << "the head, and the state: a root and two entries";
}

TEST_F(ActorTest, ACastIsInTheStoreWhenItReturns) {  // DGEN-B10
  Actors pusher = open();
  Actors looking = open();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(pusher.of<Counter>("pushed").cast(Add{1}));
    ASSERT_EQ(looking.actor("counter", "pushed").inspect().value_or(ActorInfo{}).mailbox_length, i);
  }
  Actors serving = node();
  for (std::int64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(serving.of<Counter>("inline").cast(Add{1}));
    auto state = looking.of<Counter>("inline").state();
    ASSERT_TRUE(state && *state);
    ASSERT_EQ((*state)->count, i);
  }
}

TEST_F(ActorTest, CastManyIsAllOrNothingAndInOrder) {  // DGEN-U5
  Actors pusher = open();
  ASSERT_TRUE(pusher.of<Counter>("a").cast_many(std::vector<Add>{{1}, {2}, {3}}));
  auto items = rows(mailbox_key(prefix_of(id("a"))));
  ASSERT_EQ(items.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    auto item = decode_item(mailbox_key(prefix_of(id("a"))), items[i]);
    EXPECT_EQ(*Value::decode(item->message.body)->find("Add")->find("by")->as_integer(), i + 1);
    EXPECT_EQ(item->stamp.version, decode_item(mailbox_key(prefix_of(id("a"))), items[0])->stamp.version);
  }
  std::vector<Value> one_bad = {Value(1), Value(std::string(kMessageBytesMax + 1, 'x'))};
  EXPECT_EQ(code_of(pusher.actor("counter", "b").cast_many(one_bad)), ErrorCode::kTooLarge);
  EXPECT_TRUE(rows_of("b").empty());
}

TEST_F(ActorTest, MessagesJoinATransactionOfTheCallers) {
  Actors actors = node();
  std::optional<PendingCall> pending;
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    txn.set("mine", "1");
    actors.of<Counter>("a").cast(txn, Add{1});
    actors.of<Counter>("a").cast(txn, Add{2});
    pending = actors.actor("counter", "a").call(txn, internal::message_value(Get{}));
  }));
  EXPECT_EQ(*pending->wait()->as_integer(), 3);
  auto refused = store.transact([&](Transaction& txn) -> Result<void> {
    actors.of<Counter>("a").cast(txn, Add{100});
    return fail(ErrorCode::kConflict, "no");
  });
  EXPECT_FALSE(refused);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 3);
}

TEST_F(ActorTest, EffectsCommitWithTheStateOrNotAtAll) {  // DGEN-19, DGEN-20, DGEN-26, DGEN-B12
  Actors actors = node();
  std::atomic<bool> fails = true;
  counter.hooks->call = [&](Turn& turn) {
    turn.add({"note", [&](Transaction& txn) -> Result<void> {
                txn.set("note", "written");
                if (fails) return fail(ErrorCode::kUnavailable, "not now");
                return {};
              }});
  };
  std::binary_semaphore answered{0};
  actors.of<Counter>("a").call_async(Add{1}, {.timeout = 60s}, [&](Result<std::int64_t> reply) {
    EXPECT_EQ(reply.value_or(-1), 1);
    answered.release();
  });
  // It failed at least once, and is in the mailbox now.
  EXPECT_TRUE(eventually([&] { return ready("a"); }));
  EXPECT_FALSE(store.read([](Reader& reader) { return reader.get("note").has_value(); }).value());
  fails = false;
  answered.acquire();
  EXPECT_TRUE(store.read([](Reader& reader) { return reader.get("note").has_value(); }).value());
}

TEST_F(ActorTest, CastsBetweenActorsCommitWithTheTurn) {
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").cast(Pass{"b", 5}));
  EXPECT_TRUE(eventually([&] { return actors.of<Counter>("b").call(Get{}).value_or(0) == 5; }));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), -5);
}

TEST_F(ActorTest, ACastMayBeDelayed) {
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{1}, {.delay = 1h}));
  ASSERT_TRUE(actors.of<Counter>("a").cast(Pass{"b", 5, 1}));
  ASSERT_TRUE(actors.of<Counter>("a").cast(Pass{"c", 0, 3'600'000}));
  EXPECT_TRUE(eventually([&] { return actors.of<Counter>("b").call(Get{}).value_or(0) == 5; }));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), -5) << "an hour is not over";
  EXPECT_EQ(rows(due_prefix()).size(), 2U);
}

TEST_F(ActorTest, ActionsRunAfterTheCommitInOrderUntilOneHalts) {  // DGEN-22, DGEN-U4
  Actors actors = node();
  std::vector<std::string> ran;
  std::binary_semaphore done{0};
  counter.hooks->call = [&](Turn& turn) {
    turn.after_commit([&](const Value& state) {
      ran.push_back("first saw " + state.to_json());
      return Next::kGoOn;
    });
    turn.after_commit([&](const Value&) {
      ran.emplace_back("second");
      done.release();
      return Next::kHalt;
    });
    turn.after_commit([&](const Value&) {
      ran.emplace_back("never");
      return Next::kGoOn;
    });
  };
  ASSERT_TRUE(actors.of<Counter>("a").call(Add{3}));
  done.acquire();
  ASSERT_TRUE(actors.close());
  EXPECT_EQ(ran, (std::vector<std::string>{"first saw {\"asking\":[],\"count\":3}", "second"}));
}

TEST_F(ActorTest, ActionsRunForTheAttemptThatCommitsOnly) {  // DGEN-22, DGEN-25, DGEN-U16
  Actors actors = node();
  std::atomic<int> tried = 0;
  std::atomic<int> ran = 0;
  std::binary_semaphore done{0};
  counter.hooks->call = [&](Turn& turn) {
    turn.add({"refused twice", [&](Transaction&) -> Result<void> {
                if (++tried <= 2) return fail(ErrorCode::kUnavailable, "not now");
                return {};
              }});
    turn.after_commit([&](const Value&) {
      ++ran;
      if (tried > 2) done.release();
      return Next::kGoOn;
    });
  };
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{3}));
  done.acquire();
  ASSERT_TRUE(actors.close());
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(node().of<Counter>("a").state().value()->count, 3);
}

TEST_F(ActorTest, AnActionThatThrowsSkipsTheRestAndTheStateStays) {  // DGEN-U4
  Actors actors = node();
  std::atomic<int> ran = 0;
  counter.hooks->call = [&](Turn& turn) {
    turn.after_commit([&](const Value&) -> Next {
      ++ran;
      throw std::runtime_error("no");
    });
    turn.after_commit([&](const Value&) {
      ran += 10;
      return Next::kGoOn;
    });
  };
  ASSERT_TRUE(actors.of<Counter>("a").call(Add{3}));
  EXPECT_TRUE(eventually([&] { return ran > 0; }));
  ASSERT_TRUE(actors.close());
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(node().of<Counter>("a").state().value()->count, 3);
}

TEST_F(ActorTest, PriorityMessagesPassTheMailbox) {  // DGEN-10
  Actors pusher = open();
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{1}));
  // It consumes nothing, but handles what is urgent.
  Actors reading = node({.consume = false});
  EXPECT_EQ(reading.of<Counter>("a").call(Get{}, {.way = Way::kPriority}).value(), 0);
  EXPECT_EQ(reading.of<Counter>("a").call(Add{10}, {.way = Way::kPriority}).value(), 10);
  ASSERT_TRUE(reading.of<Counter>("a").cast(Add{10}, {.way = Way::kPriority}));
  EXPECT_EQ(reading.of<Counter>("a").call(Get{}, {.way = Way::kPriority}).value(), 20);
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->mailbox_length, 1U);
  auto refused = pusher.of<Counter>("a").call(Get{}, {.way = Way::kPriority});
  EXPECT_EQ(code_of(refused), ErrorCode::kInvalidArgument);
}

TEST_F(ActorTest, InfosAreHandledAtOnceAndUnknownOnesIgnored) {  // DGEN-U8
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").info(Add{7}));
  EXPECT_TRUE(actors.actor("counter", "a").info(Value("whatever")));
  EXPECT_TRUE(actors.of<Counter>("a").info(Get{}));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 7);
}

TEST_F(ActorTest, TheCacheMayBeOff) {  // DGEN-U1, DGEN-U14
  Actors one = open({.cache_bytes = 0});
  ASSERT_TRUE(one.serve(counter));
  Actors two = node();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(one.of<Counter>("a").call(Add{1}).value(), 2 * i + 1);
    EXPECT_EQ(two.of<Counter>("a").call(Add{1}).value(), 2 * i + 2);
  }
}

TEST_F(ActorTest, DefaultsAreThoseOfTheDesign) {  // DGEN-U1
  EXPECT_EQ(CallOptions{}.timeout, 5s);
  EXPECT_EQ(KindOptions{}.limit, 5s);
  EXPECT_TRUE(KindOptions{}.consume);
  EXPECT_GT(ActorsOptions{}.cache_bytes, 0U);
  EXPECT_EQ(code_of(Actors::open(store, {.space = ""})), ErrorCode::kInvalidArgument);
}

TEST_F(ActorTest, BlockingCallsAreRefusedWhereTheyWouldWaitForThemselves) {
  Actors actors = node();
  ErrorCode in_handler{};
  counter.hooks->call = [&](Turn&) {
    auto refused = actors.of<Counter>("b").call(Get{});
    if (!refused) in_handler = refused.error().code;
  };
  ASSERT_TRUE(actors.of<Counter>("a").call(Add{1}));
  EXPECT_EQ(in_handler, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::actor
