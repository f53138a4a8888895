#include "http/units.h"

#include <gtest/gtest.h>

namespace perdure::http {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsAreReadInEveryFormOfTheContract) {
  struct Case {
    const char* text;
    Duration duration;
  };
  for (const Case& each : {Case{"250ms", 250ms}, Case{"5s", 5s}, Case{"5m", 5min}, Case{"24h", 24h}, Case{"7d", 168h},
                           Case{"1.5s", 1500ms}, Case{"3", 3s}, Case{"0s", 0s}})
    EXPECT_EQ(parse_duration(each.text, "x").value_or(-1s), each.duration) << each.text;
  EXPECT_EQ(read_duration(Value(90), "x").value(), 90s);
  EXPECT_EQ(read_duration(Value(0.25), "x").value(), 250ms);
}

TEST(Units, WhatIsNoDurationIsRefusedWithItsName) {
  for (const char* text : {"", "s", "-5s", "5 s", "5x", "1e3s", "nan", "inf", "99999999999d", "--5s", "5ss"})
    EXPECT_FALSE(parse_duration(text, "'delay'")) << text;
  for (const Value& value : {Value(-1), Value(true), Value(Value::List{}), Value(1e300)})
    EXPECT_FALSE(read_duration(value, "'delay'")) << value.to_json();
  EXPECT_NE(parse_duration("soon", "'delay' of the event").error().message.find("'delay' of the event"),
            std::string::npos);
}

TEST(Units, DurationsAreWrittenInTheShortestExactForm) {
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(5min), "5m");
  EXPECT_EQ(format_duration(24h), "1d");
  EXPECT_EQ(format_duration(25h), "25h");
}

TEST(Units, RatesGoBothWays) {
  for (const char* text : {"10/s", "600/m", "1/h", "5/10s"})
    EXPECT_EQ(format_rate(parse_rate(text, "x").value()), text);
  for (const char* text : {"10", "/s", "0/s", "10/", "-1/s", "10/0s", "10/fortnight"})
    EXPECT_FALSE(parse_rate(text, "x")) << text;
}

TEST(Units, NumbersThatJsonReadersWouldRoundAreText) {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  EXPECT_EQ(number_value(kExact).to_json(), "9007199254740992");
  EXPECT_EQ(number_value(kExact + 1).to_json(), "\"9007199254740993\"");
}

TEST(Units, VersionsSortAsTheirTextDoes) {
  EXPECT_LT(format_version({9}), format_version({16}));
  EXPECT_EQ(parse_version(format_version({77})).value(), Version{77});
  for (const char* text : {"", "77", "000000000000004G", "+00000000000004d"}) EXPECT_FALSE(parse_version(text)) << text;
}

}  // namespace
}  // namespace perdure::http
