// Claims by hand: deadlines, tokens, and who gets what.
#include <algorithm>

#include "queue/claim.h"
#include "queue/queue_fixture.h"
#include "queue/settle.h"

namespace perdure::queue {
namespace {

class QueueClaim : public QueueFixture {};

// DARK-27
TEST_F(QueueClaim, DARK_27_AClaimCountsOnlyIfTheEventIsAsItWasRead) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  int runs = 0;
  std::size_t claimed = 7;
  Claimed winner;
  auto done = store.transact([&](Transaction& txn) {
    WorkerTable table(txn, "default", "hand", WallTime(1h));
    claimed = claim_some(table, {.max = 1, .claimant = {{}, DueTime(2h)}}).events.size();
    table.finish();
    if (++runs > 1) return;
    EXPECT_EQ(claimed, 1U);
    std::thread([&] { winner = claim_one(queue, "hand"); }).join();
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(claimed, 0U) << "it has lost, and finds nothing when it looks again";
  EXPECT_EQ(winner.id, id);
  EXPECT_EQ(queue.get(id)->attempts, 1);
  EXPECT_TRUE(queue.complete(id, *winner.token));
}

// DARK-23
TEST_F(QueueClaim, DARK_23_AnEventThatIsClaimedIsNotClaimedAgain) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  Claimed claimed = claim_one(queue, "hand");
  EXPECT_EQ(claimed.state, EventState::kRunning);
  EXPECT_TRUE(claimed.locked_at);
  EXPECT_TRUE(claimed.locked_until);
  EXPECT_EQ(claimed.owner, std::nullopt) << "it is nobody's but of who has the token";
  EXPECT_EQ(claimed.attempts, 1);
  EXPECT_EQ(claimed.token, queue.get(id)->token);
  EXPECT_EQ(queue.get(id)->locked_until, claimed.locked_until);
  EXPECT_EQ(queue.claim("hand")->size(), 0U);
  EXPECT_EQ(queue.claim("hand", {.wait = 10ms})->size(), 0U);
  EXPECT_NE(queue.why(id)->text.find("under a claim until "), std::string::npos) << queue.why(id)->text;
}

// DARK-28, DARK-U10
TEST_F(QueueClaim, DARK_28_DARK_U10_CompletingTakesTheEventAndAllThatTellsOfItInOneTransaction) {
  Queue queue = open();
  auto id = queue.emit("hand", std::string(2'000, 'x'), {.unique = UniqueKey{"u"}, .limit_key = "k"})->id;
  Claimed claimed = claim_one(queue, "hand");
  ASSERT_TRUE(queue.complete(id, *claimed.token, Value::List{1, "two"}));
  EXPECT_EQ(code_of(queue.get(id)), ErrorCode::kNotFound);
  Bytes prefix = worker_prefix("default", "hand");
  for (const Bytes& table : {ready_key(prefix), scheduled_key(prefix), dead_key(prefix), tuple::pack_onto(prefix, "k"),
                             tuple::pack_onto(prefix, "u"), deadlines()})
    EXPECT_EQ(rows(table).size(), 0U);
  EXPECT_EQ(rows(event_key("default", id)).size(), 0U);
  EXPECT_EQ(ended(queue, id).result, Value(Value::List{1, "two"}));
  EXPECT_EQ(ended(queue, id).how, EndedEvent::How::kCompleted);
}

TEST_F(QueueClaim, CompletingIsPartOfTheTransactionItIsIn) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  Claimed claimed = claim_one(queue, "hand");
  EXPECT_FALSE(store.transact([&](Transaction& txn) -> Result<void> {
    txn.add("sum", 1);
    queue.complete(txn, id, *claimed.token);
    return fail(ErrorCode::kInvalidArgument, "not yet");
  }));
  EXPECT_EQ(queue.get(id)->state, EventState::kRunning);
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    txn.add("sum", 1);
    queue.complete(txn, id, *claimed.token, 5);
    queue.emit(txn, "next", 2);
  }));
  EXPECT_EQ(ended(queue, id).result, Value(5));
  EXPECT_EQ(info(queue, "next").ready, 1U);
  EXPECT_EQ(*store.read([](Reader& reader) { return decode_counter(reader.get("sum")); }), 1);
}

