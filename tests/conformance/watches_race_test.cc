// Watches under concurrency: none is ever missed. Every wait here would hang until kSoon if one were.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

/// Blocks, by watches alone, until the counter at `key` is at least `wanted`.
bool wait_until_counted(Store& store, BytesView key, std::int64_t wanted) {
  for (;;) {
    auto [value, watch] = must(store.transact([&](Transaction& txn) {
      Watch armed = txn.watch(key);
      return std::pair(decode_counter(txn.get(key)), armed);
    }));
    if (value >= wanted) return true;
    if (!watch.wait(kSoon)) return false;
  }
}

TEST_P(Conformance, TwoThreadsCountInTurnsByWatchesAlone) {
  constexpr int kTurns = 300;
  std::atomic<int> missed = 0;
  on_threads(2, [&](int thread) {
    for (std::int64_t turn = thread; turn < kTurns; turn += 2) {
      if (!wait_until_counted(store(), "n", turn)) ++missed;
      must(store().transact([&](Transaction& txn) {
        EXPECT_EQ(decode_counter(txn.get("n")), turn);
        txn.set("n", encode_counter(turn + 1));
      }));
    }
  });
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(counter("n"), kTurns);
}

TEST_P(Conformance, ManyWatchersFollowManyWritersToTheEnd) {
  constexpr int kWriters = 4, kWatchers = 4, kAdds = 60;
  std::atomic<int> missed = 0;
  on_threads(kWriters + kWatchers, [&](int thread) {
    if (thread < kWriters) {
      for (int i = 0; i < kAdds; ++i) must(store().transact([](Transaction& txn) { txn.add("n", 1); }));
    } else if (!wait_until_counted(store(), "n", kWriters * kAdds)) {
      ++missed;
    }
  });
  EXPECT_EQ(missed, 0);
}

TEST_P(Conformance, RowThatComesAndGoesFiresEveryWatchThatMissedIt) {
  // A watcher that saw the row absent must be woken by the next blink, however fast it was.
  constexpr int kRounds = 150;
  std::atomic<int> missed = 0;
  on_threads(2, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      if (thread == 0) {
        if (!wait_until_counted(store(), "ready", round + 1)) ++missed;
        set("blink", "1");
        clear("blink");
      } else {
        auto watch = must(store().transact([](Transaction& txn) {
          txn.add("ready", 1);
          return txn.watch("blink");
        }));
        if (!watch.wait(kSoon)) ++missed;
      }
    }
  });
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace perdure::conformance
