// The tables of docs/internals/tuple_format.md, read from the page itself, against the code.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perdure/tuple.h"

namespace perdure::tuple {
namespace {

using namespace std::string_view_literals;

struct Row {
  std::string left;
  std::string right;
};

/// A cell without the spaces and the backquotes around what it says.
std::string cell_text(std::string_view cell) {
  auto first = cell.find_first_not_of(" `");
  if (first == std::string_view::npos) return {};
  return std::string(cell.substr(first, cell.find_last_not_of(" `") - first + 1));
}

/// The rows of the table with two columns under the heading "## `title`".
std::vector<Row> table(std::string_view title) {
  std::ifstream page(PERDURE_SOURCE_DIR "/docs/internals/tuple_format.md");
  EXPECT_TRUE(page.is_open());
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line.substr(3) == title;
    if (!inside || !line.starts_with("| `")) continue;
    auto middle = line.find(" |", 2);
    rows.push_back(
        {cell_text(line.substr(1, middle - 1)), cell_text(line.substr(middle + 2, line.size() - middle - 3))});
  }
  EXPECT_FALSE(rows.empty()) << title;
  return rows;
}

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 3)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

/// Every vector again, written as a user of pack() writes it.
std::map<std::string, Bytes> packed_by_hand() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  constexpr Stamp kStamp{Version{0x0102030405060708}, 9};
  auto big = [](Sign sign, std::size_t size) {
    return Integer::from_magnitude(sign, "\x01" + Bytes(size - 1, '\0')).value();
  };
  return {
      {"()", pack()},
      {"(null)", pack(null)},
      {"(null, null)", pack(null, null)},
      {"(null, b\"\")", pack(null, BlobView{})},
      {"(b\"\")", pack(BlobView{""})},
      {"(b\"\", null)", pack(Blob{""}, null)},
      {"(b\"\\x00\")", pack(BlobView{"\0"sv})},
      {"(b\"\\x00\\x00\")", pack(BlobView{"\0\0"sv})},
      {"(b\"\\x00\\xff\")", pack(BlobView{"\0\xff"sv})},
      {"(b\"\\x01\")", pack(BlobView{"\x01"})},
      {"(b\"foo\\x00bar\")", pack(BlobView{"foo\0bar"sv})},
      {"(b\"\\xff\")", pack(BlobView{"\xff"})},
      {"(\"\")", pack("")},
      {"(\"a\")", pack(std::string("a"))},
      {"(\"a\", null)", pack("a", null)},
      {"(\"a\", 1)", pack("a"sv, 1)},
      {"(\"a\\x00\")", pack("a\0"sv)},
      {"(\"aa\")", pack("aa")},
      {"(\"events\", \"mail\", 7)", pack("events", "mail", 7)},
      {"(\"é\")", pack("é")},
      {"(\"🦆\")", pack("🦆")},
      {"(())", pack(nested())},
      {"((), 1)", pack(nested(), 1)},
      {"((null))", pack(nested(null))},
      {"((null, null))", pack(nested(null, null))},
      {"((b\"foo\\x00bar\", null, ()))", pack(nested(BlobView{"foo\0bar"sv}, null, nested()))},
      {"((1), 2)", pack(nested(1), 2)},
      {"((1, 2))", pack(nested(1, 2))},
      {"(-0x01000000000000000000)", pack(big(Sign::kNegative, 10))},
      {"(-0x010000000000000000)", pack(big(Sign::kNegative, 9))},
      {"(-0xffffffffffffffff)", pack(Integer::from_magnitude(Sign::kNegative, Bytes(8, '\xff')).value())},
      {"(-9223372036854775808)", pack(std::numeric_limits<std::int64_t>::min())},
      {"(-5551212)", pack(-5551212)},
      {"(-256)", pack(-256)},
      {"(-255)", pack(std::int16_t{-255})},
      {"(-1)", pack(std::int8_t{-1})},
      {"(0)", pack(0u)},
      {"(1)", pack(1ll)},
      {"(255)", pack(std::uint8_t{255})},
      {"(256)", pack(Integer(256))},
      {"(9223372036854775807)", pack(std::numeric_limits<std::int64_t>::max())},
      {"(18446744073709551615)", pack(kMax)},
      {"(0x010000000000000000)", pack(big(Sign::kPositive, 9))},
      {"(nan:fff8000000000000)", pack(std::copysign(kNan, -1.0))},
      {"(-inf)", pack(-kInf)},
      {"(-1.5)", pack(-1.5)},
      {"(-5e-324)", pack(-kTiny)},
      {"(-0.0)", pack(-0.0)},
      {"(0.0)", pack(0.0)},
      {"(5e-324)", pack(kTiny)},
      {"(1.5)", pack(1.5f)},
      {"(inf)", pack(kInf)},
      {"(nan:7ff8000000000000)", pack(kNan)},
      {"(false)", pack(false)},
      {"(true)", pack(true)},
      {"(uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6)",
       pack(Uuid::parse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6").value())},
      {"(stamp:72623859790382856/9)", pack(kStamp)},
      {"(stamp:72623859790382856/9, \"mail\")", pack(kStamp, "mail")},
  };
}

TEST(TupleVectors, PackWritesTheDocumentedBytes) {
  auto by_hand = packed_by_hand();
  for (const Row& row : table("Test vectors")) {
    auto found = by_hand.extract(row.left);
    ASSERT_FALSE(found.empty()) << row.left << " is documented but not packed by this test";
    EXPECT_EQ(printable(found.mapped()), printable(from_hex(row.right))) << row.left;
  }
  for (const auto& [left, bytes] : by_hand) ADD_FAILURE() << left << " is packed by this test but not documented";
}

TEST(TupleVectors, DocumentedBytesUnpackToTheTupleAndBack) {
  for (const Row& row : table("Test vectors")) {
    auto tuple = unpack(from_hex(row.right));
    ASSERT_TRUE(tuple) << row.left << ": " << to_string(tuple.error());
    EXPECT_EQ(to_string(*tuple), row.left);
    EXPECT_EQ(printable(pack(*tuple).value()), printable(from_hex(row.right))) << row.left;
  }
}

TEST(TupleVectors, DocumentedBytesAscend) {
  auto rows = table("Test vectors");
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_LT(from_hex(rows[i - 1].right), from_hex(rows[i].right)) << rows[i - 1].left << " and " << rows[i].left;
}

TEST(TupleVectors, WhatIsDocumentedAsRefusedIsRefusedWithItsOffset) {
  for (const Row& row : table("Refused")) {
    auto tuple = unpack(from_hex(row.left));
    ASSERT_FALSE(tuple) << row.left << " was read as " << to_string(*tuple);
    EXPECT_EQ(tuple.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(tuple.error().message.ends_with(": " + row.right)) << row.left << ": " << tuple.error().message;
  }
}

}  // namespace
}  // namespace perdure::tuple