// DARK-B4
TEST_F(QueueClaim, DARK_B4_ATokenThatIsStaleChangesNothing) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  Claimed first = claim_one(queue, "hand");
  ASSERT_TRUE(queue.release(id, *first.token));
  constexpr auto kStale = ErrorCode::kStaleToken;
  auto all_stale = [&](const Token& token) {
    EXPECT_EQ(code_of(queue.complete(id, token)), kStale);
    EXPECT_EQ(code_of(queue.fail(id, token, "x")), kStale);
    EXPECT_EQ(code_of(queue.release(id, token)), kStale);
    EXPECT_EQ(code_of(queue.extend(id, token, 1h)), kStale);
  };
  all_stale(*first.token);
  Claimed second = claim_one(queue, "hand");
  EXPECT_NE(second.token, first.token);
  all_stale(*first.token);
  Event event = queue.get(id).value();
  EXPECT_EQ(event.state, EventState::kRunning);
  EXPECT_EQ(event.token, second.token);
  EXPECT_EQ(event.locked_until, second.locked_until);
  auto both = store.transact([&](Transaction& txn) {
    txn.set("written", "yes");
    queue.complete(txn, id, *first.token);
  });
  EXPECT_EQ(code_of(both), kStale) << "what is beside it in the transaction is fenced as well";
  EXPECT_EQ(*store.read([](Reader& reader) { return reader.get("written"); }), std::nullopt);
  ASSERT_TRUE(queue.complete(id, *second.token));
  all_stale(*first.token);
  EXPECT_EQ(code_of(queue.complete(Uuid{}, *first.token)), kStale);
  Token foreign = *second.token;
  ++foreign.store;
  EXPECT_EQ(code_of(queue.complete(id, foreign)), ErrorCode::kInvalidArgument) << "a token of another store";
}

TEST_F(QueueClaim, RepeatingAnEndOfTheEventIsFine) {
  Queue queue = open();
  auto done = queue.emit("hand", 1)->id;
  Token token = *claim_one(queue, "hand").token;
  ASSERT_TRUE(queue.complete(done, token, 1));
  ASSERT_TRUE(queue.complete(done, token, 2));
  EXPECT_EQ(ended(queue, done).result, Value(1)) << "the first counts";
  EXPECT_EQ(info(queue, "hand").completed, 1U);
  EXPECT_EQ(code_of(queue.extend(done, token, 1s)), ErrorCode::kStaleToken);
  auto dropped = queue.emit("hand", 1, {.retry = RetryPolicy{.max = 0, .then = RetryPolicy::Then::kDrop}})->id;
  token = *claim_one(queue, "hand").token;
  ASSERT_TRUE(queue.fail(dropped, token, "x"));
  ASSERT_TRUE(queue.fail(dropped, token, "x"));
  EXPECT_EQ(info(queue, "hand").failed, 1U);
}

TEST_F(QueueClaim, ReleasingGivesItBackAndTheAttemptIsNotCounted) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  for (int i = 0; i < 5; ++i) {
    Claimed claimed = claim_one(queue, "hand");
    EXPECT_EQ(claimed.attempts, 1);
    ASSERT_TRUE(queue.release(id, *claimed.token));
    EXPECT_EQ(queue.get(id)->state, EventState::kReady);
    EXPECT_EQ(queue.get(id)->attempts, 0);
    EXPECT_EQ(queue.get(id)->locked_at, std::nullopt);
  }
  EXPECT_EQ(attempts(queue, "hand").at(0).outcome, AttemptRecord::Outcome::kReleased);
  EXPECT_EQ(info(queue, "hand").failed, 0U);
  EXPECT_EQ(info(queue, "hand").lost, 0U);
}

