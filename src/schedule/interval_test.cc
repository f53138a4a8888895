#include "schedule/interval.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  auto interval = Interval::parse(text);
  if (interval) return "no error";
  EXPECT_EQ(interval.error().code, ErrorCode::kInvalidArgument);
  return interval.error().message;
}

// DARK-U11
TEST(IntervalSyntax, TheSixOfTheSeedInAnyCase) {
  struct {
    const char* written;
    const char* name;
    Duration every;
  } known[] = {{"Daily", "Daily", 24h},
               {"WEEKLY", "Weekly", 168h},
               {"fortnightly", "Fortnightly", 336h},
               {"every 12HRS", "Every 12hrs", 12h},
               {"Every 1hr", "Every 1hr", 1h},
               {"eVERY 1MIN", "Every 1min", 1min}};
  for (const auto& one : known) {
    auto interval = Interval::parse(one.written);
    ASSERT_TRUE(interval) << one.written;
    EXPECT_EQ(interval->name(), one.name);
    EXPECT_EQ(interval->every(), one.every);
  }
}

TEST(IntervalSyntax, NumbersWithAUnit) {
  EXPECT_EQ(Interval::parse("90s")->every(), 90s);
  EXPECT_EQ(Interval::parse("15m")->every(), 15min);
  EXPECT_EQ(Interval::parse("2h")->every(), 2h);
  EXPECT_EQ(Interval::parse("3653d")->every(), 3653 * 24h);
  EXPECT_EQ(Interval::parse("90s")->name(), "90s");
}

TEST(IntervalSyntax, AllElseIsRefused) {
  EXPECT_EQ(
      error_of("Hourly"),
      "the interval \"Hourly\" is not known; allowed are Daily, Weekly, Fortnightly, Every 12hrs, Every 1hr, Every "
      "1min, and numbers with a unit like 90s, 15m, 2h or 3d");
  for (const char* text : {"", "5", "s", "5 m", "-5m", "1.5h", "5M", "Every 2hrs", " Daily", "5ms", "1h30m"})
    EXPECT_THAT(error_of(text), HasSubstr("is not known")) << text;
  EXPECT_THAT(error_of("0s"), HasSubstr("no time at all"));
  EXPECT_THAT(error_of("3654d"), HasSubstr("the longest is 3653d"));
  EXPECT_THAT(error_of("999999999d"), HasSubstr("too long"));
  EXPECT_THAT(error_of("99999999999999999999999s"), HasSubstr("too long"));
}

// DARK-B8
TEST(IntervalTimes, AreMultiplesFromTheFirst) {
  Interval minute = *Interval::parse("Every 1min");
  WallTime first = at("2026-01-01 00:00:30");
  EXPECT_EQ(minute.next(first - 1s, first), first);
  EXPECT_EQ(minute.next(first, first), first + 1min);
  EXPECT_EQ(minute.next(first + 59s, first), first + 1min);
  // Late by more than one, it goes on at the same second of the minute.
  EXPECT_EQ(minute.next(first + 125s, first), first + 3min);
  EXPECT_EQ(minute.next(WallTime::max() - 30s, first), std::nullopt);
  EXPECT_EQ(minute.count(first - 1s, first, first), 1U);
  EXPECT_EQ(minute.count(first, first, first), 0U);
  EXPECT_EQ(minute.count(first, first + 125s, first), 2U);
  EXPECT_EQ(minute.count(first - 1h, first - 1s, first), 0U);
}

TEST(IntervalTimes, CountIsHowOftenNextComes) {
  EXPECT_TRUE(rc::check([] {
    Interval interval = *Interval::parse(std::to_string(*rc::gen::inRange(1, 100)) + "s");
    WallTime first(std::chrono::seconds(*rc::gen::inRange(0, 1000)));
    WallTime after(std::chrono::seconds(*rc::gen::inRange(0, 2000)));
    WallTime until = after + std::chrono::seconds(*rc::gen::inRange(0, 2000));
    std::uint64_t count = 0;
    for (auto next = interval.next(after, first); *next <= until; next = interval.next(*next, first)) ++count;
    RC_ASSERT(interval.count(after, until, first) == count);
  }));
}

}  // namespace
}  // namespace perdure::schedule
