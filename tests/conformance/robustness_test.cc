// What users do that was not meant: the answer is an error that says so, or nothing worse than a slower answer.
#include "conformance/conformance.h"
#include "conformance/faulty_engine.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, TwoRowsThatWouldGetTheSameStampedKeyAreRefused) {
  auto stamped_twice = [&](std::uint32_t second_order) {
    return store().transact([&](Transaction& txn) {
      txn.set_stamped(Stamped{"q/", "", 0}, "one");
      txn.set_stamped(Stamped{"q/", "", second_order}, "two");
    });
  };
  Error error = error_of(stamped_twice(0));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message.find("q/"), std::string::npos) << error.message;
  EXPECT_EQ(contents(), "");
  must(stamped_twice(1));
  EXPECT_EQ(range({}).size(), 2u);
}

TEST_P(Conformance, ReadConflictNamedAfterTheClearCountsToo) {
  set("job", "1");
  int runs = runs_against(
      [](Transaction& txn) {
        txn.clear("job");
        txn.add_read_conflict("job");
      },
      [](Transaction& txn) { txn.clear("job"); });
  EXPECT_EQ(runs, 2);
}

TEST_P(Conformance, KeyWrittenOftenInOneTransactionCountsOnce) {
  Bytes large(store().limits().value_bytes_max, 'v');
  must(store().transact([&](Transaction& txn) {
    for (int i = 0; i < 30; ++i) txn.set("a", large);
  }));
  EXPECT_EQ(get("a"), large);
}

TEST_P(Conformance, RangeReadWithoutALimitIsWhole) {
  constexpr int kRows = 12'000;
  for (int from = 0; from < kRows; from += 4000)
    must(store().transact([&](Transaction& txn) {
      for (int i = from; i < from + 4000; ++i) txn.set(numbered("row", i), "");
    }));
  EXPECT_EQ(range(prefix_range("row")).size(), static_cast<std::size_t>(kRows));
}

TEST_P(Conformance, AsynchronousAnswerBringsTheReceiptIfItIsWanted) {
  Promise<std::pair<Result<int>, Receipt>> answer;
  store().transact_async(
      [](Transaction& txn) {
        txn.set_stamped(Stamped{"q/", ""}, "x");
        return 7;
      },
      [&](Result<int> result, Receipt receipt) { answer.set({std::move(result), receipt}); });
  auto [result, receipt] = answer.take();
  EXPECT_EQ(result, 7);
  EXPECT_EQ(keys_of(range({})), std::vector<Bytes>{(Stamped{"q/", ""}.filled(receipt.version))});
}

TEST_P(Conformance, CallbacksThatBlockOnTransactionsDoNotStopTheCommits) {
  constexpr int kCallbacks = 8;
  Countdown done(kCallbacks);
  for (int i = 0; i < kCallbacks; ++i)
    watch("bell").then([&] {
      must(store().transact([](Transaction& txn) { txn.add("rung", 1); }));
      must(store().transact([](Transaction& txn) { txn.add("rung", 1); }));
      done.hit();
    });
  set("bell", "1");
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(counter("rung"), 2 * kCallbacks);
}

TEST_P(Conformance, SnapshotReadsAreOneMomentThoughSnapshotsAreTakenBack) {
  FaultScript script;
  close();
  open_on(std::make_unique<FaultyEngine>(make_engine(), script));
  set("a", "1");
  set("b", "1");
  script.retire_one_read_in(2);
  int runs = 0;
  for (int round = 2; round < 20; ++round) {
    Bytes next = std::to_string(round);
    auto seen = must(store().transact(
        [&](Transaction& txn) {
          Bytes a = *txn.snapshot().get("a");
          if (++runs % 2 == 1)
            meanwhile([&] {
              must(store().transact(
                  [&](Transaction& theirs) {
                    theirs.set("a", next);
                    theirs.set("b", next);
                  },
                  {.body = Body::kShort}));
            });
          return std::pair(a, *txn.snapshot().get("b"));
        },
        {.timeout = kSoon}));
    EXPECT_EQ(seen.first, seen.second) << "in round " << round;
  }
  EXPECT_GT(script.retired(), 0);
  close();
}

TEST_P(Conformance, BatchThatIsRefusedBeforeItBeganFailsItsCallsAndGoesOnLater) {
  FaultScript script;
  close();
  open_on(std::make_unique<FaultyEngine>(make_engine(), script));
  script.then({Fault::kRefused});
  Error error = error_of(store().transact([](Transaction& txn) { txn.set("a", "1"); }));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(get("a"), std::nullopt);
  set("a", "2");
  EXPECT_EQ(get("a"), "2");
  close();
}

}  // namespace
}  // namespace perdure::conformance
