#include "perdure/uuid.h"

#include <gtest/gtest.h>

namespace perdure {
namespace {

TEST(Uuid, TextRoundTripsInLowerCase) {
  auto uuid = Uuid::parse("F81D4FAE-7dec-11d0-a765-00A0C91E6BF6");
  ASSERT_TRUE(uuid);
  EXPECT_EQ(uuid->bytes[0], 0xf8);
  EXPECT_EQ(uuid->bytes[15], 0xf6);
  EXPECT_EQ(to_string(*uuid), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
  EXPECT_EQ(to_string(Uuid{}), "00000000-0000-0000-0000-000000000000");
}

TEST(Uuid, SortsAsItsText) {
  auto low = Uuid::parse("00000000-0000-0000-0000-0000000000ff").value();
  auto high = Uuid::parse("80000000-0000-0000-0000-000000000000").value();
  EXPECT_LT(low, high);
}

TEST(Uuid, AnyOtherTextIsRefused) {
  for (const char* text :
       {"", "f81d4fae", "f81d4fae-7dec-11d0-a765-00a0c91e6bf", "f81d4fae-7dec-11d0-a765-00a0c91e6bf60",
        "f81d4fae07dec-11d0-a765-00a0c91e6bf6", "g81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "{81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae-7dec-11d0-a76-500a0c91e6bf6"}) {
    auto uuid = Uuid::parse(text);
    ASSERT_FALSE(uuid) << text;
    EXPECT_EQ(uuid.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(uuid.error().message, std::string("not a uuid: \"") + text + "\"");
  }
}

}  // namespace
}  // namespace perdure
