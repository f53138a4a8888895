#include <gtest/gtest.h>

#include <array>

#include "queue/rows.h"

namespace perdure::queue {
namespace {

TEST(QueueRows, ClaimsOfAnyIdAreReadBack) {
  HeldClaims held{"default", {}};
  for (auto first : std::to_array<std::uint8_t>({0x00, 0x01, 0x7f, 0xff})) {
    Uuid id;
    id.bytes.fill(first);
    held.ids.insert(held.ids.begin(), id);
    auto read = HeldClaims::decode(held.encode());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->space, "default");
    EXPECT_EQ(read->ids, held.ids);
  }
}

TEST(QueueRows, RecordsOfValuesOfAnySizeAreReadBack) {
  for (std::size_t size = 0; size < 600; ++size) {
    RecordBlock block;
    Value value = std::string(size, 'x');
    for (std::size_t i = 0; i < 2; ++i) {
      AttemptRecord record;
      record.error = "why";
      block.add(record, value.encode(), Value(size + i).encode());
    }
    auto read = RecordBlock::decode(block.encode());
    ASSERT_TRUE(read) << size;
    auto records = read->records();
    ASSERT_EQ(records.size(), 2U) << size;
    EXPECT_EQ(records[1].value, value);
    EXPECT_EQ(records[1].result, Value(size + 1));
    EXPECT_EQ(records[1].error, "why");
  }
}

}  // namespace
}  // namespace perdure::queue
