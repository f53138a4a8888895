#include "sim/list_append.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perdure::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Verdict judge(std::string_view text) {
  Result<History> history = parse_history(text, "history");
  EXPECT_TRUE(history) << history.error().message;
  return check_list_append(*history);
}

/// The name of the anomaly, or "ok".
std::string anomaly(std::string_view text) {
  Verdict verdict = judge(text);
  EXPECT_EQ(verdict.ok, verdict.anomaly.empty());
  EXPECT_EQ(verdict.ok, verdict.explanation.empty());
  return verdict.ok ? "ok" : verdict.anomaly;
}

TEST(ListAppend, EmptyHistoryIsFine) {
  EXPECT_EQ(anomaly(""), "ok");
}

TEST(ListAppend, OwnAppendMustBeInALaterReadOfItsTransaction) {
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1 r 7 -\n"), "internal");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1 r 7 1\n"), "ok");
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 - a 7 1 a 7 2 r 7 2,1\n"), "internal");
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 - a 7 1 a 7 2 r 7 1,2\n"), "ok");
}

TEST(ListAppend, SecondReadOfATransactionMustRepeatTheFirst) {
  const std::string writer = "ok 1 0 9 a 7 1\n";
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 - r 7 1\n"), "internal");
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 1 r 7 1\n"), "ok");
  EXPECT_EQ(judge(writer + "ok 2 0 9 r 7 - a 7 2 r 7 1,2\n").explanation,
            "T1 read [1 2] of key 7, although it had itself read [] before and then appended [2]");
}

TEST(ListAppend, ReadOfAnOwnLaterAppendIsInternal) {
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 1 a 7 1\n"), "internal");
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 - a 7 1\n"), "ok");
}

TEST(ListAppend, ValueThatNobodyAppendedIsGarbage) {
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 10 19 r 7 1,2\n"), "garbage-read");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 1 0 9 a 8 2\nok 2 10 19 r 7 1,2\n"), "garbage-read") << "key 8 is not key 7";
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 1 0 9 a 7 2\nok 2 10 19 r 7 1,2\n"), "ok");
}

TEST(ListAppend, ValueTwiceInAListIsADuplicate) {
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 0 9 a 7 2\nok 2 10 19 r 7 1,2,1\n"), "duplicate-elements");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 0 9 a 7 2\nok 2 10 19 r 7 1,2\n"), "ok");
}

TEST(ListAppend, ValueAppendedTwiceMakesTheHistoryUnfit) {
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 0 9 a 7 1\n"), "duplicate-append");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 0 9 a 8 1\n"), "ok");
}

TEST(ListAppend, ReadOfAFailedTransactionIsG1a) {
  EXPECT_EQ(anomaly("fail 1 0 9 a 7 1\nok 2 0 9 r 7 1\n"), "G1a");
  EXPECT_EQ(anomaly("fail 1 0 9 a 7 1\nok 2 0 9 r 7 -\n"), "ok");
}

TEST(ListAppend, ReadsOfAFailedTransactionDoNotCount) {
  EXPECT_EQ(anomaly("fail 1 0 9 r 7 99\n"), "ok");
}

TEST(ListAppend, ReadOfHalfATransactionIsG1b) {
  const std::string writer = "ok 1 0 9 a 7 1 a 7 2\n";
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 1\n"), "G1b");
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 1\nok 3 10 19 r 7 1,2\n"), "G1b");
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 2\n"), "G1b") << "the second half without the first";
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 a 7 3\nok 3 10 19 r 7 1,3,2\n"), "G1b") << "somebody in between";
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 1,2\n"), "ok");
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 7 -\n"), "ok");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1 r 7 1 a 7 2\nok 2 0 9 a 7 3\n"), "ok") << "its own intermediate state";
}

TEST(ListAppend, ListsThatAreNoPrefixesOfEachOtherAreIncompatible) {
  const std::string writers = "ok 1 0 9 a 7 1\nok 2 0 9 a 7 2\n";
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 7 1,2\nok 4 0 9 r 7 2\n"), "incompatible-order");
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 7 1,2\nok 4 0 9 r 7 2,1\n"), "incompatible-order");
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 7 1,2\nok 4 0 9 r 7 1\n"), "ok");
}

