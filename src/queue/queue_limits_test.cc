// What decides who is next: priorities, limit keys and rates. Virtual time.
#include "queue/queue_sim_fixture.h"

namespace perdure::queue {
namespace {

class QueueLimits : public QueueSimFixture {
 protected:
  QueueLimits() : QueueSimFixture(testing::SimulationOptions{.keep_trace = true}) {}
  std::vector<std::int64_t> values(const std::vector<Claimed>& claimed) {
    std::vector<std::int64_t> values;
    for (const Claimed& event : claimed) values.push_back(*event.value.as_integer());
    return values;
  }
  void complete(const Claimed& claimed) {
    ASSERT_TRUE(transact([&](Transaction& txn) { queue().complete(txn, claimed.id, *claimed.token); }));
  }
  void release(const Claimed& claimed) {
    ASSERT_TRUE(transact([&](Transaction& txn) { queue().release(txn, claimed.id, *claimed.token); }));
  }
  using Values = std::vector<std::int64_t>;
};

TEST_F(QueueLimits, EventsAreClaimedByPriorityAndThenInTheOrderInWhichTheyBecameReady) {
  emit("hand", 50);
  emit("hand", 51);
  emit("hand", 90, {.priority = 9});
  emit("hand", 52, {.delay = 1s});
  emit("hand", 0, {.priority = 0});
  sim_.run_for(2s);
  emit("hand", 53);
  emit("hand", 1, {.priority = 0});
  EXPECT_EQ(values(claim("hand")), (Values{0, 1, 50, 51, 52, 53, 90}));
}

TEST_F(QueueLimits, WhatIsGivenBackStandsBehindTheOthersOfItsPriority) {
  for (int i = 0; i < 3; ++i) emit("hand", i);
  release(claim("hand", {.max = 1}).at(0));
  EXPECT_EQ(values(claim("hand")), (Values{1, 2, 0}));
}

TEST_F(QueueLimits, OfEventsWithOneLimitKeyAsManyRunAsTheWorkerAllows) {
  for (int i = 0; i < 3; ++i) emit("hand", i, {.limit_key = "a"});
  for (int i = 10; i < 12; ++i) emit("hand", i, {.limit_key = "b"});
  emit("hand", 20);
  auto claimed = claim("hand");
  EXPECT_EQ(values(claimed), (Values{0, 10, 20})) << "one of each key";
  EXPECT_EQ(claim("hand").size(), 0U);
  EXPECT_EQ(info("hand").ready, 3U) << "those that wait are ready";
  complete(claimed[0]);
  auto second = claim("hand");
  EXPECT_EQ(values(second), Values{1});
  ASSERT_TRUE(
      transact([&](Transaction& txn) { queue().fail(txn, second[0].id, *second[0].token, "x", {.retry_in = 5s}); }));
  EXPECT_EQ(values(claim("hand")), Values{2}) << "a retry holds no slot while it waits";
  sim_.run_for(6s);
  EXPECT_EQ(claim("hand").size(), 0U);
  complete(claimed[1]);
  EXPECT_EQ(values(claim("hand")), Values{11});
}

TEST_F(QueueLimits, ASlotIsFreeHoweverItsEventEnds) {
  for (int i = 0; i < 5; ++i) emit("hand", i, {.limit_key = "a"});
  release(claim("hand").at(0));
  auto lost = claim("hand", {.lock = 1s});
  EXPECT_EQ(lost.size(), 1U);
  sim_.run_for(2s);
  auto dead = claim("hand");
  ASSERT_EQ(dead.size(), 1U);
  ASSERT_TRUE(
      transact([&](Transaction& txn) { queue().fail(txn, dead[0].id, *dead[0].token, "x", {.give_up = true}); }));
  auto cancelled = claim("hand");
  ASSERT_EQ(cancelled.size(), 1U);
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().cancel(txn, cancelled[0].id, Queue::Force::kYes); }));
  EXPECT_EQ(claim("hand").size(), 1U);
}

