// Rows that hold the moment of their commit.
#include <algorithm>
#include <set>

#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

Stamp stamp_in(BytesView bytes, std::size_t at) {
  auto stamp = Stamp::decode(bytes.substr(at, Stamp::kSize));
  EXPECT_TRUE(stamp);
  return stamp.value_or(Stamp{});
}

TEST_P(Conformance, StampInAKeyIsTheReceipts) {
  Receipt receipt;
  must(store().transact([](Transaction& txn) { txn.set_stamped(Stamped{"q/", "/end", 7}, "value"); }, {}, &receipt));
  auto rows = range(prefix_range("q/"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key.size(), 2 + Stamp::kSize + 4);
  EXPECT_EQ(stamp_in(rows[0].key, 2), receipt.stamp(7));
  EXPECT_TRUE(rows[0].key.ends_with("/end"));
  EXPECT_EQ(rows[0].value, "value");
  EXPECT_EQ(rows[0].version, receipt.version);
}

TEST_P(Conformance, StampInAValueIsTheReceipts) {
  Receipt receipt;
  must(store().transact([](Transaction& txn) { txn.set_stamped("key", Stamped{"<", ">", 1}); }, {}, &receipt));
  auto value = get("key");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, (Stamped{"<", ">", 1}).filled(receipt.version));
}

TEST_P(Conformance, StampsInKeyAndValueAreBothFilled) {
  Receipt receipt;
  must(store().transact([](Transaction& txn) { txn.set_stamped(Stamped{"k", "", 2}, Stamped{"v", "", 3}); }, {},
                        &receipt));
  auto rows = range({});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(stamp_in(rows[0].key, 1), receipt.stamp(2));
  EXPECT_EQ(stamp_in(rows[0].value, 1), receipt.stamp(3));
}

TEST_P(Conformance, RowsThatOneTransactionStampsAreOrderedByTheirNumber) {
  must(store().transact([](Transaction& txn) {
    for (std::uint32_t order : {2u, 0u, 1u, 300u}) txn.set_stamped(Stamped{"q/", "", order}, std::to_string(order));
  }));
  std::vector<Bytes> values;
  for (const Row& row : range(prefix_range("q/"))) values.push_back(row.value);
  EXPECT_EQ(values, (std::vector<Bytes>{"0", "1", "2", "300"}));
}

TEST_P(Conformance, ReadingAnOwnRowWithoutAStampIsRefused) {
  auto refused = [&](auto read) {
    auto error = error_of(store().transact([&](Transaction& txn) {
      txn.set_stamped(Stamped{"q/", ""}, "value");
      txn.set_stamped("stamp", Stamped{});
      read(txn);
    }));
    return error.code == ErrorCode::kInvalidArgument;
  };
  const std::vector<Bytes> keys = {"a", "stamp"};
  EXPECT_TRUE(refused([](Transaction& txn) { (void)txn.get("stamp"); }));
  EXPECT_TRUE(refused([&](Transaction& txn) { (void)txn.get_many(keys); }));
  EXPECT_TRUE(refused([](Transaction& txn) { (void)txn.get_range(prefix_range("q")); }));
  EXPECT_TRUE(refused([](Transaction& txn) { (void)txn.get_range({"q/", "q/\xff"}, {.limit = 1}); }));
  EXPECT_TRUE(refused([](Transaction& txn) { (void)txn.get_range({"s", "t"}); }));
  EXPECT_TRUE(refused([](Transaction& txn) { (void)txn.snapshot().get_range({}); }));
  EXPECT_EQ(contents(), "");
}

TEST_P(Conformance, ReadingBesideAnOwnRowWithoutAStampIsAllowed) {
  set("p", "1");
  must(store().transact([](Transaction& txn) {
    txn.set_stamped(Stamped{"q/", ""}, "value");
    txn.set_stamped("stamp", Stamped{});
    EXPECT_EQ(txn.get("p"), "1");
    EXPECT_EQ(show(txn.get_range({"", "q"})), "p=1");
    EXPECT_EQ(show(txn.get_range({"p", "q/"})), "p=1") << "the end is not in the range";
    EXPECT_EQ(show(txn.get_range({"q0", "stamp"})), "");
    EXPECT_EQ(show(txn.get_range({"t", ""})), "");
  }));
}

TEST_P(Conformance, ClearRangeDropsTheStampedRowsThatCameBeforeIt) {
  must(store().transact([](Transaction& txn) {
    txn.set_stamped(Stamped{"q/", "", 1}, "before");
    txn.set_stamped("q", Stamped{});
    txn.clear_range(prefix_range("q"));
    txn.set_stamped(Stamped{"q/", "", 2}, "after");
    txn.set_stamped(Stamped{"r/", "", 3}, "beside");
  }));
  std::vector<Bytes> values;
  for (const Row& row : range({})) values.push_back(row.value);
  EXPECT_EQ(values, (std::vector<Bytes>{"after", "beside"}));
}

TEST_P(Conformance, StampsOfConcurrentCommitsAreUniqueAndInTheirOrder) {
  constexpr int kThreads = 8, kEach = 40;
  std::vector<std::vector<Stamp>> made(kThreads);
  on_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i) {
      Receipt receipt;
      must(store().transact([&](Transaction& txn) { txn.set_stamped(Stamped{"q/", ""}, std::to_string(thread)); }, {},
                            &receipt));
      made[static_cast<std::size_t>(thread)].push_back(receipt.stamp());
    }
  });
  auto rows = range(prefix_range("q/"));
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kThreads * kEach));
  std::vector<std::vector<Stamp>> found(kThreads);
  for (const Row& row : rows) {
    Stamp stamp = stamp_in(row.key, 2);
    EXPECT_EQ(stamp.version, row.version);
    found[static_cast<std::size_t>(std::stoi(row.value))].push_back(stamp);
  }
  // Each thread waited for one commit before the next, so its stamps grow; and the store keeps them in that order.
  for (auto& stamps : made) EXPECT_TRUE(std::ranges::is_sorted(stamps));
  EXPECT_EQ(found, made);
}

TEST_P(Conformance, LaterCommitHasTheLaterStampWhoeverMadeIt) {
  // Each thread reads the newest stamped row before it writes its own: that must sort behind.
  on_threads(8, [&](int) {
    for (int i = 0; i < 20; ++i) {
      auto newest = range(prefix_range("q/"), {.limit = 1, .direction = Direction::kReverse});
      Receipt receipt;
      must(store().transact([](Transaction& txn) { txn.set_stamped(Stamped{"q/", ""}, ""); }, {}, &receipt));
      if (!newest.empty()) {
        EXPECT_GT(receipt.stamp(), stamp_in(newest[0].key, 2));
      }
    }
  });
}

}  // namespace
}  // namespace perdure::conformance