TEST(ListAppend, AcknowledgedAppendMissingFromTheLastReadIsLost) {
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 10 19 r 7 -\n"), "lost-append");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 9 19 r 7 -\n"), "ok") << "they overlap";
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 10 19 r 7 1\nok 2 20 29 r 7 -\n"), "lost-append") << "seen, then gone";
  EXPECT_EQ(anomaly("unknown 1 0 9 a 7 1\nok 2 10 19 r 7 -\n"), "ok") << "never acknowledged";
}

TEST(ListAppend, FinalReadMustHaveEveryAcknowledgedAppend) {
  const std::string appends = "ok 1 0 9 a 7 1\nok 1 10 19 a 7 2\nunknown 2 0 9 a 7 3\n";
  EXPECT_EQ(anomaly(appends + "final 7 1\n"), "lost-append");
  EXPECT_EQ(anomaly(appends + "final 7 1,2\n"), "ok");
  EXPECT_EQ(anomaly(appends + "final 7 1,2,3\n"), "ok");
  EXPECT_THAT(judge(appends + "final 7 1\n").explanation,
              StartsWith("T1 appended 2 to key 7 and was acknowledged, but the final read (T3), which began later"));
}

TEST(ListAppend, StaleReadAfterCompletionIsARealtimeCycle) {
  const std::string writer = "ok 1 100 200 a 7 1\n";
  Verdict verdict = judge(writer + "ok 2 300 400 r 7 -\nok 3 500 600 r 7 1\n");
  EXPECT_EQ(verdict.anomaly, "G-single-realtime");
  EXPECT_EQ(verdict.explanation,
            "T1 read [] of key 7 and missed 1, which T0 had appended before T1 began\n"
            "  T1: ok 2 300 400 r 7 -\n"
            "  T0: ok 1 100 200 a 7 1");
  EXPECT_EQ(anomaly(writer + "ok 2 200 400 r 7 -\nok 3 500 600 r 7 1\n"), "ok") << "not before, but at that moment";
}

TEST(ListAppend, StaleReadIsFoundAcrossTransactionsThatAreStillUnderWay) {
  const std::string others = "ok 2 10 90 a 8 1\nok 3 0 15 a 9 1\nok 5 100 109 r 7 1\n";
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\n" + others + "ok 4 20 29 r 7 -\n"), "G-single-realtime");
  EXPECT_EQ(anomaly("ok 1 0 20 a 7 1\n" + others + "ok 4 20 29 r 7 -\n"), "ok");
}

TEST(ListAppend, AppendsInOppositeOrdersAreG0) {
  const std::string writers = "ok 1 0 9 a 1 1 a 2 1\nok 2 0 9 a 1 2 a 2 2\n";
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 1 1,2\nok 3 0 9 r 2 2,1\n"), "G0");
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 1 1,2\nok 3 0 9 r 2 1,2\n"), "ok");
}

TEST(ListAppend, TransactionsThatSeeEachOtherAreG1c) {
  Verdict verdict = judge("ok 1 0 9 a 1 1 r 2 1\nok 2 0 9 a 2 1 r 1 1\n");
  EXPECT_EQ(verdict.anomaly, "G1c");
  EXPECT_THAT(verdict.explanation, HasSubstr("T0 -wr-> T1: T1 read [1] of key 1 and saw 1, which T0 appended"));
  EXPECT_EQ(anomaly("ok 1 0 9 a 1 1 r 2 -\nok 2 0 9 a 2 1 r 1 1\n"), "ok");
}

TEST(ListAppend, ReadSkewIsGSingle) {
  const std::string writer = "ok 1 0 9 a 1 1 a 2 1\n";
  Verdict verdict = judge(writer + "ok 2 0 9 r 1 1 r 2 -\n");
  EXPECT_EQ(verdict.anomaly, "G-single");
  EXPECT_THAT(verdict.explanation, HasSubstr("T1 -rw-> T0: T1 read [] of key 2 and missed 1, which T0 appended"));
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 1 1 r 2 1\n"), "ok");
  EXPECT_EQ(anomaly(writer + "ok 2 0 9 r 1 - r 2 -\n"), "ok");
}

