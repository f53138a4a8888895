// What is not the rows of a state is refused, with the key: changes() trusts what read_state() gives.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "actor/state_codec.h"
#include "actor/state_model.h"
#include "perdure/tuple.h"

namespace perdure::actor {
namespace {

using List = Value::List;
using Map = Value::Map;

const Bytes kMap = "\x10";
const Bytes kItems = "\x11";

/// The path below the prefix and the value of a row.
using Rows = std::vector<std::pair<tuple::Tuple, Bytes>>;

std::string read(const Rows& rows) {
  std::vector<Row> all;
  for (const auto& [path, value] : rows)
    all.push_back({StateModel::prefix() + tuple::pack(path).value(), value, Version{}});
  auto state = read_state(StateModel::prefix(), all);
  if (state) return state->value.to_json();
  EXPECT_EQ(state.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(state.error().message.starts_with("the state row \\x02s\\x00\\x02a\\x00")) << state.error().message;
  return state.error().message;
}

testing::AssertionResult refused(const Rows& rows, const std::string& why) {
  std::string what = read(rows);
  if (what.find(": " + why) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << what;
}

TEST(StateCodecRefuses, NoRowsAreNoState) {
  EXPECT_EQ(read_state(StateModel::prefix(), {}).error().code, ErrorCode::kNotFound);
}

TEST(StateCodecRefuses, RowsOutOfPlace) {
  Bytes one = Value(1).encode();
  EXPECT_EQ(read({{{}, kMap}, {{"a"}, one}}), R"({"a":1})");
  EXPECT_TRUE(refused({{{"a"}, one}}, "the row of the state itself is missing"));
  EXPECT_TRUE(refused({{{}, one}, {{"a"}, one}}, "a row that belongs to no part"));
  EXPECT_TRUE(refused({{{}, kMap}, {{"a", "b"}, one}}, "a row that belongs to no part"));
  EXPECT_TRUE(refused({{{}, kMap}, {{7}, one}}, "a row that belongs to no part"));
  EXPECT_TRUE(refused({{{}, kMap}, {{"a"}, one}, {{"a", 0}, one}}, "a row that belongs to no part"));
}

TEST(StateCodecRefuses, ValuesThatAreNone) {
  EXPECT_TRUE(refused({{{}, ""}}, "no value"));
  EXPECT_TRUE(refused({{{}, "\x7f"}}, "not an encoded value"));
  EXPECT_TRUE(refused({{{}, kMap + "x"}}, "more bytes than a marker has"));
  EXPECT_TRUE(refused({{{}, Value(std::string(kChunkBytes, 'x')).encode()}}, "a value too large for one row"));
}

TEST(StateCodecRefuses, ValuesInAnotherFormThanTheirs) {
  EXPECT_TRUE(refused({{{}, Value(Map{{"a", 1}}).encode()}}, "a map or list that is not in rows of its own"));
  EXPECT_TRUE(refused({{{}, Value(List{}).encode()}}, "a map or list that is not in rows of its own"));
  EXPECT_TRUE(refused({{{}, kMap}, {{std::string(475, 'k')}, "\x01"}}, "a row that belongs to no part"));
}

TEST(StateCodecRefuses, ItemsThatAreNone) {
  Bytes item = "\x01\x80" + kMap;
  EXPECT_EQ(read({{{}, kItems}, {{"a"}, item}}), R"([{"id":"a"}])");
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, kMap}}, "an item without a proper order key"));
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, Bytes("\x01\x00\x10", 3)}}, "an item without a proper order key"));
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, "\x41" + Bytes(65, 'x') + kMap}}, "an item without a proper order key"));
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, item}, {{"b"}, item}}, "a list in which two items have one order key"));
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, "\x01\x80" + kItems}}, "an item that is not a map"));
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, item}, {{"a", "id"}, "\x01"}}, "the id of an item"));
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, "\x01\x80\x01"}}, "an item with another id than its key"));
  Value other = Map{{"id", "b"}, {std::string(480, 'k'), 1}};
  EXPECT_TRUE(refused({{{}, kItems}, {{"a"}, "\x01\x80" + other.encode()}}, "an item with another id than its key"));
}

TEST(StateCodecRefuses, ChunksThatDoNotFit) {
  Bytes header = "\x12\xa1\x8d\x06";  // 100,001 bytes.
  Bytes text = Value(std::string(kChunkBytes - 3, 'x')).encode();
  Bytes first = text.substr(0, kChunkBytes);
  EXPECT_EQ(read({{{}, header}, {{0}, first}, {{1}, "x"}}).size(), kChunkBytes - 1);
  EXPECT_TRUE(refused({{{}, header}, {{0}, first}}, "a chunk that is missing"));
  EXPECT_TRUE(refused({{{}, header}, {{1}, "x"}}, "a chunk that is missing"));
  EXPECT_TRUE(refused({{{}, header}, {{0}, first}, {{1}, "xy"}}, "a chunk of the wrong size"));
  EXPECT_TRUE(refused({{{}, header}, {{0}, first}, {{1}, "x"}, {{2}, "x"}}, "a row that belongs to no part"));
  EXPECT_TRUE(refused({{{}, "\x12\x10"}, {{0}, first}}, "a size of chunks that cannot be"));
  EXPECT_TRUE(refused({{{}, "\x12\xff\xff\xff\xff\x7f"}}, "a size of chunks that cannot be"));
}

TEST(StateCodecRefuses, RowsThatAreNestedTooDeep) {
  Rows rows;
  tuple::Tuple path;
  for (std::size_t i = 0; i <= Value::kMaxDepth; ++i) {
    rows.emplace_back(path, kMap);
    path.emplace_back("k");
  }
  EXPECT_TRUE(refused(rows, "lists and maps nested more than 64 deep"));
  rows.pop_back();
  EXPECT_TRUE(read(rows).starts_with("{"));
}

}  // namespace
}  // namespace perdure::actor
