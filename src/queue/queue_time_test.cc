// What happens by itself when its time has come: delays, deadlines of claims, ends of rules, forgetting. Virtual time.
#include "queue/claim.h"
#include "queue/queue_sim_fixture.h"
#include "session/store_clock.h"

namespace perdure::queue {
namespace {

class QueueTime : public QueueSimFixture {
 protected:
  std::vector<WallTime> runs;
  std::vector<std::int64_t> values;

  QueueTime() : QueueSimFixture(testing::SimulationOptions{.keep_trace = true}) {
    serve([this](Queue& queue, Node& node) {
      ASSERT_TRUE(queue.work("mail", [this, &node](Job& job) {
        runs.push_back(node.wall_now());
        if (const auto* number = job.value().as_integer()) values.push_back(*number);
      }));
    });
  }
  /// The latest time that anybody acted upon.
  WallTime floor() {
    return look([](Reader& reader, Queue&) {
      SystemAccess access(reader);
      return StoreClock::read(reader);
    });
  }
  Result<void> complete(const Claimed& claimed) {
    return transact([&](Transaction& txn) { queue().complete(txn, claimed.id, *claimed.token); });
  }
};

// DARK-22, DARK-B9
TEST_F(QueueTime, DARK_22_DARK_B9_AnEventRunsAtItsTimeAndNotBefore) {
  WallTime start = wall_now();
  emit("mail", 3, {.delay = 30s});
  emit("mail", 1, {.delay = 10s});
  emit("mail", 2, {.at = due_at(start + 20s)});
  sim_.run_for(9s);
  EXPECT_EQ(runs.size(), 0U);
  EXPECT_EQ(info("mail").scheduled, 3U);
  sim_.run_for(1min);
  ASSERT_EQ(values, (std::vector<std::int64_t>{1, 2, 3}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(runs[i], start + 10s * (i + 1));
    EXPECT_LT(runs[i], start + 10s * (i + 1) + 300ms);
  }
}

// DARK-34
TEST_F(QueueTime, DARK_34_AnEventOfAFarFutureWaitsForItsTime) {
  Uuid year = emit("mail", 1, {.delay = 24h * 365});
  Uuid last = emit("mail", 2, {.at = kLastDueTime});
  Uuid longest = emit("mail", 3, {.delay = Duration::max()});
  let_days_pass(364);
  EXPECT_EQ(runs.size(), 0U);
  EXPECT_EQ(get(year)->state, EventState::kScheduled);
  EXPECT_EQ(get(last)->delay_until, kLastDueTime);
  EXPECT_GT(get(longest)->delay_until, DueTime(24h * 365 * 290));
  let_days_pass(2);
  EXPECT_EQ(values, std::vector<std::int64_t>{1});
  EXPECT_EQ(info("mail").scheduled, 2U);
}

// DARK-11, DARK-12, DARK-U8
TEST_F(QueueTime, DARK_11_DARK_12_DARK_U8_AnIdleNodeAsksTheStoreNothingAndIsToldAtOnce) {
  configure("mail", {.rate = Rate{10, 1s}});
  for (int i = 0; i < 300; ++i) emit("mail", i, {.delay = 24h});
  sim_.run_for(1min);
  std::size_t before = sim_.trace().size();
  sim_.run_for(1h);
  EXPECT_LT(sim_.trace().size() - before, 25'000U) << "the renewals of the session, and little else";
  WallTime start = wall_now();
  emit("mail", -1);
  sim_.run_for(1s);
  ASSERT_EQ(values, std::vector<std::int64_t>{-1});
  EXPECT_LT(runs[0], start + 200ms) << "upstream's pull would have paused for a second";
}

TEST_F(QueueTime, ManyEventsThatFallDueTogetherAllRunAndKeepNobodyElseWaiting) {
  std::vector<NewEvent> events;
  WallTime start = wall_now();
  for (int i = 0; i < 1'000; ++i) events.push_back({"other", i, {.delay = 10s}});
  ASSERT_TRUE(
      await<std::vector<Emitted>>([&](auto done) { queue().emit_many_async(std::move(events), std::move(done)); }));
  emit("mail", 1, {.at = due_at(start + 10s) + 1s});
  sim_.run_for(15s);
  EXPECT_EQ(info("other").ready, 1'000U);
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_LT(runs[0], start + 12s);
}

// DARK-33
TEST_F(QueueTime, DARK_33_PausedEventsStayForAsLongAsItTakes) {
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().add_rule(txn, "mail", Rule::Type::kBlock); }));
  Uuid ready = emit("mail", 1), late = emit("mail", 2, {.delay = 24h});
  let_days_pass(90);
  EXPECT_EQ(get(ready)->state, EventState::kBlocked);
  EXPECT_EQ(get(late)->state, EventState::kBlocked) << "what falls due meanwhile waits with the others";
  EXPECT_EQ(info("mail").ready, 2U);
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().remove_rule(txn, "mail", Rule::Type::kBlock); }));
  sim_.run_for(1s);
  EXPECT_EQ(values, (std::vector<std::int64_t>{1, 2}));
}

