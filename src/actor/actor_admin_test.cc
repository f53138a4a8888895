// Stop, kill, reset, collecting, and what is written.
#include <atomic>

#include "actor/actor_fixture.h"
#include "actor/collect.h"
#include "session/rows.h"

namespace perdure::actor {
namespace {

class ActorAdminTest : public ActorFixture {
 protected:
  struct Answer {
    std::binary_semaphore done{0};
    Result<std::int64_t> reply = 0;
  };
  template <class M>
  std::shared_ptr<Answer> start(Actors& actors, const std::string& name, const M& message) {
    auto answer = std::make_shared<Answer>();
    actors.of<Counter>(name).call_async(message, {.timeout = 60s}, [answer](Result<std::int64_t> reply) {
      answer->reply = std::move(reply);
      answer->done.release();
    });
    return answer;
  }
};

TEST_F(ActorAdminTest, KillDeletesEverythingAndFailsCallersAtOnce) {  // DGEN-U6, DGEN-B13, DGEN-28
  Actors pusher = open();
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{1}));
  auto call = start(pusher, "a", Add{1});
  EXPECT_TRUE(eventually([&] { return waiting("a") == 1; }));
  ASSERT_TRUE(pusher.actor("counter", "a").kill());
  call->done.acquire();
  EXPECT_EQ(code_of(call->reply), ErrorCode::kActorGone);
  EXPECT_TRUE(eventually([&] { return rows_of("a").empty(); }));
  EXPECT_FALSE(ready("a"));
  EXPECT_EQ(node().of<Counter>("a").call(Get{}).value(), 0) << "a new one";
}

TEST_F(ActorAdminTest, KillDeletesWhatFailedBefore) {  // DGEN-U6
  Actors actors = node({.attempts_max = 2, .back_off = 1h, .back_off_max = 1h});
  Actors pusher = open();
  ASSERT_TRUE(pusher.actor("counter", "a").cast(Value("no message")));
  // The first attempt at it fails, and the next one is an hour away.
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Fail{1}));
  EXPECT_TRUE(eventually([&] {
    return !rows(dead_key(prefix_of(id("a")))).empty() &&
           store
               .transact([&](Transaction& txn) {
                 SystemAccess access(txn);
                 return txn.get(attempts_key(prefix_of(id("a")))).has_value();
               })
               .value();
  }));
  ASSERT_TRUE(actors.actor("counter", "a").kill());
  EXPECT_TRUE(rows_of("a").empty());
  EXPECT_FALSE(ready("a"));
}

TEST_F(ActorAdminTest, KillJoinsATransaction) {
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{1}));
  ASSERT_TRUE(store.transact([&](Transaction& txn) { actors.actor("counter", "a").kill(txn); }));
  EXPECT_TRUE(rows_of("a").empty());
  EXPECT_EQ(actors.of<Counter>("a").call(Add{5}).value(), 5) << "the cache does not bring it back";
}

TEST_F(ActorAdminTest, KillOfALargeMailboxIsDoneInParts) {
  Actors pusher = open();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pusher.of<Counter>("a").cast_many(std::vector<Add>(1000)));
  EXPECT_EQ(code_of(store.transact([&](Transaction& txn) { pusher.actor("counter", "a").kill(txn); })),
            ErrorCode::kTooLarge);
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->mailbox_length, 10'000U);
  ASSERT_TRUE(pusher.actor("counter", "a").kill());
  EXPECT_TRUE(rows_of("a").empty());
}

TEST_F(ActorAdminTest, AStopKeepsTheStateAndFailsWaitingCalls) {  // DGEN-U3, DGEN-U7, DGEN-B13
  Actors pusher = open();
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{3}));
  std::vector<Value> messages = {internal::message_value(Add{1})};
  auto finish = std::make_shared<std::binary_semaphore>(0);
  Result<std::string> bye = "";
  pusher.of<Counter>("a").call_async(Finish{"enough"}, {.timeout = 60s}, [&](Result<std::string> reply) {
    bye = std::move(reply);
    finish->release();
  });
  EXPECT_TRUE(eventually([&] { return waiting("a") == 1; }));
  auto behind = start(pusher, "a", Add{1});
  EXPECT_TRUE(eventually([&] { return waiting("a") == 2; }));
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{10}));
  Actors actors = node();
  finish->acquire();
  EXPECT_EQ(bye.value_or(""), "bye");
  behind->done.acquire();
  EXPECT_EQ(code_of(behind->reply), ErrorCode::kActorGone);
  EXPECT_NE(behind->reply.error().message.find("enough"), std::string::npos);
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 13) << "casts stay, and the next message finds it as it was";
}

TEST_F(ActorAdminTest, AStopFailsCallsOfTheSameNodeThatWaitBehindIt) {  // DGEN-U7, DGEN-B13
  std::binary_semaphore began{0}, go_on{0};
  counter.hooks->call = [&](Turn&) {
    began.release();
    go_on.acquire();
  };
  Actors actors = node();
  auto first = start(actors, "a", Add{1});
  began.acquire();
  // Both come while the first is handled, and so are next together.
  std::binary_semaphore finished{0};
  actors.of<Counter>("a").call_async(Finish{"enough"}, {.timeout = 60s}, [&](const auto&) { finished.release(); });
  auto behind = start(actors, "a", Get{});
  go_on.release();
  first->done.acquire();
  finished.acquire();
  behind->done.acquire();
  EXPECT_EQ(code_of(behind->reply), ErrorCode::kActorGone);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1);
}