TEST_F(QueueClaim, FailingByHandSaysWhenToTryAgainOrNot) {
  Queue queue = open();
  auto id = queue.emit("hand", 1, {.retry = RetryPolicy{.max = 5}})->id;
  ASSERT_TRUE(queue.fail(id, *claim_one(queue, "hand").token, "once", {.retry_in = 0s}));
  EXPECT_EQ(queue.get(id)->state, EventState::kReady);
  ASSERT_TRUE(queue.fail(id, *claim_one(queue, "hand").token, "twice", {.retry_in = 1h}));
  Event event = queue.get(id).value();
  EXPECT_EQ(event.state, EventState::kScheduled);
  EXPECT_EQ(event.retries, 2);
  auto left = event.delay_until - DueTime(std::chrono::floor<std::chrono::milliseconds>(event.failures[1].at));
  EXPECT_GE(left, 1h);
  EXPECT_LE(left, 1h + 2ms);
  EXPECT_NE(queue.why(id)->text.find("after attempt 2 failed: twice"), std::string::npos) << queue.why(id)->text;
  auto other = queue.emit("hand", 1)->id;
  ASSERT_TRUE(queue.fail(other, *claim_one(queue, "hand").token, "broken", {.give_up = true}));
  EXPECT_EQ(queue.get(other)->state, EventState::kDead);
  EXPECT_EQ(queue.get(other)->retries, 0);
  EXPECT_EQ(queue.get(other)->last_error, "broken");
  auto loud = queue.emit("hand", 1, {.retry = RetryPolicy{.max = 0}})->id;
  ASSERT_TRUE(queue.fail(loud, *claim_one(queue, "hand").token, std::string(5'000, 'x')));
  EXPECT_EQ(queue.get(loud)->last_error, std::string(1'000, 'x'));
  auto umlaut = queue.emit("hand", 1, {.retry = RetryPolicy{.max = 0}})->id;
  ASSERT_TRUE(queue.fail(umlaut, *claim_one(queue, "hand").token, std::string(999, 'x') + "\xc3\xa4"));
  EXPECT_EQ(queue.get(umlaut)->last_error, std::string(999, 'x')) << "not in the middle of a character";
}

TEST_F(QueueClaim, ClaimsAreForABoundedNumberAndTime) {
  Queue queue = open();
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code_of(queue.claim("hand", {.max = 0})), kWrong);
  EXPECT_EQ(code_of(queue.claim("hand", {.max = 1'001})), kWrong);
  EXPECT_EQ(code_of(queue.claim("hand", {.lock = 0s})), kWrong);
  EXPECT_EQ(code_of(queue.claim("hand", {.lock = 24h * 366})), kWrong);
  EXPECT_EQ(code_of(queue.claim("hand", {.wait = -1s})), kWrong);
  ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(25, {"hand", 1, {}})));
  EXPECT_EQ(queue.claim("hand")->size(), 10U) << "the default";
  EXPECT_EQ(queue.claim("hand", {.max = 1'000, .lock = 24h * 365})->size(), 15U);
  EXPECT_EQ(info(queue, "hand").running, 25U);
  auto id = queue.emit("hand", 1)->id;
  Token token = *claim_one(queue, "hand").token;
  EXPECT_EQ(code_of(queue.extend(id, token, 0s)), kWrong);
  EXPECT_EQ(code_of(queue.complete(id, token, std::string(kEventBytesMax, 'x'))), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(queue.complete(id, token, "\xff")), kWrong);
  EXPECT_EQ(queue.get(id)->state, EventState::kRunning);
}

TEST_F(QueueClaim, AWaitingClaimIsServedByTheNextEvent) {
  Queue queue = open();
  std::optional<Result<std::vector<Claimed>>> answer;
  std::binary_semaphore answered{0};
  queue.claim_async("hand", {.max = 5, .wait = Duration::max()}, [&](Result<std::vector<Claimed>> claimed) {
    answer.emplace(std::move(claimed));
    answered.release();
  });
  auto id = queue.emit("hand", 1)->id;
  answered.acquire();
  ASSERT_TRUE(*answer);
  ASSERT_EQ((*answer)->size(), 1U);
  EXPECT_EQ((**answer)[0].id, id);
}

TEST_F(QueueClaim, TheClaimOfANodeIsNotExtendedByHand) {
  Queue queue = open();
  std::binary_semaphore began{0}, may_end{0};
  Token token;
  ASSERT_TRUE(queue.work("mail", [&](Job& job) {
    token = job.token();
    began.release();
    may_end.acquire();
  }));
  auto id = queue.emit("mail", 1)->id;
  began.acquire();
  EXPECT_EQ(queue.get(id)->token, token);
  EXPECT_TRUE(queue.get(id)->owner);
  EXPECT_EQ(queue.get(id)->locked_until, std::nullopt);
  EXPECT_EQ(code_of(queue.extend(id, token, 1h)), ErrorCode::kWrongState);
  EXPECT_NE(queue.why(id)->text.find("under node "), std::string::npos) << queue.why(id)->text;
  may_end.release();
  ended(queue, id);
}

// DARK-13, DARK-21
TEST_F(QueueClaim, DARK_13_DARK_21_AnEntryThatPointsNowhereIsTakenAwayAndTheOthersAreServed) {
  Queue queue = open();
  auto good = queue.emit("hand", 1)->id;
  auto scheduled = queue.emit("hand", 2, {.delay = 1h})->id;
  Bytes index = ready_key(worker_prefix("default", "hand"));
  // A stale entry, one of nothing, and one of an event that is not ready.
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    WorkerTable table(txn, "default", "hand", WallTime(1h));
    Stamp stamp{Version{1}, 0};
    txn.set(tuple::pack_onto(index, 0, stamp), ReadyEntry{good, {}}.encode());
    txn.set(tuple::pack_onto(index, 1, stamp), ReadyEntry{Uuid{}, {}}.encode());
    txn.set(tuple::pack_onto(index, 2, stamp), ReadyEntry{scheduled, {}}.encode());
    txn.set(tuple::pack_onto(index, 3, stamp), "damaged");
    table.count(Counter::kIn, 4);
    table.finish();
  }));
  auto claimed = queue.claim("hand");
  ASSERT_EQ(claimed->size(), 1U) << "the rows of events decide, and entries only say where to look";
  EXPECT_EQ((*claimed)[0].id, good);
  EXPECT_EQ(rows(index).size(), 0U);
  EXPECT_EQ(info(queue, "hand").ready, 0U);
}

TEST_F(QueueClaim, ASessionNotesAllItsClaimsAndIsSweptOfItsOwnOnly) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(70, {"mail", 1, {}})));
  Session session = *Session::open(store);
  std::vector<Uuid> ids;
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    WorkerTable table(txn, "default", "mail", WallTime(1h));
    auto claimed = claim_some(table, {.max = 70, .claimant = {session.id(), {}}, .held_from = 5});
    for (const ClaimedRow& row : claimed.events) ids.push_back(row.event.id);
    table.finish();
  }));
  EXPECT_EQ(ids.size(), 70U);
  EXPECT_EQ(*store.read([](Reader& reader) { return RowCheck::run(reader); }), std::vector<std::string>());
  auto sweep = [&](SessionId dead) {
    ASSERT_TRUE(store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      sweep_claims(txn, dead, HeldClaims{"default", ids}.encode(), WallTime(2h));
    }));
  };
  sweep({});
  EXPECT_EQ(info(queue, "mail").running, 70U) << "they are another's by now";
  sweep(session.id());
  EXPECT_EQ(info(queue, "mail").lost, 70U);
  EXPECT_EQ(info(queue, "mail").ready, 70U);
}