TEST_F(QueueTime, ARuleEndsByItselfAtItsTime) {
  WallTime start = wall_now();
  ASSERT_TRUE(transact([&](Transaction& txn) {
    queue().add_rule(txn, "mail", Rule::Type::kPause, {.until = due_at(start + 90s)});
    queue().add_rule(txn, "mail", Rule::Type::kBlock, {.until = due_at(start + 10s)});
  }));
  Uuid id = emit("mail", 1);
  EXPECT_EQ(get(id)->state, EventState::kBlocked);
  sim_.run_for(20s);
  EXPECT_EQ(get(id)->state, EventState::kPaused);
  auto claimed =
      await<std::vector<Claimed>>([&](auto done) { queue().claim_async("hand", {.wait = 1s}, std::move(done)); });
  EXPECT_EQ(claimed->size(), 0U);
  sim_.run_for(2min);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_GE(runs[0], start + 90s);
  EXPECT_LT(runs[0], start + 91s);
  EXPECT_EQ(info("mail").rules.size(), 0U);
  EXPECT_GE(floor(), start + 90s) << "it was decided by the time that it was";
}

TEST_F(QueueTime, ARuleThatEndsWithTheYear9999IsAskedNothing) {
  ASSERT_TRUE(
      transact([&](Transaction& txn) { queue().add_rule(txn, "mail", Rule::Type::kPause, {.until = kLastDueTime}); }));
  Uuid id = emit("mail", 1);
  sim_.run_for(1s);
  std::size_t before = sim_.trace().size();
  sim_.run_for(10s);
  EXPECT_LT(sim_.trace().size() - before, 300U);
  EXPECT_EQ(get(id)->state, EventState::kPaused);
}

TEST_F(QueueTime, AClaimThatWaitsIsServedWhenARuleEnds) {
  WallTime start = wall_now();
  ASSERT_TRUE(transact(
      [&](Transaction& txn) { queue().add_rule(txn, "hand", Rule::Type::kPause, {.until = due_at(start + 3s)}); }));
  emit("hand", 1);
  EXPECT_EQ(claim("hand", {.wait = 8s}).size(), 1U);
  EXPECT_GE(wall_now(), start + 3s);
  EXPECT_LT(wall_now(), start + 4s);
}

// DARK-24
TEST_F(QueueTime, DARK_24_AClaimWhoseDeadlineHasPassedIsTakenBackOnce) {
  Uuid id = emit("hand", 1);
  Claimed first = claim("hand", {.lock = 10s}).at(0);
  sim_.run_for(9s);
  EXPECT_EQ(get(id)->state, EventState::kRunning);
  sim_.run_for(2s);
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kReady);
  EXPECT_EQ(event.losses, 1);
  EXPECT_EQ(event.retries, 0);
  EXPECT_EQ(event.locked_at, std::nullopt);
  EXPECT_EQ(code_of(complete(first)), ErrorCode::kStaleToken) << "C-24: the first claim can change nothing any more";
  Claimed second = claim("hand").at(0);
  EXPECT_EQ(second.attempts, 2);
  EXPECT_EQ(code_of(complete(first)), ErrorCode::kStaleToken);
  EXPECT_EQ(get(id)->token, second.token);
  EXPECT_TRUE(complete(second));
  auto records = attempts("hand");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].outcome, AttemptRecord::Outcome::kLost);
  EXPECT_EQ(records[1].error, "its claim was not extended in time");
  EXPECT_EQ(info("hand").lost, 1U);
}

// DARK-B4
TEST_F(QueueTime, DARK_B4_AClaimThatIsExtendedLastsForAsLongAsThatIsDone) {
  Uuid id = emit("hand", 1);
  Claimed claimed = claim("hand", {.lock = 10s}).at(0);
  for (int i = 0; i < 50; ++i) {
    sim_.run_for(8s);
    ASSERT_TRUE(transact([&](Transaction& txn) {
      DueTime until = queue().extend(txn, id, *claimed.token, 10s);
      EXPECT_GT(until, due_at(wall_now()) + 9s);
    })) << i;
  }
  EXPECT_EQ(get(id)->token, claimed.token) << "an extension is the same claim";
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().extend(txn, id, *claimed.token, 1h); }));
  sim_.run_for(50min + 20s);
  EXPECT_EQ(get(id)->state, EventState::kRunning);
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().extend(txn, id, *claimed.token, 1s); })) << "shorter";
  sim_.run_for(3s);
  EXPECT_EQ(get(id)->state, EventState::kReady);
  EXPECT_EQ(get(id)->losses, 1);
}

