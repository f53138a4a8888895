// Commits whose answer is lost, on each engine behind a FaultyEngine.
#include <random>

#include "conformance/faulty_conformance.h"

namespace perdure::conformance {

class UnknownCommits : public FaultyConformance {
 protected:
  /// One acknowledged step of the counter, by read and set, so that doing it twice would show.
  Result<void> increment(const TransactOptions& options = {.timeout = kSoon}) {
    return store().transact([](Transaction& txn) { txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1)); },
                            options);
  }
  Result<void> add(const TransactOptions& options = {.timeout = kSoon}) {
    return store().transact([](Transaction& txn) { txn.add("n", 1); }, options);
  }
  /// Each kind of body once under each script, then one more without a fault.
  void expect_exactly_once(std::initializer_list<Fault> faults) {
    std::int64_t before = counter("n");
    for (Body body : {Body::kOptimistic, Body::kShort}) {
      script_.then(faults);
      must(increment({.timeout = kSoon, .body = body}));
      EXPECT_TRUE(script_.ended());
      script_.then(faults);
      must(add({.timeout = kSoon, .body = body}));
      EXPECT_TRUE(script_.ended());
      must(add({.timeout = kSoon, .body = body}));
    }
    must(add());
    EXPECT_EQ(counter("n"), before + 7);
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, UnknownCommits, testing::ValuesIn(kEngines),
                         [](const auto& test) { return test.param.name; });

TEST_P(UnknownCommits, BatchThatWasAppliedCountsOnce) {
  expect_exactly_once({Fault::kUnknownApplied});
}

TEST_P(UnknownCommits, BatchThatWasLostIsCommittedAgain) {
  expect_exactly_once({Fault::kUnknownLost});
}

TEST_P(UnknownCommits, BatchThatArrivesBeforeTheQuestionCountsOnce) {
  expect_exactly_once({Fault::kUnknownLateBefore});
  EXPECT_EQ(script_.late_applied(), 4);
}

TEST_P(UnknownCommits, BatchThatArrivesAfterTheQuestionIsFenced) {
  expect_exactly_once({Fault::kUnknownLateAfter});
  EXPECT_EQ(script_.late_applied(), 0);
  EXPECT_EQ(script_.late_refused(), 4);
}

TEST_P(UnknownCommits, BatchThatArrivesAfterItsOwnRepetitionIsFenced) {
  expect_exactly_once({Fault::kUnknownVeryLate});
  EXPECT_EQ(script_.late_applied(), 0);
  EXPECT_EQ(script_.late_refused(), 4);
}

TEST_P(UnknownCommits, VeryFirstBatchOfAStoreIsFencedToo) {
  script_.then({Fault::kUnknownLateAfter});
  must(add());
  must(add());
  EXPECT_EQ(counter("n"), 2);
  EXPECT_EQ(script_.late_refused(), 1);
}

TEST_P(UnknownCommits, QuestionsMayBeUnknownThemselves) {
  using enum Fault;
  expect_exactly_once({kUnknownApplied, kUnknownApplied});
  expect_exactly_once({kUnknownApplied, kUnknownLost, kUnknownApplied});
  expect_exactly_once({kUnknownLost, kUnknownApplied, kUnknownLost});
  expect_exactly_once({kUnknownLateAfter, kUnknownApplied});
  expect_exactly_once({kUnknownApplied, kUnknownLateAfter, kUnknownLateAfter});
  expect_exactly_once({kUnknownVeryLate, kUnknownVeryLate, kUnknownLateBefore, kRefused});
  expect_exactly_once({kUnknownApplied, kRefused, kRefused, kUnknownApplied});
}

TEST_P(UnknownCommits, RepetitionMayBeUnknownAgain) {
  using enum Fault;
  // Batch, question, repetition, question …
  expect_exactly_once({kUnknownLost, kNone, kUnknownLost, kNone, kUnknownApplied});
  expect_exactly_once({kUnknownLateAfter, kNone, kUnknownLateAfter, kNone, kUnknownVeryLate, kNone});
}

