// When clocks are changed.
#include <gtest/gtest.h>

#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

using Times = std::vector<std::string>;

// Berlin: at 01:00 UTC from 02:00 to 03:00 on 29 March, and from 03:00 to 02:00 on 25 October.

TEST(CronZone, ATimeOfDayThatIsSkippedFiresAtTheChange) {
  EXPECT_EQ(fires("30 2 * * *", "Europe/Berlin", "2026-03-28 00:00", 3),
            (Times{"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}));
}

TEST(CronZone, SkippedTimesFireOnceTogetherWithThoseThatFallThere) {
  EXPECT_EQ(fires("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00", 3),
            (Times{"2026-03-29 01:00", "2026-03-29 01:30", "2026-03-30 00:00"}));
  EXPECT_EQ(fires("*/10 2 * * *", "Europe/Berlin", "2026-03-29 00:00", 2),
            (Times{"2026-03-29 01:00", "2026-03-30 00:00"}));
  EXPECT_EQ(fires("* 2 * * *", "Europe/Berlin", "2026-03-29 00:00", 2),
            (Times{"2026-03-29 01:00", "2026-03-30 00:00"}));
}

TEST(CronZone, OfATimeOfDayThatComesTwiceTheFirstFires) {
  EXPECT_EQ(fires("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", 2),
            (Times{"2026-10-25 00:30", "2026-10-26 01:30"}));
  // Asked in the second of the two hours.
  EXPECT_EQ(fires("30 2 * * *", "Europe/Berlin", "2026-10-25 01:10", 1), Times{"2026-10-26 01:30"});
  EXPECT_EQ(fires("15,45 2-3 * * *", "Europe/Berlin", "2026-10-25 00:00", 4),
            (Times{"2026-10-25 00:15", "2026-10-25 00:45", "2026-10-25 02:15", "2026-10-25 02:45"}));
}

TEST(CronZone, EveryHourGoesByElapsedTime) {
  EXPECT_EQ(fires("*/30 * * * *", "Europe/Berlin", "2026-03-29 00:00", 4),
            (Times{"2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30", "2026-03-29 02:00"}));
  EXPECT_EQ(fires("*/30 * * * *", "Europe/Berlin", "2026-10-25 00:00", 4),
            (Times{"2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:00"}));
  // One that names all hours is no other.
  EXPECT_EQ(fires("0 0-23 * * *", "Europe/Berlin", "2026-10-25 00:00", 2),
            (Times{"2026-10-25 01:00", "2026-10-25 02:00"}));
}

TEST(CronZone, AStepOfHoursFiresInBothHoursAndInNoneThatIsSkipped) {
  EXPECT_EQ(fires("0 */2 * * *", "Europe/Berlin", "2026-03-28 22:00", 2),
            (Times{"2026-03-28 23:00", "2026-03-29 02:00"}));
  EXPECT_EQ(fires("30 */2 * * *", "Europe/Berlin", "2026-03-28 22:00", 2),
            (Times{"2026-03-28 23:30", "2026-03-29 02:30"}));
  EXPECT_EQ(fires("30 */2 * * *", "Europe/Berlin", "2026-10-24 23:00", 3),
            (Times{"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 03:30"}));
}

TEST(CronZone, NewYork) {
  // At 07:00 UTC on 8 March, and at 06:00 UTC on 1 November.
  EXPECT_EQ(fires("0 2 * * *", "America/New_York", "2026-03-07 00:00", 3),
            (Times{"2026-03-07 07:00", "2026-03-08 07:00", "2026-03-09 06:00"}));
  EXPECT_EQ(fires("30 1 * * *", "America/New_York", "2026-10-31 12:00", 2),
            (Times{"2026-11-01 05:30", "2026-11-02 06:30"}));
  EXPECT_EQ(fires("0 9 * * mon-fri", "America/New_York", "2026-03-06 12:00", 2),
            (Times{"2026-03-06 14:00", "2026-03-09 13:00"}));
}

TEST(CronZone, LordHoweShiftsByHalfAnHour) {
  // At 15:00 UTC on 4 April from 02:00 to 01:30, and at 15:30 UTC on 3 October from 02:00 to 02:30.
  EXPECT_EQ(fires("45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", 2),
            (Times{"2026-04-04 14:45", "2026-04-05 15:15"}));
  EXPECT_EQ(fires("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", 2),
            (Times{"2026-10-03 15:30", "2026-10-04 15:15"}));
  EXPECT_EQ(fires("15 * * * *", "Australia/Lord_Howe", "2026-10-03 14:00", 3),
            (Times{"2026-10-03 14:45", "2026-10-03 16:15", "2026-10-03 17:15"}));
}

TEST(CronZone, ApiaSkippedADay) {
  // At 10:00 UTC on 30 December 2011, from the end of the 29th to the 31st.
  EXPECT_EQ(fires("0 12 * * *", "Pacific/Apia", "2011-12-29 12:00", 3),
            (Times{"2011-12-29 22:00", "2011-12-30 10:00", "2011-12-30 22:00"}));
  EXPECT_EQ(fires("0 0 * * *", "Pacific/Apia", "2011-12-29 00:00", 3),
            (Times{"2011-12-29 10:00", "2011-12-30 10:00", "2011-12-31 10:00"}));
  EXPECT_EQ(fires("0 9 30 12 *", "Pacific/Apia", "2011-06-01 00:00", 2),
            (Times{"2011-12-30 10:00", "2012-12-29 19:00"}));
  EXPECT_EQ(fires("0 * 30 12 *", "Pacific/Apia", "2011-06-01 00:00", 1), Times{"2012-12-29 10:00"});
}

TEST(CronZone, KolkataIsHalfAnHourOff) {
  EXPECT_EQ(fires("30 9 * * 1-5", "Asia/Kolkata", "2026-01-01 12:00", 2),
            (Times{"2026-01-02 04:00", "2026-01-05 04:00"}));
}

TEST(CronZone, RulesHoldAfter2037) {
  EXPECT_EQ(fires("30 2 * * *", "Europe/Berlin", "2040-03-24 12:00", 2),
            (Times{"2040-03-25 01:00", "2040-03-26 00:30"}));
  EXPECT_EQ(fires("0 12 1 7 *", "America/New_York", "2199-01-01 00:00", 1), Times{"2199-07-01 16:00"});
}

}  // namespace
}  // namespace perdure::schedule
