// What becomes of attempts that fail, and of those that come to no end, on virtual time.
#include "queue/queue_sim_fixture.h"
#include "queue/settle.h"

namespace perdure::queue {
namespace {

/// A worker whose attempts fail as often as the test says.
class QueueRetry : public QueueSimFixture {
 protected:
  int failures = 1'000;
  std::vector<WallTime> runs;
  std::vector<int> attempts_seen;
  WorkOptions work_options;

  QueueRetry() {
    serve([this](Queue& queue, Node& node) {
      ASSERT_TRUE(queue.work(
          "mail",
          [this, &node](Job& job) -> Result<Value> {
            runs.push_back(node.wall_now());
            attempts_seen.push_back(job.attempt());
            if (failures-- > 0) return fail(ErrorCode::kUnavailable, "no such host");
            return Value("sent");
          },
          work_options));
    });
  }
  /// In milliseconds, from each run to the next.
  std::vector<std::int64_t> gaps() {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < runs.size(); ++i) gaps.push_back((runs[i] - runs[i - 1]) / 1ms);
    return gaps;
  }
  static void expect_about(std::int64_t ms, Duration wanted) {
    EXPECT_GE(ms, wanted / 1ms - 1);
    EXPECT_LE(ms, wanted / 1ms + 200);
  }
};

// DARK-8
TEST_F(QueueRetry, DARK_8_AFailedEventIsTriedFiveMinutesLaterAndAtMostTwice) {
  Uuid id = emit("mail");
  sim_.run_for(1h);
  ASSERT_EQ(runs.size(), 3U);
  for (std::int64_t gap : gaps()) expect_about(gap, 5min);
  EXPECT_EQ(attempts_seen, (std::vector<int>{1, 2, 3}));
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kDead) << "DARK-B7: and not just gone";
  EXPECT_EQ(event.retries, 2);
  EXPECT_EQ(event.last_error, "unavailable: no such host");
  EXPECT_EQ(info("mail").failed, 3U);
}

// DARK-U2
TEST_F(QueueRetry, DARK_U2_BetweenAttemptsTheEventIsScheduledForItsFiveMinutes) {
  Uuid id = emit("mail");
  sim_.run_for(1s);
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kScheduled);
  auto left = event.delay_until.time_since_epoch() -
              std::chrono::floor<std::chrono::milliseconds>(runs.at(0).time_since_epoch());
  EXPECT_GE(left, 5min) << "no second more to outlast a lock is needed: 300 s, and not 301";
  EXPECT_LT(left, 5min + 200ms);
}

// DARK-29
TEST_F(QueueRetry, DARK_29_AnEventWithRetriesLeftIsCountedAndScheduledAndOneWithoutIsDead) {
  Uuid id = emit("mail", 1, {.retry = RetryPolicy{.delay = 10s, .max = 1}});
  sim_.run_for(5s);
  EXPECT_EQ(get(id)->retries, 1);
  EXPECT_EQ(get(id)->attempts, 1);
  EXPECT_EQ(get(id)->state, EventState::kScheduled);
  sim_.run_for(10s);
  EXPECT_EQ(get(id)->retries, 1);
  EXPECT_EQ(get(id)->attempts, 2);
  EXPECT_EQ(get(id)->state, EventState::kDead);
}

// DARK-B5
TEST_F(QueueRetry, DARK_B5_AFailureClearsTheClaimSoThatARetryNeedNotOutlastIt) {
  failures = 1;
  Uuid id = emit("mail", 1, {.retry = RetryPolicy{.delay = 50ms}});
  sim_.run_for(10ms);
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kScheduled);
  EXPECT_EQ(event.locked_at, std::nullopt);
  EXPECT_EQ(event.token, std::nullopt);
  sim_.run_for(200ms);
  EXPECT_EQ(history(id)->how, EndedEvent::How::kCompleted);
  EXPECT_EQ(history(id)->attempts, 2);
  EXPECT_EQ(runs.size(), 2U);
}

// DARK-7
TEST_F(QueueRetry, DARK_7_ACompletedEventNeverRunsAgain) {
  failures = 0;
  Uuid id = emit("mail");
  sim_.run_for(1h);
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_EQ(code_of(get(id)), ErrorCode::kNotFound);
}

// DARK-17
TEST_F(QueueRetry, DARK_17_TheTimeOfEmittingIsNeverAltered) {
  Uuid id = emit("mail", 1, {.delay = 1min});
  WallTime first = get(id)->enqueued_at;
  sim_.run_for(1h);
  EXPECT_EQ(get(id)->state, EventState::kDead);
  EXPECT_EQ(get(id)->enqueued_at, first);
  ASSERT_TRUE(transact([&](Transaction& txn) { redrive_some(txn, "default", "mail", {}, 0, {}, wall_now()); }));
  sim_.run_for(1s);
  EXPECT_EQ(runs.size(), 4U);
  EXPECT_EQ(get(id)->enqueued_at, first);
}

