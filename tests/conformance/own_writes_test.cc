// A transaction sees its own writes.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, OwnSetsAndClearsAreRead) {
  set("b", "stored");
  must(store().transact([](Transaction& txn) {
    txn.set("a", "1");
    txn.clear("b");
    EXPECT_EQ(txn.get("a"), "1");
    EXPECT_EQ(txn.get("b"), std::nullopt);
    txn.set("b", "again");
    EXPECT_EQ(txn.get("b"), "again");
    const std::vector<Bytes> keys = {"b", "a", "c"};
    EXPECT_EQ(txn.get_many(keys), (std::vector<std::optional<Bytes>>{"again", "1", std::nullopt}));
  }));
}

TEST_P(Conformance, OwnClearRangeHidesStoredRowsAndEarlierWrites) {
  set("b", "stored");
  set("d", "stored");
  must(store().transact([](Transaction& txn) {
    txn.set("c", "own");
    txn.clear_range({"b", "d"});
    EXPECT_EQ(txn.get("b"), std::nullopt);
    EXPECT_EQ(txn.get("c"), std::nullopt);
    EXPECT_EQ(txn.get("d"), "stored");
    txn.set("b", "new");
    EXPECT_EQ(show(txn.get_range({})), "b=new d=stored");
  }));
  EXPECT_EQ(contents(), "b=new d=stored");
}

TEST_P(Conformance, OwnAddsAreRead) {
  must(store().transact([](Transaction& txn) { txn.add("n", 5); }));
  must(store().transact([](Transaction& txn) {
    txn.add("n", 2);
    EXPECT_EQ(decode_counter(txn.get("n")), 7);
    txn.add("n", -10);
    EXPECT_EQ(decode_counter(txn.get("n")), -3);
    txn.add("fresh", 1);
    EXPECT_EQ(decode_counter(txn.get("fresh")), 1);
    auto rows = txn.get_range({});
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(decode_counter(rows[0].value), 1);
    EXPECT_EQ(decode_counter(rows[1].value), -3);
  }));
  EXPECT_EQ(counter("n"), -3);
}

TEST_P(Conformance, OwnAddBuildsOnOwnSetAndOwnClear) {
  must(store().transact([](Transaction& txn) { txn.add("cleared", 100); }));
  must(store().transact([](Transaction& txn) {
    txn.set("set", encode_counter(40));
    txn.add("set", 2);
    EXPECT_EQ(decode_counter(txn.get("set")), 42);
    txn.clear("cleared");
    txn.add("cleared", 1);
    EXPECT_EQ(decode_counter(txn.get("cleared")), 1);
    txn.clear_range({"x", "z"});
    txn.add("y", 3);
    EXPECT_EQ(decode_counter(txn.get("y")), 3);
  }));
  EXPECT_EQ(counter("set"), 42);
  EXPECT_EQ(counter("cleared"), 1);
  EXPECT_EQ(counter("y"), 3);
}

TEST_P(Conformance, OwnWritesAreMergedIntoRangesInBothDirections) {
  for (const char* key : {"b", "d", "f", "h"}) set(key, "s");
  must(store().transact([](Transaction& txn) {
    for (const char* key : {"a", "c", "d", "i"}) txn.set(key, "o");
    txn.clear("f");
    EXPECT_EQ(show(txn.get_range({})), "a=o b=s c=o d=o h=s i=o");
    EXPECT_EQ(show(txn.get_range({}, {.direction = Direction::kReverse})), "i=o h=s d=o c=o b=s a=o");
    EXPECT_EQ(show(txn.get_range({"c", "h"})), "c=o d=o");
  }));
}

TEST_P(Conformance, LimitCountsRowsAsTheTransactionSeesThem) {
  for (const char* key : {"a", "b", "c", "d", "e"}) set(key, "s");
  must(store().transact([](Transaction& txn) {
    txn.clear("a");
    txn.clear_range({"b", "d"});
    txn.set("bb", "o");
    EXPECT_EQ(show(txn.get_range({}, {.limit = 1})), "bb=o");
    EXPECT_EQ(show(txn.get_range({}, {.limit = 2})), "bb=o d=s");
    EXPECT_EQ(show(txn.get_range({}, {.limit = 3})), "bb=o d=s e=s");
    txn.clear("e");
    EXPECT_EQ(show(txn.get_range({}, {.limit = 1, .direction = Direction::kReverse})), "d=s");
    EXPECT_EQ(show(txn.get_range({}, {.limit = 2, .direction = Direction::kReverse})), "d=s bb=o");
  }));
}

TEST_P(Conformance, SnapshotReadsSeeOwnWritesToo) {
  set("a", "stored");
  must(store().transact([](Transaction& txn) {
    txn.set("a", "own");
    txn.set("b", "own");
    EXPECT_EQ(txn.snapshot().get("a"), "own");
    EXPECT_EQ(show(txn.snapshot().get_range({})), "a=own b=own");
  }));
}

TEST_P(Conformance, OthersSeeNothingOfATransactionBeforeItsCommit) {
  set("a", "old");
  must(store().transact([&](Transaction& txn) {
    txn.set("a", "new");
    txn.set("b", "new");
    meanwhile([&] { EXPECT_EQ(contents(), "a=old"); });
  }));
  EXPECT_EQ(contents(), "a=new b=new");
}

TEST_P(Conformance, BodyReadsOneMomentOfTheStore) {
  set("a", "1");
  set("b", "1");
  int runs = 0;
  must(store().read([&](Reader& reader) {
    Bytes a = *reader.get("a");
    if (++runs == 1)
      meanwhile([&] {
        must(store().transact([](Transaction& txn) {
          txn.set("a", "2");
          txn.set("b", "2");
          txn.set("c", "2");
        }));
      });
    EXPECT_EQ(reader.get("b"), a);
    EXPECT_EQ(reader.get_range({}).size(), a == "1" ? 2u : 3u);
    EXPECT_EQ(reader.get("a"), a);
  }));
}

}  // namespace
}  // namespace perdure::conformance
