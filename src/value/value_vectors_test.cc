// The tables of docs/internals/value_format.md, read from the page itself, against the code.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "perdure/value.h"

namespace perdure {
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
  std::ifstream page(PERDURE_SOURCE_DIR "/docs/internals/value_format.md");
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

/// Every vector again, written as a user writes it.
std::vector<Value> by_hand() {
  using List = Value::List;
  using Map = Value::Map;
  return {
      nullptr,
      false,
      true,
      0,
      std::int8_t{-1},
      1u,
      63,
      -64,
      64,
      std::numeric_limits<std::int64_t>::max(),
      std::numeric_limits<std::int64_t>::min(),
      0.0,
      -0.0,
      1.5f,
      1e300,
      "",
      "a"sv,
      std::string("é"),
      "\0\n\""sv,
      std::numeric_limits<std::uint64_t>::max(),
      Blob{},
      Blob{"\xff"},
      Blob{Bytes("\0\1"sv)},
      Blob{"foo"},
      List{},
      List{nullptr, List{true}},
      Map{},
      Map{{"", 0}},
      Map{{"b", List{}}, {"a", 1}, {"aa", "x"}},
  };
}

TEST(ValueVectors, EncodeWritesTheDocumentedBytes) {
  auto rows = table("Test vectors");
  auto values = by_hand();
  ASSERT_EQ(rows.size(), values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(values[i].to_json(), rows[i].left);
    EXPECT_EQ(printable(values[i].encode()), printable(from_hex(rows[i].right))) << rows[i].left;
    EXPECT_EQ(values[i].encoded_size(), from_hex(rows[i].right).size()) << rows[i].left;
  }
}

TEST(ValueVectors, DocumentedBytesDecodeToTheValue) {
  auto rows = table("Test vectors");
  auto values = by_hand();
  ASSERT_EQ(rows.size(), values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto value = Value::decode(from_hex(rows[i].right));
    ASSERT_TRUE(value) << rows[i].left << ": " << to_string(value.error());
    EXPECT_TRUE(*value == values[i]) << rows[i].left;
  }
}

TEST(ValueVectors, DocumentedJsonIsReadAsTheValue) {
  auto rows = table("Test vectors");
  auto values = by_hand();
  ASSERT_EQ(rows.size(), values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto value = Value::from_json(rows[i].left);
    ASSERT_TRUE(value) << rows[i].left << ": " << to_string(value.error());
    EXPECT_TRUE(*value == values[i]) << rows[i].left;
  }
}

TEST(ValueVectors, JsonIsReadAndWrittenAgainAsDocumented) {
  for (const Row& row : table("As JSON")) {
    auto value = Value::from_json(row.left);
    ASSERT_TRUE(value) << row.left << ": " << to_string(value.error());
    EXPECT_EQ(value->to_json(), row.right);
    EXPECT_TRUE(Value::from_json(row.right) == *value) << row.right;
  }
}

TEST(ValueVectors, WhatIsDocumentedAsRefusedIsRefusedWithItsOffset) {
  for (const Row& row : table("Refused")) {
    auto value = Value::decode(from_hex(row.left));
    ASSERT_FALSE(value) << row.left << " was read as " << value->to_json();
    EXPECT_EQ(value.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(value.error().message.ends_with(": " + row.right)) << row.left << ": " << value.error().message;
  }
}

}  // namespace
}  // namespace perdure
