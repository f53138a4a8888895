// What may stand in a cron expression, and what is said of one that may not.
#include "schedule/cron.h"

#include <gmock/gmock.h>

#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

using ::testing::HasSubstr;
using Times = std::vector<std::string>;

/// In UTC, after the first moment of 2026, a Thursday.
Times in_2026(const std::string& expression, int count = 3) {
  return fires(expression, "UTC", "2026-01-01 00:00", count);
}

std::string error_of(const std::string& expression) {
  auto cron = Cron::parse(expression);
  if (cron) return "no error";
  EXPECT_EQ(cron.error().code, ErrorCode::kInvalidArgument);
  return cron.error().message;
}

bool same(const std::string& one, const std::string& other) {
  auto a = Cron::parse(one), b = Cron::parse(other);
  EXPECT_TRUE(a && b) << one << " and " << other;
  return a && b && *a == *b;
}

// DARK-36: what a schedule is due at.

TEST(CronSyntax, StarsFireEachMinute) {
  EXPECT_EQ(in_2026("* * * * *"), (Times{"2026-01-01 00:01", "2026-01-01 00:02", "2026-01-01 00:03"}));
  EXPECT_EQ(fires("* * * * *", "UTC", "2026-01-01 00:00:01", 1), Times{"2026-01-01 00:01"});
  EXPECT_EQ(fires("* * * * *", "UTC", "2026-01-01 00:00:59", 1), Times{"2026-01-01 00:01"});
}

TEST(CronSyntax, NumbersListsRangesAndSteps) {
  EXPECT_EQ(in_2026("30 6 * * *"), (Times{"2026-01-01 06:30", "2026-01-02 06:30", "2026-01-03 06:30"}));
  EXPECT_EQ(in_2026("5,35 6 * * *"), (Times{"2026-01-01 06:05", "2026-01-01 06:35", "2026-01-02 06:05"}));
  EXPECT_EQ(in_2026("0 22-23 * * *"), (Times{"2026-01-01 22:00", "2026-01-01 23:00", "2026-01-02 22:00"}));
  EXPECT_EQ(in_2026("*/25 0 * * *"), (Times{"2026-01-01 00:25", "2026-01-01 00:50", "2026-01-02 00:00"}));
  EXPECT_EQ(in_2026("10-30/10 3 * * *"), (Times{"2026-01-01 03:10", "2026-01-01 03:20", "2026-01-01 03:30"}));
  EXPECT_EQ(in_2026("40/10 3 * * *"), (Times{"2026-01-01 03:40", "2026-01-01 03:50", "2026-01-02 03:40"}));
  EXPECT_EQ(in_2026("0 0 1 1-3,12 *", 4),
            (Times{"2026-02-01 00:00", "2026-03-01 00:00", "2026-12-01 00:00", "2027-01-01 00:00"}));
  EXPECT_TRUE(same("1,2-4,10-14/2 * * * *", "1,2,3,4,10,12,14 * * * *"));
}

TEST(CronSyntax, NamesInAnyCase) {
  EXPECT_TRUE(same("0 0 * JAN,feb,Mar,apr,may,jun,jul,aug,sep,oct,nov *", "0 0 * 1-11 *"));
  EXPECT_TRUE(same("0 0 * dec sun,MON,tue,wed,thu,fri,Sat", "0 0 * 12 0-6"));
  EXPECT_TRUE(same("0 0 * * mon-fri", "0 0 * * 1-5"));
  EXPECT_TRUE(same("0 0 * * mon-fri/2", "0 0 * * 1,3,5"));
}

TEST(CronSyntax, SundayIsZeroAndSeven) {
  EXPECT_TRUE(same("0 0 * * 7", "0 0 * * 0"));
  EXPECT_TRUE(same("0 0 * * 5-7", "0 0 * * 0,5,6"));
  EXPECT_TRUE(same("0 0 * * fri-sun", "0 0 * * 0,5,6"));
  EXPECT_TRUE(same("0 0 * * sun-mon", "0 0 * * 0,1"));
  EXPECT_TRUE(same("0 0 * * sun-sun", "0 0 * * 0"));
  EXPECT_TRUE(same("0 0 * * 0-7", "0 0 * * 0-6"));
  // Every second day from Sunday on, not Sunday once more as the seventh.
  EXPECT_TRUE(same("0 0 2 * 0/2", "0 0 2 * 0,2,4,6"));
  EXPECT_TRUE(same("0 0 2 * 1/3", "0 0 2 * 1,4"));
  EXPECT_FALSE(same("0 0 2 * */7", "0 0 */1 * */7"));
  EXPECT_EQ(in_2026("0 0 * * */7", 2), (Times{"2026-01-04 00:00", "2026-01-11 00:00"}));
}

TEST(CronSyntax, Macros) {
  EXPECT_TRUE(same("@hourly", "0 * * * *"));
  EXPECT_TRUE(same("@daily", "0 0 * * *"));
  EXPECT_TRUE(same(" @Midnight\t", "0 0 * * *"));
  EXPECT_TRUE(same("@WEEKLY", "0 0 * * 0"));
  EXPECT_TRUE(same("@monthly", "0 0 1 * *"));
  EXPECT_TRUE(same("@yearly", "0 0 1 1 *"));
  EXPECT_TRUE(same("@annually", "0 0 1 1 *"));
}