TEST_F(QueueLimits, AHigherLimitLetsMoreRunFromTheNextSlotOn) {
  for (int i = 0; i < 6; ++i) emit("hand", i, {.limit_key = "a"});
  auto first = claim("hand");
  EXPECT_EQ(first.size(), 1U);
  configure("hand", {.limit_per_key = 3});
  complete(first[0]);
  auto more = claim("hand");
  EXPECT_EQ(values(more), (Values{1, 2, 3}));
  configure("hand", {.limit_per_key = 2});
  complete(more[0]);
  EXPECT_EQ(claim("hand").size(), 0U) << "a lower one stops none that run, and lets none begin";
  complete(more[1]);
  EXPECT_EQ(values(claim("hand")), Values{4});
}

TEST_F(QueueLimits, AnEventThatWaitsForItsSlotKeepsItsPlace) {
  for (int i = 0; i < 3; ++i) emit("hand", i, {.limit_key = "a"});
  auto first = claim("hand");
  emit("hand", 10);
  complete(first.at(0));
  EXPECT_EQ(values(claim("hand")), (Values{1, 10}));
}

TEST_F(QueueLimits, ANodeIsToldOfASlotThatBecomesFree) {
  int runs = 0;
  serve([&](Queue& queue, Node&) { ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; })); });
  ASSERT_TRUE(transact([&](Transaction& txn) {
    for (int i = 0; i < 5; ++i) queue().emit(txn, "mail", i, {.limit_key = "a"});
  }));
  sim_.run_for(1s);
  EXPECT_EQ(runs, 5);
}

TEST_F(QueueLimits, ManyThatWaitForASlotDoNotKeepOthersFromAClaim) {
  emit("hand", 0, {.limit_key = "a"});
  claim("hand");
  for (int i = 1; i <= 30; ++i) emit("hand", i, {.limit_key = "a"});
  emit("hand", 100);
  EXPECT_EQ(values(claim("hand", {.max = 1, .wait = 1s})), Values{100});
}

TEST_F(QueueLimits, ARateSpreadsClaimsEvenly) {
  std::vector<WallTime> runs;
  serve([&](Queue& queue, Node& node) {
    ASSERT_TRUE(queue.work("mail", [&](Job&) { runs.push_back(node.wall_now()); }, {.concurrency = 16}));
  });
  configure("mail", {.rate = Rate{10, 1s}});
  for (int i = 0; i < 50; ++i) emit("mail", i);
  sim_.run_for(10s);
  ASSERT_EQ(runs.size(), 50U);
  for (std::size_t i = 10; i < runs.size(); ++i)
    EXPECT_GE(runs[i] - runs[i - 10], 850ms) << "no more than ten in any second, but for what 100 ms are worth";
  EXPECT_LT(runs.back() - runs.front(), 7s) << "and not fewer either";
}

TEST_F(QueueLimits, ARateHoldsForClaimsByHandAndOneThatWaitsIsServedInItsTime) {
  configure("hand", {.rate = Rate{1, 5s}});
  for (int i = 0; i < 3; ++i) emit("hand", i);
  WallTime start = wall_now();
  EXPECT_EQ(values(claim("hand")), Values{0});
  EXPECT_EQ(claim("hand").size(), 0U);
  EXPECT_EQ(values(claim("hand", {.wait = 8s})), Values{1});
  EXPECT_GE(wall_now() - start, 4s);
  EXPECT_LT(wall_now() - start, 6s);
  configure("hand", {});
  EXPECT_EQ(values(claim("hand")), Values{2}) << "without it nothing holds them";
}

TEST_F(QueueLimits, ANewRateHoldsFromNowOnAndNodesAreTold) {
  int runs = 0;
  serve([&](Queue& queue, Node&) { ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; })); });
  configure("mail", {.rate = Rate{1, 1h}});
  for (int i = 0; i < 3; ++i) emit("mail", i);
  sim_.run_for(1s);
  EXPECT_EQ(runs, 1);
  configure("mail", {.rate = Rate{2, 1h}});
  sim_.run_for(1s);
  EXPECT_EQ(runs, 2) << "what was used of the old one does not count";
  configure("mail", {});
  sim_.run_for(1s);
  EXPECT_EQ(runs, 3);
}