TEST(ListAppend, LostUpdateThatWasReadIsGSingle) {
  const std::string updates = "ok 1 0 9 r 7 - a 7 1\nok 2 0 9 r 7 - a 7 2\n";
  EXPECT_EQ(anomaly(updates + "ok 3 0 9 r 7 1,2\n"), "G-single");
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 - a 7 1\nok 2 0 9 r 7 1 a 7 2\nok 3 0 9 r 7 1,2\n"), "ok");
}

TEST(ListAppend, LostUpdateThatNobodyReadIsG2) {
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 - a 7 1\nok 2 0 9 r 7 - a 7 2\n"), "G2");
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 - a 7 1\nok 2 0 9 a 7 2\nok 2 0 9 a 7 3\n"), "ok") << "blind appends";
}

TEST(ListAppend, WriteSkewIsG2) {
  Verdict verdict = judge("ok 1 0 9 r 1 - a 2 1\nok 2 0 9 r 2 - a 1 1\n");
  EXPECT_EQ(verdict.anomaly, "G2");
  EXPECT_EQ(verdict.explanation,
            "no order of these transactions is possible:\n"
            "  T0 -rw-> T1: T0 read [] of key 1 and missed 1, which T1 appended\n"
            "  T1 -rw-> T0: T1 read [] of key 2 and missed 1, which T0 appended\n"
            "  T0: ok 1 0 9 r 1 - a 2 1\n"
            "  T1: ok 2 0 9 r 2 - a 1 1");
  EXPECT_EQ(anomaly("ok 1 0 9 r 1 - a 2 1\nok 2 0 9 r 2 1 a 1 1\n"), "ok");
}

TEST(ListAppend, LongForkIsG2) {
  const std::string writers = "ok 1 0 9 a 1 1\nok 2 0 9 a 2 1\n";
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 1 1 r 2 -\nok 4 0 9 r 1 - r 2 1\n"), "G2");
  EXPECT_EQ(anomaly(writers + "ok 3 0 9 r 1 1 r 2 -\nok 4 0 9 r 1 1 r 2 1\n"), "ok");
}

TEST(ListAppend, AppendsAgainstRealTimeAreG0Realtime) {
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 10 19 a 7 2\nok 3 20 29 r 7 2,1\n"), "G0-realtime");
  EXPECT_EQ(anomaly("ok 1 0 9 a 7 1\nok 2 9 19 a 7 2\nok 3 20 29 r 7 2,1\n"), "ok");
}

TEST(ListAppend, ReadBeforeTheAppendBeganIsG1cRealtime) {
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 1\nok 2 10 19 a 7 1\n"), "G1c-realtime");
  EXPECT_EQ(anomaly("ok 1 0 10 r 7 1\nok 2 10 19 a 7 1\n"), "ok");
  EXPECT_EQ(anomaly("ok 1 0 9 r 7 1\nunknown 2 10 19 a 7 1\n"), "G1c-realtime") << "an invocation has a time too";
}

TEST(ListAppend, LongForkClosedByTimeIsGSingleRealtime) {
  // Two clients see the two appends in opposite orders, each by two reads one after the other.
  const std::string rest = "ok 1 0 90 a 1 1\nok 2 0 90 a 2 1\nok 3 10 19 r 1 1\nok 3 20 29 r 2 -\nok 4 10 19 r 2 1\n";
  EXPECT_EQ(anomaly(rest + "ok 4 20 29 r 1 -\n"), "G-single-realtime");
  EXPECT_EQ(anomaly("ok 1 0 90 a 1 1\nok 2 0 90 a 2 1\nok 3 10 19 r 1 1\nok 3 20 29 r 2 -\nok 4 10 29 r 2 1\n"), "ok");
}