TEST(CronSyntax, QuestionMarkIsAStarInTheDayFields) {
  EXPECT_TRUE(same("0 0 ? * *", "0 0 * * *"));
  EXPECT_TRUE(same("0 0 1 * ?", "0 0 1 * *"));
  EXPECT_THAT(error_of("? 0 * * *"), HasSubstr("wrong minute, \"?\" at character 1"));
  EXPECT_THAT(error_of("0 0 ?/2 * *"), HasSubstr("wrong day of month"));
}

TEST(CronSyntax, BlanksAndTabsSeparate) {
  EXPECT_TRUE(same("  0\t 12   1 *\t*  ", "0 12 1 * *"));
}

TEST(CronDays, EitherFitsIfBothAreRestricted) {
  // The 13th, or a Friday.
  EXPECT_EQ(in_2026("0 0 13 * 5", 4),
            (Times{"2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00", "2026-01-16 00:00"}));
}

TEST(CronDays, BothMustFitIfOneBeginsWithAStar) {
  EXPECT_EQ(in_2026("0 0 13 * *", 2), (Times{"2026-01-13 00:00", "2026-02-13 00:00"}));
  EXPECT_EQ(in_2026("0 0 * * 5", 2), (Times{"2026-01-02 00:00", "2026-01-09 00:00"}));
  EXPECT_EQ(in_2026("0 0 ? * 5", 2), (Times{"2026-01-02 00:00", "2026-01-09 00:00"}));
  // Odd days that are Fridays, as cron has it.
  EXPECT_EQ(in_2026("0 0 */2 * 5", 3), (Times{"2026-01-09 00:00", "2026-01-23 00:00", "2026-02-13 00:00"}));
}

TEST(CronDays, ShortMonthsAreLeftOut) {
  EXPECT_EQ(in_2026("0 0 31 * *", 4),
            (Times{"2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00"}));
  EXPECT_EQ(in_2026("0 0 30 2,4 *", 2), (Times{"2026-04-30 00:00", "2027-04-30 00:00"}));
}

TEST(CronDays, LeapDaysAreFoundAcross2100) {
  EXPECT_EQ(fires("0 0 29 2 *", "UTC", "2092-03-01 00:00", 3),
            (Times{"2096-02-29 00:00", "2104-02-29 00:00", "2108-02-29 00:00"}));
  // A leap day that is a Sunday: the longest that an expression can be silent.
  EXPECT_EQ(fires("0 0 29 2 */7", "UTC", "2026-01-01 00:00", 3),
            (Times{"2032-02-29 00:00", "2060-02-29 00:00", "2088-02-29 00:00"}));
  EXPECT_EQ(fires("0 0 29 2 */7", "Europe/Berlin", "2088-03-01 00:00", 1), Times{"2128-02-28 23:00"});
  EXPECT_EQ(fires("0 * 29 2 */7", "Europe/Berlin", "2088-03-01 00:00", 1), Times{"2128-02-28 23:00"});
}

TEST(CronDays, TimeEndsQuietly) {
  auto cron = *Cron::parse("0 0 1 1 *");
  EXPECT_EQ(cron.next(WallTime::max(), Zone()), std::nullopt);
  EXPECT_EQ(cron.next(at("2262-02-01 00:00"), Zone()), std::nullopt);
  EXPECT_EQ(text_of(*cron.next(at("2261-02-01 00:00"), Zone())), "2262-01-01 00:00");
  EXPECT_TRUE(cron.next(WallTime::min(), Zone()));
  EXPECT_EQ(Cron::parse("* * * * *")->next(WallTime::max(), Zone()), std::nullopt);
}

TEST(CronDays, BeforeNineteenSeventy) {
  EXPECT_EQ(fires("30 23 31 12 *", "UTC", "1969-12-31 23:29:59", 2), (Times{"1969-12-31 23:30", "1970-12-31 23:30"}));
  EXPECT_EQ(fires("* * * * *", "UTC", "1969-12-31 23:58:30", 2), (Times{"1969-12-31 23:59", "1970-01-01 00:00"}));
}

TEST(CronErrors, TheNumberOfFields) {
  EXPECT_EQ(
      error_of("0 0 *"),
      "the cron expression \"0 0 *\" has 3 fields, and must have 5: minute, hour, day of month, month, day of week");
  EXPECT_THAT(error_of(""), HasSubstr("has 0 fields"));
  EXPECT_THAT(error_of("5"), HasSubstr("has 1 field, and"));
  EXPECT_THAT(error_of("0 0 0 * * *"), HasSubstr("has 6 fields"));
  EXPECT_THAT(error_of("0 0 0 * * *"), HasSubstr("there is none for seconds or years"));
  EXPECT_THAT(error_of(std::string(300, '*')), HasSubstr("at most 256 bytes"));
}

