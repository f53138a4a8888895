// Pauses and blocks: who holds what, for how long, and what a change of them races with.
#include "queue/claim.h"
#include "queue/queue_fixture.h"
#include "session/store_clock.h"

namespace perdure::queue {
namespace {

class QueueRules : public QueueFixture {
 protected:
  WorkerState state(Queue& queue, std::string_view worker = "mail") { return info(queue, worker).state; }
  std::size_t claimable(Queue& queue, std::string_view worker = "mail") {
    auto claimed = queue.claim(worker, {.max = 1000});
    EXPECT_TRUE(claimed);
    for (const Claimed& event : *claimed) EXPECT_TRUE(queue.release(event.id, *event.token));
    return claimed->size();
  }
};

// DARK-3
TEST_F(QueueRules, DARK_3_APausedWorkerTakesNothingUntilItIsUnpaused) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }));
  ASSERT_TRUE(queue.work("other", [&](Job&) {}));
  ASSERT_TRUE(queue.pause("mail"));
  EXPECT_EQ(state(queue), WorkerState::kPause);
  auto id = queue.emit("mail", 1)->id;
  ended(queue, queue.emit("other", 1)->id);
  EXPECT_EQ(queue.get(id)->state, EventState::kPaused);
  EXPECT_EQ(runs, 0);
  ASSERT_TRUE(queue.unpause("mail"));
  EXPECT_EQ(state(queue), WorkerState::kRun);
  ended(queue, id);
  EXPECT_EQ(runs, 1);
}

// DARK-4
TEST_F(QueueRules, DARK_4_ABlockHoldsAsAPauseDoes) {
  Queue queue = open();
  ASSERT_TRUE(queue.block("mail", {.reason = "costs too much", .by = "root"}));
  EXPECT_EQ(state(queue), WorkerState::kBlock);
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(queue.get(id)->state, EventState::kBlocked);
  EXPECT_EQ(claimable(queue), 0U);
  EXPECT_NE(queue.why(id)->text.find("blocked by root since "), std::string::npos);
  EXPECT_NE(queue.why(id)->text.find("(costs too much)"), std::string::npos);
  ASSERT_TRUE(queue.unblock("mail"));
  EXPECT_EQ(claimable(queue), 1U);
}

// DARK-38
TEST_F(QueueRules, DARK_38_WhatIsEmittedToAPausedWorkerIsStoredAndDoesNotRun) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail"));
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(claimable(queue), 0U);
  EXPECT_EQ(info(queue, "mail").total, 1U);
  EXPECT_EQ(info(queue, "mail").ready, 1U);
  EXPECT_EQ(list(queue, {.worker = "mail", .state = EventState::kPaused}).at(0).id, id);
}

// DARK-18
TEST_F(QueueRules, DARK_18_ARuleHasAnIdATypeATimeAndSaysWhoAndWhy) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail", {.reason = "moving", .by = "ann"}));
  ASSERT_TRUE(queue.block("mail"));
  ASSERT_TRUE(queue.in("other").pause("mail"));
  auto rules = info(queue, "mail").rules;
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].type, Rule::Type::kPause);
  EXPECT_EQ(rules[0].reason, "moving");
  EXPECT_EQ(rules[0].by, "ann");
  EXPECT_GT(rules[0].since, WallTime{});
  EXPECT_EQ(rules[0].until, std::nullopt);
  EXPECT_EQ(rules[1].type, Rule::Type::kBlock);
  Queue other = queue.in("other");
  auto others = info(other, "mail").rules;
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(rules[1].id, rules[0].id + 1) << "ids are counted";
  EXPECT_EQ(others[0].id, rules[1].id + 1) << "for all rules there are";
}

// DARK-19
TEST_F(QueueRules, DARK_19_RulesAreThoseOfOneWorkerInOneSpace) {
  Queue queue = open(), other = queue.in("other");
  ASSERT_TRUE(queue.pause("mail"));
  EXPECT_EQ(state(queue, "mail"), WorkerState::kPause);
  EXPECT_EQ(state(queue, "mails"), WorkerState::kRun);
  EXPECT_EQ(state(other, "mail"), WorkerState::kRun);
  ASSERT_TRUE(other.emit("mail", 1));
  ASSERT_TRUE(queue.emit("mail", 1));
  EXPECT_EQ(claimable(other), 1U);
  EXPECT_EQ(claimable(queue), 0U);
  ASSERT_TRUE(other.unpause("mail"));
  EXPECT_EQ(claimable(queue), 0U);
}