TEST_F(ActorAdminTest, WhatIsStoppedWhileItIsHandledHasNoEffect) {  // DGEN-3, DGEN-20, DGEN-U15
  std::binary_semaphore began{0}, go_on{0};
  counter.hooks->call = [&](Turn& turn) {
    turn.add({"note", [](Transaction& txn) -> Result<void> {
                txn.set("note", "written");
                return {};
              }});
    began.release();
    go_on.acquire();
  };
  Actors actors = node();
  Actors pusher = open();
  // Leaves the state as it is, so that only the message shows that it was taken away.
  auto call = start(pusher, "a", Add{0});
  began.acquire();
  ASSERT_TRUE(pusher.actor("counter", "a").stop("enough"));
  call->done.acquire();
  EXPECT_EQ(code_of(call->reply), ErrorCode::kActorGone);
  go_on.release();
  ASSERT_TRUE(actors.close());
  EXPECT_FALSE(store.read([](Reader& reader) { return reader.get("note").has_value(); }).value());
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{1}));
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->mailbox_length, 1U) << "it was popped once";
}

TEST_F(ActorAdminTest, StopFromOutsideFailsWaitingCalls) {  // DGEN-U7, DGEN-B13
  Actors pusher = open();
  auto call = start(pusher, "a", Add{1});
  EXPECT_TRUE(eventually([&] { return waiting("a") == 1; }));
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{2}));
  ASSERT_TRUE(pusher.actor("counter", "a").stop("maintenance"));
  call->done.acquire();
  EXPECT_EQ(code_of(call->reply), ErrorCode::kActorGone);
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->mailbox_length, 1U);
  EXPECT_EQ(node().of<Counter>("a").call(Get{}).value(), 2);
}

/// Begins at a hundred, and not at all for some.
struct Hundred : Counter {
  Result<State> init(const ActorId& actor) {
    if (actor.id == "bad") return fail(ErrorCode::kUnavailable, "cannot begin");
    return State{.count = 100, .asking = {}};
  }
};

TEST_F(ActorAdminTest, InitMakesTheStateUnlessThereIsOne) {  // DGEN-U2
  Actors actors = open();
  ASSERT_TRUE(actors.serve(Hundred{}, quick()));
  EXPECT_EQ(actors.of<Hundred>("a").call(Add{1}).value(), 101);
  EXPECT_EQ(actors.of<Hundred>("a").call(Add{1}).value(), 102);
  EXPECT_EQ(actors.of<Hundred>().id().id, "counter") << "by default named after its kind";
  auto failed = actors.of<Hundred>("bad").call(Add{1});
  EXPECT_EQ(code_of(failed), ErrorCode::kHandlerFailed);
  EXPECT_NE(failed.error().message.find("cannot begin"), std::string::npos);
}

TEST_F(ActorAdminTest, ResetPutsTheStateBackAndKeepsTheMailbox) {  // DGEN-U1, DGEN-U2
  Actors actors = open();
  ASSERT_TRUE(actors.serve(Hundred{}, {.consume = false}));
  EXPECT_EQ(actors.of<Hundred>("a").call(Add{5}, {.way = Way::kPriority}).value(), 105);
  ASSERT_TRUE(actors.of<Hundred>("a").cast(Add{1}));
  ASSERT_TRUE(actors.actor("counter", "a").reset());
  EXPECT_EQ(actors.of<Hundred>("a").call(Get{}, {.way = Way::kPriority}).value(), 100);
  EXPECT_EQ(actors.actor("counter", "a").inspect()->mailbox_length, 1U);
  EXPECT_EQ(code_of(open().actor("counter", "a").reset()), ErrorCode::kInvalidArgument);
}

/// A map of a hundred entries.
struct Table {
  static constexpr std::string_view kKind = "table";
  struct State {
    std::map<std::string, std::int64_t> entries;
    PERDURE_DESCRIBE(State, entries)
  };
  struct Set {
    std::string key;
    std::int64_t value = 0;
    PERDURE_DESCRIBE(Set, key, value)
  };
  using Messages = MessageList<Set>;
  State init(const ActorId&) {
    State state;
    for (int i = 0; i < 100; ++i) state.entries["entry " + std::to_string(i)] = i;
    return state;
  }
  void handle_cast(const Set& set, State& state, Turn&) { state.entries[set.key] = set.value; }
};

