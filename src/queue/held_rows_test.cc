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
    AttemptRecord record;
    record.value = std::string(size, 'x');
    record.result = size;
    record.error = "why";
    auto read = decode_record(encode_record(record));
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(read->value, record.value);
    EXPECT_EQ(read->result, record.result);
    EXPECT_EQ(read->error, "why");
  }
}

}  // namespace
}  // namespace perdure::queue
