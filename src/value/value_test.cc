#include "perdure/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace perdure {
namespace {

using Kind = Value::Kind;
using List = Value::List;
using Map = Value::Map;

// What is not one of a Value's kinds does not turn into one by accident.
static_assert(!std::is_convertible_v<const int*, Value>);
static_assert(!std::is_convertible_v<char, Value>);
static_assert(std::is_nothrow_move_constructible_v<Value>);

/// Nested so deep that the innermost list is the `depth`th.
Value nested(std::size_t depth) {
  Value value = List{};
  for (std::size_t i = 1; i < depth; ++i) value = i % 2 == 0 ? Value(List{value}) : Value(Map{{"k", value}});
  return value;
}

TEST(Value, EveryConstructorGivesItsKind) {
  EXPECT_EQ(Value().kind(), Kind::kNull);
  EXPECT_EQ(Value(nullptr).kind(), Kind::kNull);
  EXPECT_EQ(Value(true).kind(), Kind::kBool);
  EXPECT_EQ(Value(std::uint16_t{7}).kind(), Kind::kInteger);
  EXPECT_EQ(Value(7.0f).kind(), Kind::kDouble);
  EXPECT_EQ(Value("x").kind(), Kind::kText);
  EXPECT_EQ(Value(std::string_view("x")).kind(), Kind::kText);
  EXPECT_EQ(Value(Blob{"x"}).kind(), Kind::kBytes);
  EXPECT_EQ(Value(List{1}).kind(), Kind::kList);
  EXPECT_EQ(Value(Map{{"a", 1}}).kind(), Kind::kMap);
}

TEST(Value, AccessorsGiveNullForAnotherKind) {
  Value value = 7;
  ASSERT_NE(value.as_integer(), nullptr);
  EXPECT_EQ(*value.as_integer(), 7);
  EXPECT_EQ(value.as_double(), nullptr);
  EXPECT_EQ(value.as_bool(), nullptr);
  EXPECT_EQ(value.as_text(), nullptr);
  EXPECT_EQ(value.as_bytes(), nullptr);
  EXPECT_EQ(value.as_list(), nullptr);
  EXPECT_EQ(value.as_map(), nullptr);
  EXPECT_EQ(value.find("a"), nullptr);
}

TEST(Value, UnsignedIntegersThatDoNotFitBecomeTheirDigits) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*Value(kMax).as_integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*Value(kMax + 1).as_text(), "9223372036854775808");
}

TEST(Value, IndexingMakesAMapOutOfNullAndRefusesOtherKinds) {
  Value value;
  value["a"]["b"] = 1;
  EXPECT_EQ(value.to_json(), R"({"a":{"b":1}})");
  EXPECT_EQ(*value.find("a")->find("b"), Value(1));
  EXPECT_EQ(value.find("b"), nullptr);
  EXPECT_THROW(value["a"]["b"]["c"], std::invalid_argument);
}

TEST(Value, EqualityIsThatOfTheBytes) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Value(kNan), Value(kNan));
  EXPECT_EQ(Value(List{kNan}), Value(List{kNan}));
  EXPECT_NE(Value(0.0), Value(-0.0));
  EXPECT_NE(Value(1), Value(1.0));
  EXPECT_NE(Value("a"), Value(Blob{"a"}));
  EXPECT_NE(Value(false), Value());
}

TEST(Value, JsonIsValidWhateverItHolds) {
  EXPECT_EQ(Value(std::nan("")).to_json(), "null");
  EXPECT_EQ(Value(-std::numeric_limits<double>::infinity()).to_json(), "null");
  EXPECT_EQ(Value(1.0).to_json(), "1.0");
  EXPECT_EQ(Value("a\xff\xc3z").to_json(), "\"a\xef\xbf\xbd\xef\xbf\xbdz\"");
  EXPECT_EQ(Value("\x1f\\\t\r").to_json(), R"("\u001f\\\t\r")");
  EXPECT_EQ(Value(Map{{"\"", List{true, Map{}}}}).to_json(), R"({"\"":[true,{}]})");
}

TEST(Value, CheckNamesThePlaceOfWhatIsWrong) {
  EXPECT_TRUE(Value(Map{{"a", List{"é", Blob{"\xff"}}}}).check("it"));
  auto text = Value(Map{{"lines", List{1, "ab\xff"}}}).check("the message");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text.error().message, "the message.lines[1]: text that is not UTF-8 at byte 2");
  auto key = Value(Map{{"a b", Map{{"\xff", 1}}}}).check("it");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().message, "it[\"a b\"]: a key that is not UTF-8 at byte 0");
}

TEST(Value, DepthIsBoundedInCheckAndDecodeAlike) {
  EXPECT_TRUE(nested(Value::kMaxDepth).check("it"));
  EXPECT_EQ(Value::decode(nested(Value::kMaxDepth).encode()).value(), nested(Value::kMaxDepth));
  EXPECT_FALSE(nested(Value::kMaxDepth + 1).check("it"));
  EXPECT_FALSE(Value::decode(nested(Value::kMaxDepth + 1).encode()));
}

}  // namespace
}  // namespace perdure
