#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace perdure {
namespace {

using namespace std::chrono_literals;

WallTime at(Duration since) {
  return WallTime(since);
}

TEST(Rfc3339, TimesAreWrittenInUtcWithMilliseconds) {
  EXPECT_EQ(format_rfc3339(at(0s)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(at(951'782'400s + 1'999'999ns)), "2000-02-29T00:00:00.001Z");
  EXPECT_EQ(format_rfc3339(at(-1ns)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_rfc3339(WallTime::max()), "2262-04-11T23:47:16.854Z");
}

TEST(Rfc3339, WhatIsWrittenIsReadBack) {
  for (Duration since : {0ms, 250ms, 1'700'000'000'123ms, -1ms, -86'400'000ms})
    EXPECT_EQ(parse_rfc3339(format_rfc3339(at(since))).value(), at(since));
}

TEST(Rfc3339, FractionsAndOffsetsAreRead) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:01Z").value(), at(1s));
  EXPECT_EQ(parse_rfc3339("1970-01-01t00:00:00.5z").value(), at(500ms));
  EXPECT_EQ(parse_rfc3339("1970-01-01 00:00:00.1234567899Z").value(), at(123'456'789ns));
  EXPECT_EQ(parse_rfc3339("1970-01-01T02:30:00+02:30").value(), at(0s));
  EXPECT_EQ(parse_rfc3339("1969-12-31T23:00:00-01:00").value(), at(0s));
  EXPECT_EQ(parse_rfc3339("2016-12-31T23:59:60Z").value(), parse_rfc3339("2017-01-01T00:00:00Z").value());
}

TEST(Rfc3339, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"", "now", "1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-02-30T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z", "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00Z ", "1970-01-01T00:00:00+25:00", "1970-01-01T00:00:00+0100", "0001-01-01T00:00:00Z",
        "9999-01-01T00:00:00Z", "1970-1-01T00:00:00Z", "-970-01-01T00:00:00Z"})
    EXPECT_EQ(parse_rfc3339(text).error().code, ErrorCode::kInvalidArgument) << text;
}

}  // namespace
}  // namespace perdure
