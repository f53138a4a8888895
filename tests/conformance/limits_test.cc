// What the store refuses to hold.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, KeyOfTheLongestLengthIsKeptAndOneByteMoreIsRefused) {
  Bytes longest(store().limits().key_bytes_max, 'k');
  set(longest, "1");
  EXPECT_EQ(get(longest), "1");
  EXPECT_EQ(keys_of(range({longest.substr(1), ""})), (std::vector<Bytes>{longest}));
  Bytes too_long = longest + "k";
  for (auto& write : std::vector<BodyFn>{
           [&](Transaction& txn) { txn.set(too_long, ""); }, [&](Transaction& txn) { txn.clear(too_long); },
           [&](Transaction& txn) { txn.add(too_long, 1); }, [&](Transaction& txn) { (void)txn.get(too_long); },
           [&](Transaction& txn) { (void)txn.watch(too_long); },
           [&](Transaction& txn) { txn.set_stamped(too_long, Stamped{}); },
           [&](Transaction& txn) {
             Bytes before = too_long.substr(Stamp::kSize);
             txn.set_stamped(Stamped{before, ""}, "");
           }}) {
    auto error = error_of(store().transact([&](Transaction& txn) {
      txn.set("also", "not written");
      write(txn);
    }));
    EXPECT_EQ(error.code, ErrorCode::kTooLarge);
    EXPECT_NE(error.message.find("kkk"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(std::to_string(longest.size())), std::string::npos) << error.message;
  }
  EXPECT_EQ(range({}).size(), 1u);
}

TEST_P(Conformance, StampedKeyOfTheLongestLengthIsKept) {
  Bytes before(store().limits().key_bytes_max - Stamp::kSize, 'k');
  must(store().transact([&](Transaction& txn) { txn.set_stamped(Stamped{before, ""}, "1"); }));
  EXPECT_EQ(range(prefix_range(before)).size(), 1u);
}

TEST_P(Conformance, ValueOfTheLargestSizeIsKeptAndOneByteMoreIsRefused) {
  Bytes largest(store().limits().value_bytes_max, 'v');
  set("largest", largest);
  EXPECT_EQ(get("largest"), largest);
  for (auto& write : std::vector<BodyFn>{
           [&](Transaction& txn) { txn.set("too-large", largest + "v"); },
           [&](Transaction& txn) { txn.set_stamped("too-large", Stamped{largest.substr(Stamp::kSize - 1), ""}); },
           [&](Transaction& txn) { txn.set_stamped(Stamped{"too-large", ""}, largest + "v"); }}) {
    auto error = error_of(store().transact([&](Transaction& txn) {
      txn.set("also", "not written");
      write(txn);
    }));
    EXPECT_EQ(error.code, ErrorCode::kTooLarge);
    EXPECT_NE(error.message.find("too-large"), std::string::npos) << error.message;
  }
  EXPECT_EQ(keys_of(range({})), (std::vector<Bytes>{"largest"}));
}

TEST_P(Conformance, TransactionOfTheLargestSizeCommitsAndOneByteMoreIsRefused) {
  const Limits& limits = store().limits();
  constexpr std::size_t kRow = 16;  // What a row costs beyond its bytes, see WriteSet.
  auto fill = [&](Transaction& txn, std::size_t bytes) {
    for (int i = 0; bytes > 0; ++i) {
      Bytes key = numbered("k", i);
      std::size_t value = std::min(bytes - key.size() - kRow, limits.value_bytes_max / 2);
      txn.set(key, Bytes(value, 'v'));
      bytes -= value + key.size() + kRow;
    }
  };
  auto error = error_of(store().transact([&](Transaction& txn) { fill(txn, limits.transaction_bytes_max + 1); }));
  EXPECT_EQ(error.code, ErrorCode::kTooLarge);
  EXPECT_NE(error.message.find("transaction"), std::string::npos) << error.message;
  EXPECT_EQ(contents(), "");
  must(store().transact([&](Transaction& txn) { fill(txn, limits.transaction_bytes_max); }));
  EXPECT_FALSE(range({}, {.limit = 1}).empty());
}

TEST_P(Conformance, EmptyKeyIsRefused) {
  for (auto& use : std::vector<BodyFn>{
           [](Transaction& txn) { txn.set("", "1"); }, [](Transaction& txn) { txn.clear(""); },
           [](Transaction& txn) { txn.add("", 1); }, [](Transaction& txn) { (void)txn.get(""); },
           [](Transaction& txn) { txn.add_read_conflict(""); }, [](Transaction& txn) { (void)txn.watch(""); }})
    EXPECT_EQ(error_of(store().transact([&](Transaction& txn) { use(txn); })).code, ErrorCode::kInvalidArgument);
}

TEST_P(Conformance, PerduresOwnKeysAreRefused) {
  for (auto& use : std::vector<BodyFn>{
           [](Transaction& txn) { txn.set("\xff", "1"); }, [](Transaction& txn) { txn.clear("\xff\x01"); },
           [](Transaction& txn) { txn.add("\xff/n", 1); }, [](Transaction& txn) { (void)txn.get("\xff/version"); },
           [](Transaction& txn) { txn.set_stamped(Stamped{"\xff", ""}, ""); },
           [](Transaction& txn) { (void)txn.watch("\xff"); }}) {
    auto error = error_of(store().transact([&](Transaction& txn) { use(txn); }));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message.find("\\xff"), std::string::npos) << error.message;
  }
}

TEST_P(Conformance, PerduresOwnRowsAreNeitherSeenNorCleared) {
  set("a", "1");
  set("\xfe\xff", "2");
  EXPECT_EQ(range({}).size(), 2u);
  EXPECT_EQ(range({}, {.direction = Direction::kReverse}).size(), 2u);
  EXPECT_EQ(show(range({"\xff", ""})), "");
  EXPECT_EQ(show(range({"\xff\x01", "\xff\xff"}, {.direction = Direction::kReverse})), "");
  Receipt before, after;
  must(store().transact([](Transaction& txn) { txn.clear_range({}); }, {}, &before));
  EXPECT_EQ(contents(), "");
  EXPECT_EQ(must(store().clear_in_batches({})), 0u);
  must(store().transact([](Transaction& txn) { txn.set("a", "1"); }, {}, &after));
  EXPECT_GT(after.version, before.version) << "the store's own rows are still there";
}

TEST_P(Conformance, TransactionsWaitingBeyondTheBoundAreRefused) {
  if (capabilities().remote || capabilities().far_reads)
    GTEST_SKIP() << "bodies do not run inside a commit, so this cannot hold one up";
  reopen({.pending_max = 3});
  constexpr int kCalls = 10;
  std::atomic<int> committed = 0, refused = 0;
  Countdown all_done(kCalls), all_refused(kCalls - 3);
  in_one_batch([&] {
    for (int i = 0; i < kCalls; ++i)
      store().transact_async([i](Transaction& txn) { txn.set(numbered("k", i), ""); },
                             [&](Result<void> result) {
                               if (!result) {
                                 EXPECT_EQ(result.error().code, ErrorCode::kLimitExceeded);
                                 ++refused;
                                 all_refused.hit();
                               } else {
                                 ++committed;
                               }
                               all_done.hit();
                             },
                             {.timeout = kSoon});
    EXPECT_TRUE(all_refused.wait());
  });
  EXPECT_TRUE(all_done.wait());
  EXPECT_EQ(committed, 3);
  EXPECT_EQ(range(prefix_range("k")).size(), 3u);
}

}  // namespace
}  // namespace perdure::conformance