// DARK-U3
TEST_F(QueueRules, DARK_U3_AddingARuleTwiceOrRemovingOneThatIsNotThereChangesNothing) {
  Queue queue = open();
  ASSERT_TRUE(queue.unpause("mail"));
  ASSERT_TRUE(queue.unblock("mail"));
  ASSERT_TRUE(queue.pause("mail", {.reason = "first"}));
  auto before = info(queue, "mail").rules;
  ASSERT_TRUE(queue.pause("mail", {.reason = "second"}));
  auto after = info(queue, "mail").rules;
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].id, before[0].id);
  EXPECT_EQ(after[0].reason, "first");
  EXPECT_EQ(after[0].since, before[0].since);
  ASSERT_TRUE(queue.unpause("mail"));
  ASSERT_TRUE(queue.unpause("mail"));
  EXPECT_EQ(info(queue, "mail").rules.size(), 0U);
  EXPECT_EQ(rows(worker_prefix("default", "mail")).size(), 1U) << "the bell: nothing else is left of it";
}

// DARK-U4
TEST_F(QueueRules, DARK_U4_WithBothRulesItIsBlockedAndEitherAloneStillHolds) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit("mail", 1));
  for (bool pause_first : {true, false}) {
    ASSERT_TRUE(pause_first ? queue.pause("mail") : queue.block("mail"));
    ASSERT_TRUE(pause_first ? queue.block("mail") : queue.pause("mail"));
    EXPECT_EQ(state(queue), WorkerState::kBlock);
    ASSERT_TRUE(queue.unpause("mail"));
    EXPECT_EQ(state(queue), WorkerState::kBlock);
    EXPECT_EQ(claimable(queue), 0U) << "C-23: only if no other rule remains";
    ASSERT_TRUE(queue.pause("mail"));
    ASSERT_TRUE(queue.unblock("mail"));
    EXPECT_EQ(state(queue), WorkerState::kPause);
    EXPECT_EQ(claimable(queue), 0U);
    ASSERT_TRUE(queue.unpause("mail"));
    EXPECT_EQ(claimable(queue), 1U);
  }
}

// DARK-U5
TEST_F(QueueRules, DARK_U5_AWorkerRunsIsPausedOrBlockedAndNothingElse) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("b"));
  ASSERT_TRUE(queue.block("c"));
  ASSERT_TRUE(queue.emit("a", 1));
  std::string states;
  auto names = *store.read([&](Reader& reader) { return queue.workers(reader); });
  for (const std::string& name : names) states += name + "=" + std::string(name_of(state(queue, name))) + " ";
  EXPECT_EQ(states, "a=run b=pause c=block ");
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code_of(queue.pause("a", {.reason = std::string(1001, 'x')})), kWrong);
  EXPECT_EQ(code_of(queue.pause("a", {.by = std::string(1001, 'x')})), kWrong);
  EXPECT_EQ(code_of(queue.block("a", {.reason = "\xff"})), kWrong);
  EXPECT_EQ(code_of(queue.block("a", {.until = kLastDueTime + 1ms})), kWrong);
  EXPECT_EQ(state(queue, "a"), WorkerState::kRun);
  EXPECT_TRUE(queue.pause("a", {.reason = std::string(1000, 'x'), .until = kLastDueTime}));
}

// DARK-40
TEST_F(QueueRules, DARK_40_APauseStopsNothingThatIsRunning) {
  Queue queue = open();
  std::binary_semaphore began{0}, may_end{0};
  ASSERT_TRUE(queue.work("mail", [&](Job& job) {
    began.release();
    may_end.acquire();
    EXPECT_FALSE(job.cancel_signal().cancelled());
    return Value("done");
  }));
  auto first = queue.emit("mail", 1)->id;
  began.acquire();
  ASSERT_TRUE(queue.pause("mail"));
  ASSERT_TRUE(queue.block("mail"));
  auto second = queue.emit("mail", 2)->id;
  EXPECT_EQ(queue.get(first)->state, EventState::kRunning);
  may_end.release();
  EXPECT_EQ(ended(queue, first).result, Value("done"));
  EXPECT_EQ(queue.get(second)->state, EventState::kBlocked);
}

