// Watches: what fires them, what does not, and how they end.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, WatchFiresWhenItsKeyChanges) {
  set("a", "1");
  Watch watch = this->watch("a");
  EXPECT_FALSE(watch.wait(kNotYet));
  set("a", "2");
  EXPECT_TRUE(watch.wait(kSoon));
}

TEST_P(Conformance, WatchFiresForEveryKindOfWrite) {
  const std::vector<std::pair<std::string, BodyFn>> writes = {
      {"clear", [](Transaction& txn) { txn.clear("a"); }},
      {"clear_range", [](Transaction& txn) { txn.clear_range({"0", "b"}); }},
      {"add", [](Transaction& txn) { txn.add("a", 1); }},
      {"stamped value", [](Transaction& txn) { txn.set_stamped("a", Stamped{}); }},
      {"same value", [](Transaction& txn) { txn.set("a", encode_counter(1)); }}};
  for (const auto& [name, write] : writes) {
    set("a", encode_counter(1));
    Watch watch = this->watch("a");
    must(store().transact([&](Transaction& txn) { write(txn); }));
    EXPECT_TRUE(watch.wait(kSoon)) << name;
  }
}

TEST_P(Conformance, WatchOnAnAbsentKeyFiresWhenItComes) {
  Watch watch = this->watch("a");
  EXPECT_FALSE(watch.wait(kNotYet));
  set("a", "1");
  EXPECT_TRUE(watch.wait(kSoon));
}

TEST_P(Conformance, WatchDoesNotFireForOtherKeys) {
  set("a", "1");
  Watch watch = this->watch("a");
  for (int i = 0; i < 20; ++i) set(numbered("other", i), "1");
  must(store().transact([](Transaction& txn) { txn.clear_range({"b", "z"}); }));
  EXPECT_FALSE(watch.wait(kNotYet));
  clear("a");
  EXPECT_TRUE(watch.wait(kSoon));
}

TEST_P(Conformance, WatchDoesNotFireForItsTransactionsOwnWrite) {
  for (Body body : {Body::kOptimistic, Body::kShort}) {
    auto watch = must(store().transact(
        [](Transaction& txn) {
          Watch before = txn.watch("a");
          txn.set("a", "own");
          return std::pair(before, txn.watch("a"));
        },
        {.body = body}));
    set("other", "1");
    EXPECT_FALSE(watch.first.wait(kNotYet));
    EXPECT_FALSE(watch.second.wait(kNotYet));
    set("a", "theirs");
    EXPECT_TRUE(watch.first.wait(kSoon));
    EXPECT_TRUE(watch.second.wait(kSoon));
  }
}

TEST_P(Conformance, WatchFiresThoughTheKeyChangedBack) {
  set("a", "1");
  Watch watch = this->watch("a");
  set("a", "2");
  set("a", "1");
  EXPECT_TRUE(watch.wait(kSoon));

  Watch absent = this->watch("b");
  set("b", "1");
  clear("b");
  EXPECT_TRUE(absent.wait(kSoon));
}

TEST_P(Conformance, WatchFiresForAChangeBetweenItsReadAndItsCommit) {
  // The key is absent before and after: only the changes in between tell. An engine may take back a snapshot that is
  // held for long; one that was replaced behind both changes has none to tell of. So on a machine that stands still for
  // a moment it is tried again.
  bool fired = false;
  for (int attempt = 0; attempt < 20 && !fired; ++attempt) {
    auto watch = must(store().transact([&](Transaction& txn) {
      EXPECT_EQ(txn.snapshot().get("a"), std::nullopt);
      meanwhile([&] {
        set("a", "1");
        clear("a");
      });
      return txn.watch("a");
    }));
    fired = watch.wait(std::chrono::seconds(1));
  }
  EXPECT_TRUE(fired);

  auto registered_before = must(store().transact([&](Transaction& txn) {
    Watch made = txn.watch("a");
    meanwhile([&] {
      set("a", "1");
      clear("a");
    });
    txn.set("mine", "1");
    return made;
  }));
  EXPECT_TRUE(registered_before.wait(kSoon));
}

TEST_P(Conformance, WatchFiresForAChangeAndBackWithinOneBatch) {
  if (capabilities().remote || capabilities().far_reads)
    GTEST_SKIP() << "bodies do not run inside a commit, so this cannot gather a batch";
  set("kept", "1");
  Watch absent = this->watch("a"), kept = this->watch("kept");
  Countdown done(3);
  auto run = [&](const BodyFn& body) {
    store().transact_async(body,
                           [&](const Result<void>& result) {
                             must(result);
                             done.hit();
                           },
                           {.timeout = kSoon, .body = Body::kShort});
  };
  in_one_batch([&] {
    run([](Transaction& txn) { txn.clear("a"); });
    run([](Transaction& txn) {
      txn.set("a", "1");
      txn.set("kept", "2");
    });
    run([](Transaction& txn) {
      txn.clear("a");
      txn.set("kept", "1");
    });
  });
  EXPECT_TRUE(done.wait());
  EXPECT_TRUE(absent.wait(kSoon));
  EXPECT_TRUE(kept.wait(kSoon));
}