TEST_P(UnknownCommits, ConflictIsStillFoundWhenALostBatchIsRepeated) {
  must(increment());
  int runs = 0;
  must(store().transact(
      [&](Transaction& txn) {
        std::int64_t seen = decode_counter(txn.get("n"));
        if (++runs == 1) {
          meanwhile([&] { must(increment()); });
          script_.then({Fault::kUnknownLost});
        }
        txn.set("n", encode_counter(seen + 1));
      },
      {.timeout = kSoon}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(counter("n"), 3);
}

TEST_P(UnknownCommits, WatchesFireForABatchThatWasAppliedAfterAll) {
  for (Fault fault : {Fault::kUnknownApplied, Fault::kUnknownLateBefore, Fault::kUnknownLost}) {
    Watch changed = watch("n");
    script_.then({fault});
    must(add());
    EXPECT_TRUE(changed.wait(kSoon));
  }
}

TEST_P(UnknownCommits, WatchMadeByAnUnknownBatchIsArmed) {
  for (Fault fault : {Fault::kUnknownApplied, Fault::kUnknownLost, Fault::kUnknownVeryLate}) {
    script_.then({fault});
    auto watch = must(store().transact([](Transaction& txn) {
      txn.set("w", "own");
      return txn.watch("w");
    }));
    set("other", "1");
    EXPECT_FALSE(watch.wait(kNotYet));
    set("w", "theirs");
    EXPECT_TRUE(watch.wait(kSoon));
  }
}

TEST_P(UnknownCommits, ReceiptOfABatchThatWasAppliedIsTrue) {
  Receipt receipt;
  script_.then({Fault::kUnknownApplied});
  must(store().transact([](Transaction& txn) { txn.set_stamped(Stamped{"q/", ""}, ""); }, {}, &receipt));
  auto rows = range(prefix_range("q/"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].version, receipt.version);
  EXPECT_EQ(rows[0].key, (Stamped{"q/", ""}).filled(receipt.version));
}

TEST_P(UnknownCommits, OutcomeThatCannotBeFoundOutIsUnknownAtTheDeadline) {
  for (Fault fault : {Fault::kUnknownApplied, Fault::kUnknownLost}) {
    std::int64_t before = counter("n");
    script_.then({fault});
    script_.break_down();
    auto error = error_of(add({.timeout = std::chrono::milliseconds(50)}));
    EXPECT_EQ(error.code, ErrorCode::kCommitUnknown);
    EXPECT_EQ(error.outcome(), Outcome::kUnknown);
    // Nobody else may commit before it is settled, and whoever waits meanwhile surely has no effect.
    EXPECT_EQ(error_of(add({.timeout = std::chrono::milliseconds(20)})).code, ErrorCode::kUnavailable);
    script_.heal();
    must(add());
    EXPECT_EQ(counter("n"), before + (fault == Fault::kUnknownApplied ? 2 : 1));
  }
}

TEST_P(UnknownCommits, OutcomeFoundOutAfterTheDeadlineStillWakesWatches) {
  Watch changed = watch("n");
  script_.then({Fault::kUnknownApplied});
  script_.break_down();
  EXPECT_EQ(error_of(add({.timeout = std::chrono::milliseconds(30)})).code, ErrorCode::kCommitUnknown);
  script_.heal();
  EXPECT_TRUE(changed.wait(kSoon));
}

TEST_P(UnknownCommits, StoreClosesThoughAnOutcomeIsStillUnknown) {
  Latch timer_had_its_chance;
  auto engine = std::make_unique<FaultyEngine>(make_engine_anew(), script_);
  engine->before_end([&] {
    // The next question is due within twice the time that has passed: later than that, none may come.
    scheduler().at(scheduler().now() + std::chrono::milliseconds(150), [&] { timer_had_its_chance.set(); });
    timer_had_its_chance.wait();
  });
  open_on(std::move(engine));
  script_.then({Fault::kUnknownLost});
  script_.break_down();
  EXPECT_EQ(error_of(add({.timeout = std::chrono::milliseconds(30)})).code, ErrorCode::kCommitUnknown);
  close();
  EXPECT_EQ(script_.commits_after_closing(), 0);
}

TEST_P(UnknownCommits, RandomFaultsLeaveEveryAcknowledgedStepOnce) {
  constexpr int kThreads = 8, kEach = 25;
  const std::vector<Fault> kFaults = {Fault::kUnknownApplied, Fault::kUnknownLost, Fault::kUnknownLateBefore,
                                      Fault::kUnknownLateAfter, Fault::kUnknownVeryLate};
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) script_.then({random() % 3 > 0 ? Fault::kNone : kFaults[random() % kFaults.size()]});
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i) {
      Body body = thread % 2 == 0 ? Body::kOptimistic : Body::kShort;
      must(thread < 4 ? increment({.timeout = kSoon, .body = body}) : add({.timeout = kSoon, .body = body}));
    }
  });
  EXPECT_EQ(counter("n"), kThreads * kEach);
}

TEST_P(UnknownCommits, RefusedBatchIsTheCallersError) {
  script_.then({Fault::kRefused});
  EXPECT_EQ(error_of(add()).code, ErrorCode::kUnavailable);
  must(add());
  EXPECT_EQ(counter("n"), 1);
}

TEST_P(UnknownCommits, RemoteEngineRunsShortBodiesOutsideOfItsCommits) {
  open_on(FaultyEngine::remote(make_engine_anew(), script_));
  std::atomic<int> inside = 0;
  constexpr int kThreads = 4, kEach = 20;
  script_.then({Fault::kUnknownLost, Fault::kNone, Fault::kUnknownApplied, Fault::kNone, Fault::kUnknownLateAfter});
  on_threads(kThreads, [&](int) {
    for (int i = 0; i < kEach; ++i) {
      auto caller = std::this_thread::get_id();
      must(store().transact(
          [&](Transaction& txn) {
            if (std::this_thread::get_id() != caller) ++inside;
            txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1));
          },
          {.timeout = kSoon, .body = Body::kShort}));
    }
  });
  EXPECT_EQ(counter("n"), kThreads * kEach);
  EXPECT_EQ(inside, 0);
}

}  // namespace perdure::conformance