TEST_F(QueueRetry, APolicyThatDropsLeavesOnlyAnEntryInTheHistory) {
  Uuid id = emit("mail", 1, {.retry = RetryPolicy{.delay = 1s, .max = 1, .then = RetryPolicy::Then::kDrop}});
  sim_.run_for(5s);
  EXPECT_EQ(code_of(get(id)), ErrorCode::kNotFound);
  EndedEvent ended = history(id).value();
  EXPECT_EQ(ended.how, EndedEvent::How::kDropped);
  EXPECT_EQ(ended.attempts, 2);
  EXPECT_EQ(ended.last_error, "unavailable: no such host");
  EXPECT_EQ(info("mail").dropped, 1U);
  EXPECT_EQ(info("mail").dead, 0U);
}

TEST_F(QueueRetry, DelaysGrowByTheFactorUpToTheLargest) {
  emit("mail", 1, {.retry = RetryPolicy{.delay = 1s, .factor = 3, .max_delay = 10s, .max = 4}});
  sim_.run_for(1min);
  ASSERT_EQ(gaps().size(), 4U);
  expect_about(gaps()[0], 1s);
  expect_about(gaps()[1], 3s);
  expect_about(gaps()[2], 9s);
  expect_about(gaps()[3], 10s);
}

TEST_F(QueueRetry, ThePolicyOfTheEventComesBeforeThatOfTheNodeAndThatBeforeTheWorkers) {
  work_options.retry = RetryPolicy{.delay = 2s, .max = 1};
  configure("mail", {.retry = {.delay = 7s, .max = 5}});
  Uuid by_node = emit("mail");
  sim_.run_for(1min);
  ASSERT_EQ(gaps().size(), 1U);
  expect_about(gaps()[0], 2s);
  runs.clear();
  emit("mail", 1, {.retry = RetryPolicy{.delay = 1s, .max = 2}});
  sim_.run_for(1min);
  ASSERT_EQ(gaps().size(), 2U);
  expect_about(gaps()[0], 1s);
  EXPECT_EQ(get(by_node)->retry, std::nullopt);
  runs.clear();
  work_options.retry.reset();
  serve_again();
  emit("mail");
  sim_.run_for(1min);
  ASSERT_EQ(gaps().size(), 5U);
  expect_about(gaps()[0], 7s);
}

TEST_F(QueueRetry, AHandlerMaySayWhenToTryAgainOrThatItIsNotWorthIt) {
  serve([this](Queue& queue, Node& node) {
    ASSERT_TRUE(queue.work("mail", [this, &node](Job& job) -> Result<Value> {
      runs.push_back(node.wall_now());
      if (job.attempt() == 1) job.retry_in(20s);
      if (job.attempt() == 2) job.retry_in(-5s);
      if (job.attempt() == 3) job.give_up();
      return fail(ErrorCode::kUnavailable, "later");
    }));
  });
  Uuid id = emit("mail", 1, {.retry = RetryPolicy{.max = 10}});
  sim_.run_for(1h);
  ASSERT_EQ(gaps().size(), 2U);
  expect_about(gaps()[0], 20s);
  expect_about(gaps()[1], 0s);
  EXPECT_EQ(get(id)->state, EventState::kDead);
  EXPECT_EQ(get(id)->retries, 2);
}

TEST_F(QueueRetry, OnlyTheLastFailuresAreKept) {
  Uuid id = emit("mail", 1, {.retry = RetryPolicy{.delay = 1s, .max = 7}});
  sim_.run_for(1min);
  Event event = get(id).value();
  ASSERT_EQ(event.failures.size(), 5U);
  EXPECT_EQ(event.failures.front().attempt, 4);
  EXPECT_EQ(event.failures.back().attempt, 8);
  EXPECT_GT(event.failures.back().at, event.failures.front().at);
}

TEST(RetryDelay, GrowsIsBoundedAndHasItsJitterOnTop) {
  RetryPolicy policy{.delay = 1s, .factor = 2, .max_delay = 60s, .jitter = 1s};
  EXPECT_EQ(retry_delay(policy, 0, 0), 1s);
  EXPECT_EQ(retry_delay(policy, 3, 0), 8s);
  EXPECT_EQ(retry_delay(policy, 6, 0), 60s);
  EXPECT_EQ(retry_delay(policy, 1'000'000, 0), 60s) << "also where the power is infinite";
  EXPECT_EQ(retry_delay(policy, 0, 999'999'999), 2s - 1ns);
  EXPECT_EQ(retry_delay(policy, 0, 1'000'000'000), 1s);
  policy.jitter = 0s;
  EXPECT_EQ(retry_delay(policy, 0, 999), 1s);
}

// Losses.

// DARK-6
TEST_F(QueueRetry, DARK_6_AnAttemptWhoseProcessDiesIsMadeAgain) {
  int lives = 0;
  serve([&](Queue& queue, Node& node) {
    ASSERT_TRUE(queue.work("mail", [&](Job& job) {
      if (node.life() == 1) return sim_.crash(0);
      ++lives;
      EXPECT_EQ(job.attempt(), 2);
      EXPECT_EQ(job.event().losses, 1);
      EXPECT_EQ(job.event().retries, 0) << "DARK-B3: that was no failure";
    }));
  });
  Uuid id = emit("mail");
  sim_.run_for(30s);
  EXPECT_EQ(lives, 1);
  EXPECT_EQ(history(id)->attempts, 2);
  EXPECT_EQ(info("mail").lost, 1U);
  EXPECT_EQ(info("mail").failed, 0U);
  auto records = attempts("mail");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].outcome, AttemptRecord::Outcome::kLost);
  EXPECT_EQ(records[1].error, "the node that ran it is gone");
}