TEST_F(QueueClaim, WhoLostLooksBehindWhatTheOtherWasAfter) {
  Queue queue = open();
  std::vector<Uuid> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(queue.emit("hand", i)->id);
  auto claimed = [&](std::size_t max, std::size_t skip) {
    std::vector<std::size_t> places;
    bool more = false;
    auto done = store.transact([&](Transaction& txn) -> Result<void> {
      places.clear();
      WorkerTable table(txn, "default", "hand", WallTime(1h));
      auto result = claim_some(table, {.max = max, .claimant = {{}, DueTime(2h)}, .skip = skip});
      more = result.more;
      for (const ClaimedRow& row : result.events)
        places.push_back(static_cast<std::size_t>(std::ranges::find(ids, row.event.id) - ids.begin()));
      return fail(ErrorCode::kInvalidArgument, "only looking");
    });
    EXPECT_FALSE(done);
    if (more) places.push_back(99);
    return places;
  };
  using Places = std::vector<std::size_t>;
  EXPECT_EQ(claimed(2, 0), (Places{0, 1, 99}));
  EXPECT_EQ(claimed(2, 4), (Places{4, 5, 99}));
  EXPECT_EQ(claimed(4, 100), (Places{6, 7, 8, 9, 99})) << "the last ones, if there are not so many";
  EXPECT_EQ(claimed(20, 0), (Places{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(claimed(20, 5), (Places{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(claimed(10, 0), (Places{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99})) << "there may be";
}

}  // namespace
}  // namespace perdure::queue