TEST_F(ActorAdminTest, ChangingOneOfAHundredEntriesWritesThatEntryAndTheVersion) {  // DGEN-U17
  Actors actors = open();
  ASSERT_TRUE(actors.serve(Table{}));
  ASSERT_TRUE(actors.of<Table>("a").cast(Table::Set{"entry 7", 70}));
  auto all = [&] { return rows(Bytes(kSystemKeys)); };
  auto of_actor = [&] { return rows(prefix_of({"default", "table", "a"})); };
  Version before;
  for (const Row& row : of_actor()) before = std::max(before, row.version);
  ASSERT_EQ(of_actor().size(), 103U) << "the head, the root, the map and its entries";
  ASSERT_TRUE(actors.of<Table>("a").cast(Table::Set{"entry 8", 80}));
  std::vector<Bytes> written;
  for (const Row& row : of_actor())
    if (row.version > before) written.push_back(row.key);
  EXPECT_EQ(written.size(), 2U);
  EXPECT_EQ(written[0], head_key(prefix_of({"default", "table", "a"})));
  // The same again changes nothing, and writes nothing: not even the version.
  for (const Row& row : of_actor()) before = std::max(before, row.version);
  ASSERT_TRUE(actors.of<Table>("a").cast(Table::Set{"entry 8", 80}));
  for (const Row& row : of_actor()) EXPECT_LE(row.version, before);
  EXPECT_FALSE(all().empty());
}

TEST_F(ActorAdminTest, CallersThatAreGoneAreCollectedByTheirAge) {  // DGEN-13, DGEN-B7
  Actors actors = node();
  ActorId a = id("a");
  auto place = [&](std::int64_t seconds, Stamp session, std::uint64_t number) {
    ASSERT_TRUE(store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      put_placeholder(txn, a, prefix_of(a), {seconds, session, number});
    }));
  };
  Stamp gone{Version{1}, 77};
  // The time of a message that nobody takes.
  ASSERT_TRUE(actors.actor("clock", "a").cast(Value()));
  auto now = std::chrono::duration_cast<std::chrono::seconds>(
      actors.actor("clock", "a").inspect()->oldest->time_since_epoch());
  place(now.count() - 7200, gone, 1);
  place(now.count() - 7200, gone, 2);
  place(now.count() - 60, gone, 3);
  // Nearly old enough, and among those who are.
  place(now.count() - 3570, gone, 5);
  // Of a caller that is old, but still there.
  auto open_sessions = store.transact([](Transaction& txn) { return Session::list(txn); });
  place(now.count() - 7200, open_sessions->at(0).id.stamp, 4);
  EXPECT_EQ(actors.collect(1h).value(), 2U);
  EXPECT_EQ(waiting("a"), 3U);
  EXPECT_EQ(actors.collect(Duration::zero()).value(), 2U);
  EXPECT_EQ(waiting("a"), 1U);
  auto buckets = rows(waiting_index());
  ASSERT_FALSE(buckets.empty()) << "there is still somebody";
  EXPECT_EQ(buckets[0].key, waiting_bucket_key(a, now.count() - 7200));
}

TEST_F(ActorAdminTest, InspectShowsWhatThereIs) {  // DGEN-B14
  Actors pusher = open();
  EXPECT_EQ(code_of(pusher.actor("counter", "a").inspect()), ErrorCode::kNotFound);
  ASSERT_TRUE(pusher.of<Counter>("a").cast_many(std::vector<Add>(3)));
  auto info = pusher.actor("counter", "a").inspect();
  EXPECT_FALSE(info->state);
  EXPECT_EQ(info->mailbox_length, 3U);
  ASSERT_TRUE(info->oldest);
  EXPECT_GT(*info->oldest, WallTime{});
  ASSERT_TRUE(pusher.of<Counter>("a").cast(Add{0}));
  EXPECT_EQ(pusher.actor("counter", "a").inspect()->oldest, info->oldest) << "of the first that waits, not the last";
  Actors actors = node();
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 3);
  info = pusher.actor("counter", "a").inspect();
  EXPECT_EQ(info->state->to_json(), R"({"asking":[],"count":3})");
  EXPECT_GT(info->version.version.number, 0U);
  EXPECT_EQ(info->mailbox_length, 0U);
}

TEST_F(ActorAdminTest, AClosedNodeRefusesAndKeepsNothing) {
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{1}));
  ASSERT_TRUE(actors.close());
  ASSERT_TRUE(actors.close()) << "again is fine";
  EXPECT_EQ(code_of(actors.of<Counter>("a").cast(Add{1})), ErrorCode::kClosed);
  EXPECT_EQ(code_of(actors.serve(counter)), ErrorCode::kClosed);
  auto sessions = store.transact([](Transaction& txn) { return Session::list(txn); });
  EXPECT_TRUE(sessions->empty());
  EXPECT_TRUE(rows(server_prefix("default", "counter")).empty());
}

TEST_F(ActorAdminTest, ANodeThatIsDroppedEndsItsSession) {
  {
    Actors actors = node();
  }
  EXPECT_TRUE(eventually([&] { return store.transact([](Transaction& txn) { return Session::list(txn); })->empty(); }));
}

TEST_F(ActorAdminTest, TheStoreMayBeClosedFirst) {
  Actors actors = node();
  ASSERT_TRUE(actors.of<Counter>("a").cast(Add{1}));
  ASSERT_TRUE(store.close());
  EXPECT_EQ(code_of(actors.of<Counter>("a").cast(Add{1})), ErrorCode::kClosed);
}

}  // namespace
}  // namespace perdure::actor