TEST_F(QueueRetry, AnEventThatKillsItsProcessesBecomesDeadAndWaitsLongerEachTime) {
  serve([&](Queue& queue, Node& node) {
    ASSERT_TRUE(queue.work("mail", [&](Job&) {
      runs.push_back(node.wall_now());
      sim_.crash(0, Crash::kAtOnce, 100ms);
    }));
  });
  configure("mail", {.losses_max = 4});
  Uuid id = emit("mail");
  sim_.run_for(10min);
  EXPECT_EQ(runs.size(), 5U);
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kDead);
  EXPECT_EQ(event.losses, 5);
  EXPECT_EQ(event.retries, 0);
  EXPECT_EQ(event.last_error, "lost 5 times, the last time because the node that ran it is gone");
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().add_rule(txn, "mail", Rule::Type::kPause); }));
  WallTime now = wall_now();
  ASSERT_TRUE(transact([&](Transaction& txn) { redrive_some(txn, "default", "mail", {}, 0, now, now); }));
  EXPECT_EQ(get(id)->state, EventState::kPaused);
  EXPECT_EQ(get(id)->losses, 0) << "it begins anew";
}

// DARK-B3
TEST_F(QueueRetry, DARK_B3_HoweverOftenAClaimIsLostTheRetriesAreAllLeft) {
  serve({});
  configure("hand", {.losses_max = 100});
  EmitOptions own{.id = Uuid{}};
  own.id->bytes[15] = own.id->bytes[14] = 128;
  Uuid id = emit("hand", 1, own);
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(claim("hand", {.wait = 8s, .lock = 1s}).size(), 1U) << i;
    sim_.run_for(1s + 100ms);
    Event event = get(id).value();
    EXPECT_EQ(event.losses, i + 1);
    EXPECT_EQ(event.retries, 0);
    auto lost_at = std::chrono::floor<std::chrono::milliseconds>(attempts("hand").at(0).ended);
    waits.push_back(event.state == EventState::kScheduled ? (event.delay_until - lost_at) / 100ms : 0);
  }
  // Two are bad luck; then 0.5 s and doubled, and a part of that more, as its id has it, by another byte each time.
  EXPECT_EQ(waits, (std::vector<std::int64_t>{0, 0, 7, 15, 20}));
  EXPECT_EQ(info("hand").lost, 5U);
}

// DARK-30
TEST_F(QueueRetry, DARK_30_ASettlementThatCannotBeWrittenIsWrittenLater) {
  serve([&](Queue& queue, Node& node) {
    ASSERT_TRUE(queue.work("mail", [&](Job&) -> Result<void> {
      runs.push_back(node.wall_now());
      if (runs.size() == 1) sim_.cut_off(0, 1s);
      return fail(ErrorCode::kUnavailable, "no such host");
    }));
  });
  options_.session.ttl = 60s;
  Uuid id = emit("mail", 1, {.retry = RetryPolicy{.delay = 10s, .max = 1}});
  sim_.run_for(5s);
  Event event = get(id).value();
  EXPECT_EQ(event.state, EventState::kScheduled);
  EXPECT_EQ(event.losses, 0);
  EXPECT_EQ(event.retries, 1);
  EXPECT_EQ(runs.size(), 1U);
}

// DARK-B11
TEST_F(QueueRetry, DARK_B11_AnEventThatWaitsForTwoWeeksIsNotForgotten) {
  failures = 0;
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().add_rule(txn, "mail", Rule::Type::kPause); }));
  Uuid id = emit("mail");
  let_days_pass(14);
  EXPECT_EQ(runs.size(), 0U);
  ASSERT_TRUE(transact([&](Transaction& txn) { queue().remove_rule(txn, "mail", Rule::Type::kPause); }));
  sim_.run_for(1s);
  EXPECT_EQ(runs.size(), 1U);
  EXPECT_TRUE(history(id));
}

}  // namespace
}  // namespace perdure::queue
