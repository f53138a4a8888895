// What the feed of changes tells of partitions.
#include <gmock/gmock.h>

#include "perdure/sequence.h"
#include "session/changes_test_text.h"

namespace perdure::sequence {
namespace {

using ::testing::ElementsAre;

class SequenceChanges : public ::testing::Test {
 protected:
  SequenceChanges() { EXPECT_TRUE(sequences.set("p", {.types = {{"shop", {{"invoice", 1}}}}})); }

  Store store = store_with_feed();
  Sequences sequences = *Sequences::open(store);
};

TEST_F(SequenceChanges, AnAppendIsToldOfOnceWhateverItHas) {
  Append sale{"shop", 7, {"invoice", "invoice"}, {}};
  ASSERT_TRUE(sequences.append("p", sale));
  ASSERT_TRUE(sequences.append_many("p", {sale, sale, sale}));
  EXPECT_THAT(all_changes(store),
              ElementsAre("partition p set", "partition p appended x1 +1", "partition p appended x3 +4"));
}

TEST_F(SequenceChanges, WhatAnOwnerWritesIsToldOf) {
  Session session = *Session::open(store);
  OwnedPartition owner = sequences.own(session, "p").value();
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    owner.write(txn, 1, {.kind = owner.kind("shop").value(), .workspace = WorkspaceId{7}});
  }));
  EXPECT_THAT(all_changes(store), ElementsAre("partition p set", "partition p appended x1 +1"));
}

}  // namespace
}  // namespace perdure::sequence
