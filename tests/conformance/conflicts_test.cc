// Which transactions conflict. See Conformance::runs_against: 2 runs mean a conflict.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

using Txn = Transaction;

TEST_P(Conformance, ReadKeyThatChangesConflicts) {
  set("a", "1");
  auto read = [](Txn& txn) { (void)txn.get("a"); };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("a", "2"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear("a"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("a", "back"); }), 2) << "absent keys are read too";
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear_range({"a", "b"}); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.add("a", 1); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("other", "1"); }), 1);
}

TEST_P(Conformance, KeyWrittenWithTheSameValueConflicts) {
  set("a", "1");
  EXPECT_EQ(runs_against([](Txn& txn) { (void)txn.get("a"); }, [](Txn& txn) { txn.set("a", "1"); }), 2);
}

TEST_P(Conformance, EveryKeyOfGetManyConflicts) {
  set("b", "1");
  const std::vector<Bytes> keys = {"a", "b", "c"};
  auto read = [&](Txn& txn) { (void)txn.get_many(keys); };
  for (const Bytes& key : keys) EXPECT_EQ(runs_against(read, [&](Txn& txn) { txn.set(key, "2"); }), 2) << key;
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("bb", "2"); }), 1);
}

TEST_P(Conformance, WriteSkewConflicts) {
  // Each of two on duty may leave only if the other stays.
  set("a", "on");
  set("b", "on");
  auto leave = [](Txn& txn, const char* who) {
    if (txn.get_range({"a", "c"}).size() == 2 && txn.get("a") == "on" && txn.get("b") == "on") txn.set(who, "off");
  };
  int runs = 0;
  must(store().transact([&](Txn& txn) {
    leave(txn, "a");
    if (++runs == 1) meanwhile([&] { must(store().transact([&](Txn& theirs) { leave(theirs, "b"); })); });
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(contents(), "a=on b=off");
}

TEST_P(Conformance, PhantomInAnEmptyRangeConflicts) {
  auto read = [](Txn& txn) { EXPECT_TRUE(txn.get_range({"p", "q"}).empty()); };
  EXPECT_EQ(runs_against([](Txn& txn) { (void)txn.get_range({"p", "q"}); }, [](Txn& txn) { txn.set("p5", ""); }), 2);
  clear("p5");
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("q", ""); }), 1) << "the end is not in the range";
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("o", ""); }), 1);
}

TEST_P(Conformance, InsertedChangedAndRemovedRowsOfARangeConflict) {
  for (const char* key : {"p1", "p3", "p5"}) set(key, "1");
  for (Direction direction : {Direction::kForward, Direction::kReverse}) {
    auto read = [=](Txn& txn) { (void)txn.get_range({"p", "q"}, {.direction = direction}); };
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p2", ""); }), 2);
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p3", "2"); }), 2);
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear("p2"); }), 2);
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p0", ""); }), 2) << "before the first row";
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p9", ""); }), 2) << "after the last row";
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear_range({"p0", "p1"}); }), 2);
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear("p9"); }), 2);
    EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("r", ""); }), 1);
  }
}

TEST_P(Conformance, RowSwappedForAnotherInARangeConflicts) {
  set("p1", "1");
  EXPECT_EQ(runs_against([](Txn& txn) { (void)txn.get_range({"p", "q"}); },
                         [](Txn& txn) {
                           txn.clear("p1");
                           txn.set("p2", "1");
                         }),
            2);
}

TEST_P(Conformance, LimitedRangeConflictsOnlyUpToItsLastRow) {
  for (const char* key : {"p2", "p4", "p6", "p8"}) set(key, "1");
  auto read = [](Txn& txn) { (void)txn.get_range({"p", "q"}, {.limit = 2}); };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p5", ""); }), 1);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p6", "2"); }), 1);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p4", "2"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p1", ""); }), 2);
}

TEST_P(Conformance, LimitedReverseRangeConflictsOnlyDownToItsLastRow) {
  for (const char* key : {"p2", "p4", "p6", "p8"}) set(key, "1");
  auto read = [](Txn& txn) { (void)txn.get_range({"p", "q"}, {.limit = 2, .direction = Direction::kReverse}); };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p5", ""); }), 1);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p4", "2"); }), 1);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p6", "2"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p9", ""); }), 2);
}

