// Body::kShort: bodies that run inside the commit, on top of their batch.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, SixtyFourThreadsDrawConsecutiveNumbersWithoutAConflict) {
  if (capabilities().remote) GTEST_SKIP() << "on a remote engine short bodies may conflict";
  constexpr int kThreads = 64, kEach = 12;
  std::vector<std::int64_t> drawn[kThreads];
  std::atomic<int> runs = 0;
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i)
      drawn[thread].push_back(must(store().transact(
          [&](Transaction& txn) {
            ++runs;
            std::int64_t next = decode_counter(txn.get("n")) + 1;
            txn.set("n", encode_counter(next));
            return next;
          },
          {.timeout = kSoon, .body = Body::kShort})));
  });
  std::vector<std::int64_t> all;
  for (auto& numbers : drawn) {
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::ranges::sort(all);
  std::vector<std::int64_t> expected(kThreads * kEach);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(all, expected);
  // Where reads are far, a body is run once before, and then in the commit if its neighbours were first.
  if (capabilities().far_reads)
    EXPECT_LE(runs, 2 * kThreads * kEach);
  else
    EXPECT_EQ(runs, kThreads * kEach);
}

TEST_P(Conformance, ShortBodyThatFailsHarmsNobodyInItsBatch) {
  constexpr int kThreads = 16, kEach = 20;
  std::atomic<int> failed = 0;
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i) {
      bool fails = (thread + i) % 4 == 0;
      auto result = store().transact(
          [&](Transaction& txn) {
            txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1));
            txn.set(numbered("k", thread * kEach + i), "");
            if (fails) throw std::runtime_error("on purpose");
          },
          {.timeout = kSoon, .body = Body::kShort});
      EXPECT_EQ(result.has_value(), !fails);
      if (fails) ++failed;
    }
  });
  EXPECT_EQ(counter("n"), kThreads * kEach - failed);
  EXPECT_EQ(range(prefix_range("k")).size(), static_cast<std::size_t>(kThreads * kEach - failed));
}

TEST_P(Conformance, RefusedTransactionHarmsNobodyInItsBatch) {
  set("text", "no counter");
  constexpr int kCalls = 200;
  Countdown done(kCalls);
  std::atomic<int> refused = 0;
  for (int i = 0; i < kCalls; ++i)
    store().transact_async(
        [i](Transaction& txn) {
          txn.set(numbered("k", i), "");
          txn.add(i % 3 == 0 ? "text" : "n", 1);
        },
        [&](const Result<void>& result) {
          if (!result) ++refused;
          done.hit();
        },
        {.timeout = kSoon});
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(refused, (kCalls + 2) / 3);
  EXPECT_EQ(counter("n"), kCalls - refused);
  EXPECT_EQ(range(prefix_range("k")).size(), static_cast<std::size_t>(kCalls - refused));
  EXPECT_EQ(get("text"), "no counter");
}

TEST_P(Conformance, ShortBodyReadsRangesOnTopOfItsBatch) {
  // Each call appends behind the last row that it sees; a gap or a double would show a stale view.
  constexpr int kCalls = 300;
  Countdown done(kCalls);
  for (int i = 0; i < kCalls; ++i)
    store().transact_async(
        [](Transaction& txn) {
          auto last = txn.get_range(prefix_range("log"), {.limit = 1, .direction = Direction::kReverse});
          int next = last.empty() ? 0 : std::stoi(last[0].value) + 1;
          txn.set(numbered("log", next), std::to_string(next));
        },
        [&](const Result<void>& result) {
          must(result);
          done.hit();
        },
        {.timeout = kSoon, .body = Body::kShort});
  EXPECT_TRUE(done.wait());
  auto rows = range(prefix_range("log"));
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kCalls));
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(rows[static_cast<std::size_t>(i)].value, std::to_string(i));
}

TEST_P(Conformance, OptimisticTransactionConflictsWithAShortOne) {
  int runs = 0;
  must(store().transact([&](Transaction& txn) {
    std::int64_t seen = decode_counter(txn.get("n"));
    if (++runs == 1)
      meanwhile([&] {
        must(
            store().transact([](Transaction& theirs) { theirs.set("n", encode_counter(10)); }, {.body = Body::kShort}));
      });
    txn.set("n", encode_counter(seen + 1));
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(counter("n"), 11);
}

TEST_P(Conformance, ShortBodyThatOnlyReadsIsAnswered) {
  set("a", "1");
  Receipt receipt{Version{99}};
  auto value = store().transact([](Transaction& txn) { return txn.get("a"); }, {.body = Body::kShort}, &receipt);
  EXPECT_EQ(must(std::move(value)), "1");
  EXPECT_EQ(receipt.version, Version{});
}

}  // namespace
}  // namespace perdure::conformance
