#include <gtest/gtest.h>

#include <set>

#include "base/endian.h"
#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/version.h"

namespace perdure {
namespace {

TEST(ErrorTable, EveryCodeHasItsOwnNameAndAdvice) {
  std::set<std::string_view> names;
  for (const ErrorInfo& row : error_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.advice.empty()) << row.name;
    EXPECT_EQ(&info(row.code), &row);
  }
}

TEST(ErrorTable, OnlyAnUnknownCommitAndALateReplyHaveAnUnknownOutcome) {
  for (const ErrorInfo& row : error_table()) {
    bool unknown = row.code == ErrorCode::kCommitUnknown || row.code == ErrorCode::kReplyTimeout;
    EXPECT_EQ(row.outcome == Outcome::kUnknown, unknown) << row.name;
  }
}

TEST(Bytes, PrintableEscapesWhatIsNotAsciiAndCutsLongOnes) {
  EXPECT_EQ(printable(std::string_view("a\0\xff\\", 4)), "a\\x00\\xff\\x5c");
  EXPECT_EQ(printable("abcdef", 3), "abc... (6 bytes)");
}

TEST(Endian, BigEndianSortsAsTheNumbersDo) {
  char low[8], high[8];
  store_big<std::uint64_t>(low, 0x01ff);
  store_big<std::uint64_t>(high, 0x0200);
  EXPECT_LT(std::string_view(low, 8), std::string_view(high, 8));
  EXPECT_EQ(load_big<std::uint64_t>(high), 0x0200u);
  char byte[1];
  store_big<std::uint8_t>(byte, 0xab);
  EXPECT_EQ(load_big<std::uint8_t>(byte), 0xab);
}

TEST(Stamp, EncodingSortsByVersionThenOrderAndRoundTrips) {
  Stamp early{Version{1}, 0xffffffff}, late{Version{2}, 0};
  auto early_bytes = early.encode(), late_bytes = late.encode();
  EXPECT_LT(early_bytes, late_bytes);
  EXPECT_EQ(Stamp::decode(BytesView(early_bytes.data(), early_bytes.size())), early);
  EXPECT_EQ(Stamp::decode("short"), std::nullopt);
}

}  // namespace
}  // namespace perdure