TEST_P(Conformance, WatchOnAKeyThatItsTransactionClearsFiresForTheNextChangeInItsBatch) {
  if (capabilities().remote || capabilities().far_reads)
    GTEST_SKIP() << "bodies do not run inside a commit, so this cannot gather a batch";
  int behind = 0;
  for (int round = 0; round < 20; ++round) {
    set("a", "1");
    Promise<Watch> made;
    Countdown done(2);
    in_one_batch([&] {
      store().transact_async(
          [](Transaction& txn) {
            txn.clear("a");
            return txn.watch("a");
          },
          [&](Result<Watch> watch) {
            made.set(must(std::move(watch)));
            done.hit();
          },
          {.timeout = kSoon, .body = Body::kShort});
      store().transact_async([](Transaction& txn) { txn.set("a", "2"); }, [&](const Result<void>&) { done.hit(); },
                             {.timeout = kSoon, .body = Body::kShort});
    });
    EXPECT_TRUE(done.wait());
    // Nobody says which of the two comes first; only a change behind the clearing has to be told.
    bool changed_behind = get("a").has_value();
    behind += changed_behind;
    Watch watch = made.take();
    EXPECT_TRUE(!changed_behind || watch.wait(std::chrono::seconds(5)));
  }
  EXPECT_GT(behind, 0);
}

TEST_P(Conformance, WatchOfAFailedTransactionIsCancelled) {
  Watch watch;
  std::atomic<bool> called = false;
  (void)error_of(store().transact([&](Transaction& txn) -> Result<void> {
    watch = txn.watch("a");
    watch.then([&] { called = true; });
    return fail(ErrorCode::kNotFound, "no");
  }));
  EXPECT_TRUE(watch.wait(Duration::zero())) << "nobody waits for ever for a watch that is gone";
  set("a", "1");
  settle();
  EXPECT_FALSE(called);
}

TEST_P(Conformance, WatchOfAnEarlierRunIsCancelled) {
  set("a", "1");
  std::vector<Watch> watches;
  must(store().transact([&](Transaction& txn) {
    (void)txn.get("a");
    watches.push_back(txn.watch("w"));
    if (watches.size() == 1) meanwhile([&] { set("a", "2"); });
    txn.set("mine", "1");
  }));
  ASSERT_EQ(watches.size(), 2u);
  EXPECT_TRUE(watches[0].wait(Duration::zero()));
  EXPECT_FALSE(watches[1].wait(kNotYet));
  set("w", "1");
  EXPECT_TRUE(watches[1].wait(kSoon));
}

TEST_P(Conformance, CallbackOfAWatchRunsOnce) {
  Watch watch = this->watch("a");
  Latch called;
  std::atomic<int> calls = 0;
  watch.then([&] {
    ++calls;
    called.set();
  });
  set("a", "1");
  EXPECT_TRUE(called.wait_for(kSoon));
  set("a", "2");
  set("a", "3");
  close();
  settle();
  EXPECT_EQ(calls, 1);
}

TEST_P(Conformance, CallbackGivenToAWatchThatHasFiredRunsAtOnce) {
  Watch watch = this->watch("a");
  set("a", "1");
  EXPECT_TRUE(watch.wait(kSoon));
  Latch called;
  watch.then([&] { called.set(); });
  EXPECT_TRUE(called.wait_for(kSoon));
}

TEST_P(Conformance, CallbackMayUseTheStore) {
  Watch watch = this->watch("a");
  Latch done;
  watch.then([&] {
    set("b", *get("a"));
    done.set();
  });
  set("a", "1");
  EXPECT_TRUE(done.wait_for(kSoon));
  EXPECT_EQ(get("b"), "1");
}

TEST_P(Conformance, CancelledWatchNeverCalls) {
  Watch watch = this->watch("a"), copy = watch;
  std::atomic<bool> called = false;
  watch.then([&] { called = true; });
  copy.cancel();
  EXPECT_TRUE(watch.wait(Duration::zero()));
  set("a", "1");
  watch.then([&] { called = true; });
  close();
  settle();
  EXPECT_FALSE(called);
}

TEST_P(Conformance, WatchesBeyondTheBoundAreRefused) {
  reopen({.watches_max = 2});
  Watch first = watch("a");
  Watch second = watch("a");
  auto error = error_of(store().transact([](Transaction& txn) {
    txn.set("also", "not written");
    return txn.watch("b");
  }));
  EXPECT_EQ(error.code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(contents(), "");
  first.cancel();
  Watch third = watch("b");
  set("a", "1");
  EXPECT_TRUE(second.wait(kSoon));
  Watch fourth = watch("c");
  EXPECT_FALSE(third.wait(kNotYet));
}

TEST_P(Conformance, WatchesEndWithTheStore) {
  Watch armed = watch("a"), fired = watch("b");
  set("b", "1");
  EXPECT_TRUE(fired.wait(kSoon));
  std::atomic<bool> called = false;
  armed.then([&] { called = true; });
  close();
  EXPECT_TRUE(armed.wait(Duration::zero()));
  EXPECT_FALSE(called);
  // Handles that outlive their store do nothing more.
  armed.cancel();
  fired.cancel();
  armed.then([&] { called = true; });
  fired.then([&] { called = true; });
  settle();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace perdure::conformance