TEST_P(Conformance, LimitThatTheRowsDoNotReachCoversTheWholeRange) {
  set("p1", "1");
  auto read = [](Txn& txn) { (void)txn.get_range({"p", "q"}, {.limit = 50}); };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p9", ""); }), 2);
}

TEST_P(Conformance, RangeReadOverOwnWritesStillConflicts) {
  for (const char* key : {"p1", "p2", "p3"}) set(key, "1");
  auto read = [](Txn& txn) {
    txn.clear("p1");
    txn.set("p15", "own");
    (void)txn.get_range({"p", "q"}, {.limit = 2});
  };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p12", ""); }), 2);
  clear("p12");
  set("p1", "1");
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p3", "2"); }), 1) << "behind the limit";
}

TEST_P(Conformance, EveryRangeOfGetRangesConflicts) {
  const std::vector<RangeRead> reads = {{prefix_range("p"), {}}, {prefix_range("r"), {}}};
  auto read = [&](Txn& txn) { (void)txn.get_ranges(reads); };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p1", ""); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("r1", ""); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("q1", ""); }), 1);
}

TEST_P(Conformance, ReadOnlyTransactionsNeverConflict) {
  set("a", "1");
  int runs = 0;
  auto seen = must(store().transact([&](Txn& txn) {
    auto value = txn.get("a");
    (void)txn.get_range({});
    if (++runs == 1) meanwhile([&] { set("a", "2"); });
    return value;
  }));
  if (capabilities().reads_may_rerun) {
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(seen, "2");
  } else {
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(seen, "1");
  }
}

TEST_P(Conformance, SnapshotReadsConflictWithNobody) {
  set("p1", "1");
  const std::vector<Bytes> keys = {"p1", "p2"};
  const std::vector<RangeRead> ranges = {{prefix_range("p"), {}}};
  auto read = [&](Txn& txn) {
    Reader snapshot = txn.snapshot();
    (void)snapshot.get("p1");
    (void)snapshot.get_many(keys);
    (void)snapshot.get_range(prefix_range("p"));
    (void)snapshot.get_ranges(ranges);
  };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p1", "2"); }), 1);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p2", "2"); }), 1);
}

TEST_P(Conformance, AddedReadConflictOnAKeyConflicts) {
  set("p1", "1");
  auto read = [](Txn& txn) {
    (void)txn.snapshot().get_range(prefix_range("p"));
    txn.add_read_conflict("p1");
  };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p1", "2"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear("p1"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p2", ""); }), 1);
}

TEST_P(Conformance, AddedReadConflictOnARangeConflicts) {
  set("p1", "1");
  auto read = [](Txn& txn) { txn.add_read_conflict(prefix_range("p")); };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("p2", ""); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.clear("p1"); }), 2);
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("q", ""); }), 1);
}

TEST_P(Conformance, BlindWritesConflictWithNobody) {
  EXPECT_EQ(runs_against([](Txn& txn) { txn.set("a", "mine"); }, [](Txn& txn) { txn.set("a", "theirs"); }), 1);
  EXPECT_EQ(get("a"), "mine") << "the later commit wins";
  EXPECT_EQ(runs_against([](Txn& txn) { txn.clear("a"); }, [](Txn& txn) { txn.set("a", "theirs"); }), 1);
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_EQ(runs_against([](Txn& txn) { txn.clear_range({"a", "b"}); }, [](Txn& txn) { txn.set("aa", ""); }), 1);
  EXPECT_EQ(get("aa"), std::nullopt) << "what came before the clearing is cleared";
}

TEST_P(Conformance, OwnWriteReadBackDoesNotConflict) {
  auto read = [](Txn& txn) {
    txn.set("a", "mine");
    (void)txn.get("a");
  };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.set("a", "theirs"); }), 1);
}

TEST_P(Conformance, ReadOfAnOwnAddConflictsWithChangesBelowIt) {
  auto read = [](Txn& txn) {
    txn.add("n", 1);
    (void)txn.get("n");
  };
  EXPECT_EQ(runs_against(read, [](Txn& txn) { txn.add("n", 10); }), 2);
  EXPECT_EQ(counter("n"), 11);
}

}  // namespace
}  // namespace perdure::conformance
