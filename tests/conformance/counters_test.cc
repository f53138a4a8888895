// Transaction::add.
#include <limits>

#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, AddCountsFromZeroAndKeepsEightBytesLittleEndian) {
  must(store().transact([](Transaction& txn) { txn.add("n", 258); }));
  EXPECT_EQ(get("n"), Bytes("\x02\x01\0\0\0\0\0\0", 8));
  must(store().transact([](Transaction& txn) { txn.add("n", -259); }));
  EXPECT_EQ(counter("n"), -1);
}

TEST_P(Conformance, AddWrapsAround) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  set("n", encode_counter(kMax));
  must(store().transact([](Transaction& txn) { txn.add("n", 1); }));
  EXPECT_EQ(counter("n"), std::numeric_limits<std::int64_t>::min());
  must(store().transact([&](Transaction& txn) {
    txn.add("n", -1);
    EXPECT_EQ(decode_counter(txn.get("n")), kMax);
    txn.add("n", kMax);
    txn.add("n", kMax);
  }));
  EXPECT_EQ(counter("n"), kMax - 2);
}

TEST_P(Conformance, AddToWhatIsNoCounterIsRefusedWithoutEffect) {
  set("text", "hello");
  auto refused = error_of(store().transact([](Transaction& txn) {
    txn.set("also", "not written");
    txn.add("text", 1);
  }));
  EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message.find("text"), std::string::npos) << refused.message;
  EXPECT_EQ(contents(), "text=hello");
}

TEST_P(Conformance, AddToAnOwnWriteThatIsNoCounterIsRefusedWithoutEffect) {
  auto refused = error_of(store().transact([](Transaction& txn) {
    txn.set("text", "hello");
    txn.add("text", 1);
  }));
  EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message.find("text"), std::string::npos) << refused.message;
  EXPECT_EQ(error_of(store().transact([](Transaction& txn) {
              txn.set_stamped("stamp", Stamped{});
              txn.add("stamp", 1);
            })).code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, AddsConflictWithNobodyWhoOnlyAdds) {
  EXPECT_EQ(runs_against([](Transaction& txn) { txn.add("n", 1); }, [](Transaction& txn) { txn.add("n", 2); }), 1);
  EXPECT_EQ(counter("n"), 3);
}

TEST_P(Conformance, AddsFromEightThreadsSumUpWithoutARerun) {
  constexpr int kThreads = 8, kAdds = 60;
  std::atomic<int> runs = 0;
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kAdds; ++i)
      must(store().transact([&](Transaction& txn) {
        ++runs;
        txn.add("n", thread + 1);
        txn.add("calls", 1);
      }));
  });
  EXPECT_EQ(counter("n"), kAdds * (kThreads * (kThreads + 1) / 2));
  EXPECT_EQ(counter("calls"), kThreads * kAdds);
  EXPECT_EQ(runs, kThreads * kAdds);
}

TEST_P(Conformance, ReadModifyWriteOfEightThreadsLosesNoUpdate) {
  constexpr int kThreads = 8, kUpdates = 40;
  on_threads(kThreads, [&](int) {
    for (int i = 0; i < kUpdates; ++i)
      must(store().transact([&](Transaction& txn) { txn.set("n", encode_counter(decode_counter(txn.get("n")) + 1)); },
                            {.timeout = kSoon}));
  });
  EXPECT_EQ(counter("n"), kThreads * kUpdates);
}

}  // namespace
}  // namespace perdure::conformance