TEST_F(QueueLimits, ARateLetsThroughWhatATenthOfASecondIsWorthAtOnce) {
  configure("hand", {.rate = Rate{1'000, 1s}});
  ASSERT_TRUE(await<std::vector<Emitted>>(
      [&](auto done) { queue().emit_many_async(std::vector<NewEvent>(500, {"hand", 1, {}}), std::move(done)); }));
  sim_.run_for(1min);
  EXPECT_EQ(claim("hand", {.max = 500}).size(), 100U);
}

TEST_F(QueueLimits, WhyTellsOfARateWhileItHoldsTheEventUp) {
  configure("hand", {.rate = Rate{10, 1s}});
  emit("hand", 1);
  Uuid id = emit("hand", 2);
  EXPECT_EQ(claim("hand", {.max = 1}).size(), 1U);
  auto codes = [&] {
    return look([&](Reader& reader, Queue& queue) {
      std::string text;
      auto why = queue.why(reader, id).value();
      for (const auto& reason : why.reasons) text += reason.code + " ";
      return text;
    });
  };
  EXPECT_EQ(codes(), "unserved rate ");
  sim_.run_for(200ms);
  EXPECT_EQ(codes(), "unserved ");
}

TEST_F(QueueLimits, AnIdleWorkerWithARateIsLeftInPeace) {
  int turns = 0;
  serve([&](Queue& queue, Node&) { ASSERT_TRUE(queue.work("mail", [&](Job&) { ++turns; })); });
  configure("mail", {.rate = Rate{10, 1s}});
  sim_.run_for(1s);
  std::size_t before = sim_.trace().size();
  sim_.run_for(10s);
  EXPECT_LT(sim_.trace().size() - before, 1'000U) << "it must not ask again and again whether there is something";
  emit("mail", 1);
  sim_.run_for(1s);
  EXPECT_EQ(turns, 1);
}

TEST_F(QueueLimits, RedrivingAtARateSpreadsOverTime) {
  for (int i = 0; i < 5; ++i) emit("hand", i);
  for (const Claimed& event : claim("hand"))
    ASSERT_TRUE(transact([&](Transaction& txn) { queue().fail(txn, event.id, *event.token, "x", {.give_up = true}); }));
  WallTime begun = wall_now();
  Part part;
  ASSERT_TRUE(transact(
      [&](Transaction& txn) { part = redrive_some(txn, "default", "hand", {.rate = Rate{1, 10s}}, 0, begun, begun); }));
  EXPECT_EQ(part.count, 5U);
  EXPECT_FALSE(part.more);
  Uuid last = emit("other");
  Claimed dead = claim("other").at(0);
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().fail(txn, last, *dead.token, "x", {.give_up = true}); }));
  ASSERT_TRUE(transact(
      [&](Transaction& txn) { redrive_some(txn, "default", "other", {.rate = Rate{1, 10s}}, 7, begun, begun); }));
  EXPECT_EQ(get(last)->delay_until, due_after(begun, 70s)) << "behind those of the parts before";
  EXPECT_EQ(values(claim("hand", {.lock = 1h})), Values{0}) << "the first at once";
  EXPECT_EQ(info("hand").scheduled, 4U);
  for (std::int64_t i = 1; i < 5; ++i) {
    sim_.run_for(9s);
    EXPECT_EQ(claim("hand").size(), 0U);
    sim_.run_for(1s + 100ms);
    EXPECT_EQ(values(claim("hand", {.lock = 1h})), Values{i});
  }
  EXPECT_EQ(info("hand").dead, 0U);
}

}  // namespace
}  // namespace perdure::queue