TEST(CronErrors, NumbersOutOfRangeNameFieldPlaceAndBounds) {
  EXPECT_EQ(error_of("60 * * * *"),
            "the cron expression \"60 * * * *\" has a wrong minute, \"60\" at character 1: it must be 0 to 59");
  EXPECT_THAT(error_of("0 24 * * *"), HasSubstr("wrong hour, \"24\" at character 3: it must be 0 to 23"));
  EXPECT_THAT(error_of("0 0 0 * *"), HasSubstr("wrong day of month, \"0\" at character 5: it must be 1 to 31"));
  EXPECT_THAT(error_of("0 0 1,32 * *"), HasSubstr("\"32\" at character 7"));
  EXPECT_THAT(error_of("0 0 * 13 *"), HasSubstr("wrong month, \"13\" at character 7: it must be 1 to 12"));
  EXPECT_THAT(error_of("0 0 * * 1-8"), HasSubstr("wrong day of week, \"8\" at character 11: it must be 0 to 7"));
  EXPECT_THAT(error_of("99999999999999999999 * * * *"), HasSubstr("wrong minute"));
}

TEST(CronErrors, WhatCannotBeRead) {
  EXPECT_THAT(error_of("a * * * *"), HasSubstr("\"a\" at character 1: allowed are *, 0 to 59, ranges"));
  EXPECT_THAT(error_of("-5 * * * *"), HasSubstr("\"-5\" at character 1: something is missing"));
  EXPECT_THAT(error_of("5- * * * *"), HasSubstr("something is missing"));
  EXPECT_THAT(error_of("1,,2 * * * *"), HasSubstr("something is missing"));
  EXPECT_THAT(error_of("1, * * * *"), HasSubstr("something is missing"));
  EXPECT_THAT(error_of("** * * * *"), HasSubstr("\"**\" at character 1"));
  EXPECT_THAT(error_of("1-2-3 * * * *"), HasSubstr("\"2-3\" at character 3"));
  EXPECT_THAT(error_of("0 jan * * *"), HasSubstr("wrong hour, \"jan\" at character 3"));
  EXPECT_THAT(error_of("0 0 * january *"), HasSubstr("jan to dec"));
  EXPECT_THAT(error_of("0 0 * * monday"), HasSubstr("sun to sat"));
  EXPECT_THAT(error_of("+5 * * * *"), HasSubstr("\"+5\""));
  EXPECT_THAT(error_of("\n0 0 * * *"), HasSubstr("\\x0a0"));
  EXPECT_THAT(error_of(std::string("0\0 0 * * *", 10)), HasSubstr("\\x00"));
}

TEST(CronErrors, BackwardRanges) {
  EXPECT_THAT(error_of("0 22-6 * * *"), HasSubstr("wrong hour, \"22-6\" at character 3: the range goes backwards"));
  EXPECT_THAT(error_of("0 0 * * fri-mon"), HasSubstr("goes backwards"));
  EXPECT_THAT(error_of("0 0 * * 6-0"), HasSubstr("goes backwards"));
}

TEST(CronErrors, Steps) {
  EXPECT_THAT(error_of("*/0 * * * *"), HasSubstr("\"*/0\" at character 1: its step must be a number from 1 to 59"));
  EXPECT_THAT(error_of("*/90 * * * *"), HasSubstr("from 1 to 59"));
  EXPECT_THAT(error_of("0 */24 * * *"), HasSubstr("from 1 to 23"));
  EXPECT_THAT(error_of("*/ * * * *"), HasSubstr("its step must be a number"));
  EXPECT_THAT(error_of("*/-1 * * * *"), HasSubstr("its step must be a number"));
  EXPECT_THAT(error_of("*/2/3 * * * *"), HasSubstr("its step must be a number"));
  EXPECT_THAT(error_of("/5 * * * *"), HasSubstr("something is missing"));
}

TEST(CronErrors, WhatOtherSchedulersHave) {
  for (const char* days : {"L", "LW", "l-3", "15W", "W"})
    EXPECT_THAT(error_of("0 0 " + std::string(days) + " * *"),
                HasSubstr("wrong day of month, \"" + std::string(days) + "\" at character 5: L, W and # are not"));
  for (const char* days : {"5L", "friL", "mon#2", "1#1"})
    EXPECT_THAT(error_of("0 0 * * " + std::string(days)), HasSubstr("L, W and # are not supported"));
  EXPECT_THAT(error_of("@reboot"), HasSubstr("\"@reboot\" is not known; allowed are @hourly, @daily"));
  EXPECT_THAT(error_of("@every 5m"), HasSubstr("is not known"));
}

TEST(CronErrors, NeverFires) {
  EXPECT_EQ(error_of("0 0 30 2 *"),
            "the cron expression \"0 0 30 2 *\" never fires: none of its months has such a day of month, \"30\"");
  EXPECT_THAT(error_of("0 0 31 feb,apr,jun,sep,nov *"), HasSubstr("never fires"));
  EXPECT_THAT(error_of("0 0 31 4 */2"), HasSubstr("never fires"));
  // On Mondays it does.
  EXPECT_EQ(error_of("0 0 30 2 1"), "no error");
  EXPECT_EQ(error_of("0 0 29 2 *"), "no error");
}

}  // namespace
}  // namespace perdure::schedule
