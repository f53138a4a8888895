// The storage on the store, on a node that dies in the middle of a write.
#include <gtest/gtest.h>

#include "perdure/sequence.h"
#include "perdure/testing.h"
#include "sequence/rows.h"
#include "store/system_access.h"

namespace perdure::sequence {
namespace {

using namespace std::chrono_literals;
using testing::Crash;
using testing::Simulation;

/// Numbers that are stored, and the offset.
struct Stored {
  std::size_t numbers;
  LogOffset offset;
};

class PartitionStorageTest : public ::testing::Test {
 protected:
  PartitionStorageTest() {
    sim_.setup([this](Transaction& txn) {
      SystemAccess access(txn);
      PartitionRow row;
      in_txn(txn, row.take({.types = {{"shop", {{"invoice", 1}}}}}));
      txn.set(place_.spec, row.encode());
    });
    sim_.run_for(1ms);
  }
  OwnedPartition own() {
    testing::Node& node = *sim_.node(0);
    auto sequences = std::make_shared<Sequences>(Sequences::open(node.store()).value());
    node.keep(sequences);
    std::optional<OwnedPartition> owner;
    Session::open_async(node.store(), {}, [&](Result<Session> opened) {
      auto session = std::make_shared<Session>(std::move(*opened));
      node.keep(session);
      sequences->own_async(*session, "p", 1s, [&](Result<OwnedPartition> owned) { owner = owned.value(); });
    });
    EXPECT_TRUE(sim_.run_until([&] { return owner.has_value(); }, 5s));
    return *owner;
  }
  Stored stored() {
    return *sim_.read([this](Reader& reader) {
      SystemAccess access(reader);
      return Stored{reader.get_range(tuple::extensions(place_.numbers)).size(), read_number(reader, place_.offset)};
    });
  }

  const Place place_{"default", "p"};
  Simulation sim_{{.store = testing::StoreKind::kEmbedded}};
};

// SEQ-U6: numbers that do not fit in one transaction may be ahead of the offset, and never behind it.
TEST_F(PartitionStorageTest, TheOffsetIsWrittenWithTheLastOfTheNumbers) {
  std::vector<SeqValue> values;
  for (std::uint64_t i = 1; i <= 4'500; ++i) values.push_back({{WorkspaceId{i}, SeqId{0}}, i});
  std::optional<OwnedPartition> owner = own();
  owner->storage()->write(values, 9, [](const Result<void>&) {});
  sim_.crash(0, Crash::kAfterApply);
  sim_.run_for(10s);
  Stored found = stored();
  EXPECT_GT(found.numbers, 0u);
  EXPECT_LT(found.numbers, values.size());
  EXPECT_EQ(found.offset, 0u);

  owner = own();
  bool written = false;
  owner->storage()->write(values, 9, [&](const Result<void>& done) { written = done.has_value(); });
  ASSERT_TRUE(sim_.run_until([&] { return written; }, 10s));
  EXPECT_EQ(stored().numbers, values.size());
  EXPECT_EQ(stored().offset, 9u);
}

}  // namespace
}  // namespace perdure::sequence
