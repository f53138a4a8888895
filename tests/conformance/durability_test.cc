// What outlives the handle, where the engine says that it keeps things.
#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

TEST_P(Conformance, ContentsOutliveTheHandle) {
  if (!capabilities().durable) GTEST_SKIP() << "nothing of this engine outlives its handle";
  set("a", "1");
  set("b", "2");
  clear("a");
  must(store().transact([](Transaction& txn) { txn.add("n", 3); }));
  reopen();
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_EQ(get("b"), "2");
  EXPECT_EQ(counter("n"), 3);
}

TEST_P(Conformance, VersionsGoOnGrowingAfterReopening) {
  if (!capabilities().durable) GTEST_SKIP() << "nothing of this engine outlives its handle";
  Version last;
  for (int i = 0; i < 4; ++i) {
    Receipt receipt;
    must(store().transact([](Transaction& txn) { txn.set("a", "1"); }, {}, &receipt));
    EXPECT_GT(receipt.version, last);
    last = receipt.version;
    EXPECT_EQ(range({}).at(0).version, last);
    reopen();
    EXPECT_EQ(range({}).at(0).version, last);
  }
}

TEST_P(Conformance, VersionOfAClearedRowIsNotGivenOutAgain) {
  if (!capabilities().durable) GTEST_SKIP() << "nothing of this engine outlives its handle";
  Receipt receipt;
  must(store().transact([](Transaction& txn) { txn.clear("never there"); }, {}, &receipt));
  reopen();
  Receipt next;
  must(store().transact([](Transaction& txn) { txn.set("a", "1"); }, {}, &next));
  EXPECT_GT(next.version, receipt.version);
}

TEST_P(Conformance, ReopenedStoreCommitsWatchesAndVerifies) {
  if (!capabilities().durable) GTEST_SKIP() << "nothing of this engine outlives its handle";
  for (int i = 0; i < 3; ++i) {
    Watch changed = watch("a");
    set("a", std::to_string(i));
    EXPECT_TRUE(changed.wait(kSoon));
    EXPECT_TRUE(must(store().verify()).ok());
    reopen();
    EXPECT_EQ(get("a"), std::to_string(i));
  }
}

}  // namespace
}  // namespace perdure::conformance