// DARK-31, DARK-B2
TEST_F(QueueRules, DARK_31_DARK_B2_UnpausingReleasesAllInTheOrderOfTheirEmitting) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail"));
  std::vector<NewEvent> events;
  for (int i = 0; i < 2'500; ++i) events.push_back({"mail", i, {}});
  ASSERT_TRUE(queue.emit_many(std::move(events)));
  std::vector<std::int64_t> seen;
  std::atomic<int> count = 0;
  ASSERT_TRUE(queue.work("mail",
                         [&](Job& job) {
                           seen.push_back(*job.value().as_integer());
                           ++count;
                         },
                         {.concurrency = 1}));
  ASSERT_TRUE(queue.unpause("mail"));
  ASSERT_TRUE(eventually([&] { return info(queue, "mail").completed == 2'500; })) << count;
  ASSERT_TRUE(queue.close());
  ASSERT_EQ(seen.size(), 2'500U) << "and not the first thousand of them";
  for (int i = 0; i < 2'500; ++i) EXPECT_EQ(seen[i], i);
}

// DARK-32, DARK-B12
TEST_F(QueueRules, DARK_32_DARK_B12_PausingAndUnpausingQuicklyRunsEachEventOnce) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.pause("mail"));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(queue.emit("mail", i));
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }));
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(queue.unpause("mail"));
    ASSERT_TRUE(queue.pause("mail"));
    EXPECT_EQ(rows(ready_key(worker_prefix("default", "mail"))).size(), info(queue, "mail").ready)
        << "one entry for each event, however often it is released";
  }
  ASSERT_TRUE(queue.unpause("mail"));
  ASSERT_TRUE(eventually([&] { return info(queue, "mail").completed == 20; }));
  EXPECT_EQ(runs, 20);
}

// DARK-25
TEST_F(QueueRules, DARK_25_APausedOrBlockedEventKeepsItsPlaceInTheIndex) {
  Queue queue = open();
  auto id = queue.emit("mail", 1)->id;
  Bytes index = ready_key(worker_prefix("default", "mail"));
  auto before = rows(index);
  ASSERT_TRUE(queue.pause("mail"));
  EXPECT_EQ(claimable(queue), 0U);
  ASSERT_TRUE(queue.block("mail"));
  EXPECT_EQ(claimable(queue), 0U);
  auto after = rows(index);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].key, before[0].key);
  EXPECT_TRUE(queue.get(id));
}

// DARK-26
TEST_F(QueueRules, DARK_26_AnEventThatIsDueFreeAndPausedIsNotClaimed) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail"));
  ASSERT_TRUE(queue.emit("mail", 1, {.at = DueTime(0ms)}));
  auto claimed = queue.claim("mail", {.wait = 20ms});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->size(), 0U);
  EXPECT_EQ(info(queue, "mail").running, 0U);
}

// DARK-B6
TEST_F(QueueRules, DARK_B6_APauseThatCommitsBetweenCheckAndClaimIsNotMissed) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit("mail", 1));
  int runs = 0;
  std::size_t claimed = 7;
  auto done = store.transact([&](Transaction& txn) {
    WorkerTable table(txn, "default", "mail", WallTime(1h));
    claimed = claim_some(table, {.max = 1, .claimant = {{}, DueTime(2h)}}).events.size();
    table.finish();
    if (++runs > 1) return;
    EXPECT_EQ(claimed, 1U);
    std::thread([&] { EXPECT_TRUE(queue.pause("mail")); }).join();
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(runs, 2) << "it conflicts with the pause";
  EXPECT_EQ(claimed, 0U);
  EXPECT_EQ(info(queue, "mail").running, 0U);
}

TEST_F(QueueRules, ARuleThatIsOverIsNoRule) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit("mail", 1));
  ASSERT_TRUE(queue.pause("mail", {.until = DueTime(1h)}));
  EXPECT_EQ(state(queue), WorkerState::kRun);
  EXPECT_EQ(claimable(queue), 1U);
  ASSERT_TRUE(queue.pause("mail", {.reason = "again"}));
  EXPECT_EQ(info(queue, "mail").rules.size(), 1U) << "the old one is gone";
  EXPECT_EQ(info(queue, "mail").rules[0].reason, "again");
  EXPECT_EQ(claimable(queue), 0U);
}

TEST_F(QueueRules, RulesArePartsOfATransactionAsWell) {
  Queue queue = open();
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    queue.add_rule(txn, "mail", Rule::Type::kPause, {.by = "ann"});
    queue.emit(txn, "mail", 1);
  }));
  EXPECT_EQ(claimable(queue), 0U);
  ASSERT_TRUE(store.transact([&](Transaction& txn) { queue.remove_rule(txn, "mail", Rule::Type::kPause); }));
  EXPECT_EQ(claimable(queue), 1U);
  auto wrong = store.transact([&](Transaction& txn) { queue.add_rule(txn, "no name", Rule::Type::kPause); });
  EXPECT_EQ(code_of(wrong), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace perdure::queue
