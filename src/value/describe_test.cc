#include "perdure/describe.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace perdure {
namespace {

enum class Color : std::uint8_t { kRed = 1, kBlue = 2 };

struct Add {
  std::int64_t by = 1;
  std::vector<std::string> tags;
  PERDURE_DESCRIBE(Add, by, tags)
  bool operator==(const Add&) const = default;
};

struct Ping {
  PERDURE_DESCRIBE(Ping)
};

struct Everything {
  bool truth = false;
  std::uint8_t small = 0;
  std::uint64_t large = 0;
  double number = 0;
  float narrow = 0;
  std::string text;
  Blob bytes;
  Value any;
  std::vector<bool> flags;
  std::map<std::string, Add> adds;
  std::optional<int> maybe = 3;
  std::array<int, 2> pair = {};
  Color color = Color::kRed;
  Add inner;
  PERDURE_DESCRIBE(Everything, truth, small, large, number, narrow, text, bytes, any, flags, adds, maybe, pair, color,
                   inner)
  bool operator==(const Everything&) const = default;
};

struct Wide {
  int a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, a8 = 8, a9 = 9, b0 = 10, b1 = 11, b2 = 12,
      b3 = 13, b4 = 14, b5 = 15, b6 = 16, b7 = 17, b8 = 18, b9 = 19, c0 = 20, c1 = 21, c2 = 22, c3 = 23, c4 = 24,
      c5 = 25, c6 = 26, c7 = 27, c8 = 28, c9 = 29, d0 = 30, d1 = 31, d2 = 32, d3 = 33;
  PERDURE_DESCRIBE(Wide, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3,
                   c4, c5, c6, c7, c8, c9, d0, d1, d2, d3)
};

// Described by its base only, so its own field would be lost.
struct Derived : Add {
  int more = 0;
};

static_assert(Described<Add> && Described<Ping>);
static_assert(!Described<Derived> && !Described<int> && !Described<Value>);
static_assert(described_name<Add>() == "Add");
static_assert(std::is_aggregate_v<Add>);

template <class T>
std::string error_of(const Value& value, UnknownFields unknown = UnknownFields::kRefuse) {
  auto read = from_value<T>(value, unknown);
  if (read) return "no error";
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  return read.error().message;
}

TEST(Describe, StructIsAMapOfItsFields) {
  EXPECT_EQ(to_value(Add{.by = 5, .tags = {"x"}}).to_json(), R"({"by":5,"tags":["x"]})");
  EXPECT_EQ(to_value(Ping{}).to_json(), "{}");
  EXPECT_TRUE(from_value<Ping>(Value::Map{}));
}

TEST(Describe, EveryKindOfFieldRoundTrips) {
  Everything all{.truth = true,
                 .small = 255,
                 .large = std::numeric_limits<std::uint64_t>::max(),
                 .number = -0.5,
                 .narrow = 1.5f,
                 .text = "é",
                 .bytes = Blob{"\xff"},
                 .any = Value::List{1, nullptr},
                 .flags = {true, false},
                 .adds = {{"k", Add{.by = -1, .tags = {}}}},
                 .maybe = std::nullopt,
                 .pair = {1, 2},
                 .color = Color::kBlue,
                 .inner = {.by = 7, .tags = {"t"}}};
  EXPECT_EQ(from_value<Everything>(to_value(all)).value(), all);
  EXPECT_EQ(from_value<Everything>(to_value(Everything{})).value(), Everything{});
}

TEST(Describe, MoreThanThirtyFieldsWork) {
  Value value = to_value(Wide{});
  EXPECT_EQ(value.as_map()->size(), 34u);
  value["d3"] = 99;
  EXPECT_EQ(from_value<Wide>(value)->d3, 99);
}

TEST(Describe, LocalStructsAreDescribedToo) {
  struct Local {
    int n = 4;
    PERDURE_DESCRIBE(Local, n)
  };
  EXPECT_EQ(from_value<Local>(to_value(Local{.n = 9}))->n, 9);
}

TEST(Describe, MissingFieldKeepsTheDefaultOfTheStruct) {
  EXPECT_EQ(from_value<Add>(Value::Map{})->by, 1);
  EXPECT_EQ(from_value<Everything>(Value::Map{})->maybe, 3);
  EXPECT_EQ(from_value<Everything>(Value::Map{{"maybe", nullptr}})->maybe, std::nullopt);
}

TEST(Describe, ErrorNamesThePlaceWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(error_of<Add>(Value::Map{{"by", "x"}}), "Add.by: expected an integer, found text \"x\"");
  EXPECT_EQ(error_of<Add>(Value::Map{{"by", 1.0}}), "Add.by: expected an integer, found double 1.0");
  EXPECT_EQ(error_of<Add>(7), "Add: expected a map, found integer 7");
  EXPECT_EQ(error_of<Add>(Value::Map{{"tags", Value::List{"a", true}}}), "Add.tags[1]: expected text, found true");
  EXPECT_EQ(error_of<Everything>(Value::Map{{"adds", Value::Map{{"a b", Value::Map{{"by", nullptr}}}}}}),
            "Everything.adds[\"a b\"].by: expected an integer, found null");
  EXPECT_EQ(error_of<Everything>(Value::Map{{"pair", Value::List{1}}}),
            "Everything.pair: expected a list of 2 items, found a list of 1");
  EXPECT_EQ(error_of<std::vector<Add>>(Value::List{true}), "the value[0]: expected a map, found true");
}

TEST(Describe, IntegersAreRangeChecked) {
  EXPECT_EQ(error_of<Everything>(Value::Map{{"small", 256}}),
            "Everything.small: expected an integer from 0 to 255, found integer 256");
  EXPECT_EQ(error_of<Everything>(Value::Map{{"large", -1}}),
            "Everything.large: expected an integer from 0 to 18446744073709551615, found integer -1");
  EXPECT_EQ(error_of<std::int8_t>(-129), "the value: expected an integer from -128 to 127, found integer -129");
  EXPECT_EQ(error_of<std::int8_t>(128), "the value: expected an integer from -128 to 127, found integer 128");
  EXPECT_EQ(error_of<std::uint64_t>("9223372036854775807"),
            "the value: expected an integer, found text \"9223372036854775807\"");
  EXPECT_EQ(from_value<std::uint64_t>("9223372036854775808").value(), 9223372036854775808u);
  EXPECT_EQ(error_of<float>(1e300), "the value: expected a number that a float can hold, found double 1e+300");
  EXPECT_EQ(from_value<double>(3).value(), 3.0);
}

TEST(Describe, UnknownFieldsAreRefusedOrIgnored) {
  Value value = Value::Map{{"bz", 1}, {"by", 2}};
  EXPECT_EQ(error_of<Add>(value), "Add has no field bz; it has by, tags");
  EXPECT_EQ(error_of<Ping>(value), "Ping has no field by; it has none");
  EXPECT_EQ(error_of<Everything>(Value::Map{{"inner", value}}),
            "Everything.inner: Add has no field bz; it has by, tags");
  EXPECT_EQ(from_value<Add>(value, UnknownFields::kIgnore)->by, 2);
}

}  // namespace
}  // namespace perdure