// DARK-9, DARK-B4
TEST_F(QueueTime, DARK_9_DARK_B4_TheClaimOfASessionHasNoDeadlineWhileTheSessionIsRenewed) {
  Uuid id = emit("long", 1);
  std::optional<Session> session;
  Session::open_async(sim_.node(0)->store(), {}, [&](Result<Session> opened) { session.emplace(std::move(*opened)); });
  ASSERT_TRUE(sim_.run_until([&] { return session.has_value(); }, kPatience));
  WallTime now = wall_now();
  ASSERT_TRUE(transact([&](Transaction& txn) {
    WorkerTable table(txn, "default", "long", now);
    EXPECT_EQ(claim_some(table, {.max = 1, .claimant = {session->id(), {}}}).events.size(), 1U);
    table.finish();
  }));
  sim_.run_for(6h);
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kRunning);
  EXPECT_EQ(event.owner, session->id());
  EXPECT_TRUE(transact([&](Transaction& txn) { queue().complete(txn, id, *event.token); }));
  session.reset();
}

TEST_F(QueueTime, HowAnEventEndedIsForgottenAfterTheRetention) {
  configure("mail", {.retention = 1h});
  Uuid id = emit("mail", 1);
  sim_.run_for(50min);
  EXPECT_TRUE(history(id));
  EXPECT_EQ(rows_of(forget_prefix()), 1U);
  sim_.run_for(15min);
  EXPECT_EQ(code_of(history(id)), ErrorCode::kNotFound);
  EXPECT_EQ(rows_of(forget_prefix()), 0U);
  EXPECT_EQ(rows_of(tuple::pack_onto(kSystemKeys, "event")), 0U);
  EXPECT_EQ(info("mail").completed, 1U);
  for (int i = 0; i < 50; ++i) emit("mail", i);
  sim_.run_for(2h);
  EXPECT_EQ(rows_of(tuple::pack_onto(kSystemKeys, "event")), 0U) << "however many there are";
}

TEST_F(QueueTime, AnIdCanBeUsedAgainWhenItsEventIsForgotten) {
  configure("mail", {.retention = 1min});
  EmitOptions own{.id = Uuid{}};
  own.id->bytes[0] = 7;
  emit("mail", 1, own);
  sim_.run_for(10s);
  emit("mail", 2, own);
  EXPECT_EQ(values, std::vector<std::int64_t>{1});
  sim_.run_for(3min);
  emit("mail", 3, own);
  sim_.run_for(1s);
  EXPECT_EQ(values, (std::vector<std::int64_t>{1, 3}));
}

TEST_F(QueueTime, AUniqueKeyThatLastsIsTakenForItsTimeAndNoLonger) {
  EmitOptions unique{.unique = UniqueKey{"report", 10min}};
  Uuid first = emit("mail", 1, unique);
  sim_.run_for(9min);
  EXPECT_TRUE(history(first));
  EXPECT_EQ(emit("mail", 2, unique), first) << "also when the first has ended long since";
  sim_.run_for(1min + 1s);
  Uuid second = emit("mail", 3, unique);
  EXPECT_NE(second, first);
  sim_.run_for(9min);
  EXPECT_EQ(emit("mail", 4, unique), second) << "what forgets the first leaves the second alone";
  EXPECT_EQ(values, (std::vector<std::int64_t>{1, 3}));
  sim_.run_for(30min);
  EXPECT_EQ(rows_of(tuple::pack_onto(worker_prefix("default", "mail"), "u")), 0U);
}

TEST_F(QueueTime, WhatWasActedUponIsNotUndoneByAClockThatJumpsBack) {
  Uuid id = emit("hand", 1, {.delay = 10s});
  sim_.run_for(11s);
  EXPECT_EQ(get(id)->state, EventState::kReady);
  WallTime acted = floor();
  EXPECT_GE(acted, WallTime(get(id)->delay_until)) << "promoting says what time it was";
  sim_.jump_wall_clock(0, -1h);
  Uuid later = emit("hand", 1, {.delay = 10s});
  EXPECT_GE(get(later)->enqueued_at, acted);
  sim_.run_for(12s);
  EXPECT_EQ(get(later)->state, EventState::kReady) << "delays still end on time";
}

TEST_F(QueueTime, AnEventThatWasDueAtItsEmittingActsOnTheTimeThatItIs) {
  Uuid id = emit("hand", 1, {.at = std::chrono::floor<std::chrono::milliseconds>(wall_now())});
  sim_.run_for(1s);
  EXPECT_GE(floor(), WallTime(get(id)->delay_until));
}

}  // namespace
}  // namespace perdure::queue