TEST(ListAppend, TwoMissedAppendsClosedByTimeAreG2Realtime) {
  // The transaction in the middle overlaps both of the others, which do not overlap.
  const std::string middle = "ok 1 0 30 a 1 1 r 2 -\n";
  EXPECT_EQ(anomaly(middle + "ok 2 0 9 a 2 1\nok 3 10 19 r 1 -\n"), "G2-realtime");
  EXPECT_EQ(anomaly(middle + "ok 2 0 9 a 2 1\nok 3 9 19 r 1 -\n"), "ok");
}

TEST(ListAppend, UnknownTransactionTookEffectIfItWasSeen) {
  // Its append to key 2 then counts as well: T1 saw the one and missed the other.
  EXPECT_EQ(anomaly("unknown 1 0 9 a 1 1 a 2 1\nok 2 20 29 r 1 1 r 2 -\n"), "G-single");
  EXPECT_EQ(anomaly("unknown 1 0 9 a 1 1 a 2 1\nok 2 20 29 r 1 1\n"), "ok");
  EXPECT_EQ(anomaly("unknown 1 0 9 a 1 1 a 2 1\nok 2 20 29 r 1 - r 2 -\n"), "ok");
  EXPECT_EQ(judge("unknown 1 0 9 a 1 1\nunknown 2 0 9 a 1 2\nok 3 0 9 r 1 2\n").unknown_committed, 1u);
}

TEST(ListAppend, UnknownTransactionMayTakeEffectLongAfterItsClientGaveUp) {
  EXPECT_EQ(anomaly("unknown 1 0 9 a 7 1\nok 2 100 109 r 7 -\nok 2 110 119 r 7 1\n"), "ok");
  EXPECT_EQ(anomaly("unknown 1 0 9 a 7 1\nok 2 100 109 r 7 1\nok 2 110 119 r 7 -\n"), "G-single-realtime")
      << "but not be undone";
}

TEST(ListAppend, ReadsOfASeenUnknownTransactionRevealFurtherOnes) {
  const std::string chain = "unknown 1 0 9 a 1 1 a 9 1\nunknown 2 0 9 r 1 1 a 2 1\n";
  Verdict verdict = judge(chain + "ok 3 0 9 r 2 1\n");
  EXPECT_TRUE(verdict.ok);
  EXPECT_EQ(verdict.unknown_committed, 2u);
  EXPECT_EQ(anomaly(chain + "ok 3 0 9 r 2 1 r 9 -\n"), "G-single");
  EXPECT_EQ(anomaly(chain + "ok 3 0 9 r 9 -\n"), "ok");
}

TEST(ListAppend, ShortestCycleIsTheOneReported) {
  // A ring of five reads of the next one's append, and a short cut from T2 back to T0.
  Verdict verdict = judge(
      "ok 1 0 9 a 0 1 r 4 1\nok 1 0 9 a 1 1 r 0 1\nok 1 0 9 a 2 1 a 9 1 r 1 1\n"
      "ok 1 0 9 a 3 1 r 2 1\nok 1 0 9 a 4 1 r 3 1 r 9 1\nok 1 0 9 a 8 1 r 0 1\n");
  EXPECT_EQ(verdict.anomaly, "G1c");
  EXPECT_THAT(verdict.explanation, testing::Not(HasSubstr("T3")));
  EXPECT_THAT(verdict.explanation, testing::Not(HasSubstr("T5")));
}

TEST(ListAppend, VerdictCountsWhatItChecked) {
  Verdict verdict =
      judge("ok 1 0 9 a 1 1\nfail 1 10 19 a 1 2\nunknown 1 20 29 a 2 3\nok 1 30 39 r 1 1 r 2 3\nfinal 1 1\n");
  ASSERT_TRUE(verdict.ok) << verdict.explanation;
  EXPECT_EQ(to_string(verdict),
            "ok: 5 txns (3 ok, 1 failed, 1 unknown of which 1 took effect), 2 keys, 3 appends, 3 reads, " +
                std::to_string(verdict.edges) + " edges");
  EXPECT_GT(verdict.edges, 0u);
}

}  // namespace
}  // namespace perdure::sim
