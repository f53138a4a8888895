#include "schedule/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

using namespace std::chrono_literals;

const WallTime kFirst = at("2026-01-01 00:00");

Timing every(const std::string& text) {
  return {*Interval::parse(text), kFirst};
}
Timing cron(const std::string& text, const std::string& zone = "UTC") {
  return {*Cron::parse(text), std::make_shared<const Zone>(*Zone::load(zone))};
}
const Timing kMinute = cron("* * * * *");

std::vector<std::string> texts(const std::vector<WallTime>& times) {
  std::vector<std::string> out;
  for (WallTime time : times) out.push_back(text_of(time));
  return out;
}
using Times = std::vector<std::string>;

TEST(TimingSeries, TheNewestAreFoundWithoutWalkingThroughAll) {
  for (const Timing& timing : {kMinute, every("60s")}) {
    WallTime until = kFirst + 10min + 30s;
    EXPECT_EQ(timing.before_newest(0, kFirst, until), kFirst + 10min);
    EXPECT_EQ(timing.before_newest(3, kFirst, until), kFirst + 7min);
    EXPECT_EQ(timing.before_newest(10, kFirst, until), kFirst);
    EXPECT_EQ(timing.before_newest(11, kFirst - 1s, until), kFirst - 1s);
    EXPECT_EQ(timing.before_newest(0, kFirst, kFirst + 59s), kFirst);
    EXPECT_EQ(timing.count(kFirst, until, 100), 10U);
    EXPECT_EQ(timing.count(kFirst, until, 4), 4U);
  }
  // The last of a month full of them, from long after.
  EXPECT_EQ(text_of(cron("* * * 1 *", "Europe/Berlin").before_newest(0, kFirst, at("2026-12-01 00:00"))),
            "2026-01-31 22:59");
}

TEST(TimingSeries, BeforeNewestLeavesExactlySoMany) {
  EXPECT_TRUE(rc::check([] {
    WallTime after = kFirst + std::chrono::milliseconds(*rc::gen::inRange(0, 100'000));
    Timing timing = *rc::gen::arbitrary<bool>() ? Timing(*Interval::parse("7s"), kFirst + 123ms) : cron("*/3 * * * *");
    WallTime until = after + std::chrono::milliseconds(*rc::gen::inRange(0, 10'000'000));
    auto wanted = *rc::gen::inRange<std::uint64_t>(0, 20);
    std::uint64_t all = timing.count(after, until, 1'000'000);
    WallTime before = timing.before_newest(wanted, after, until);
    RC_ASSERT(before >= after && before <= std::max(after, until));
    RC_ASSERT(timing.count(before, until, 1'000'000) == std::min(all, wanted));
  }));
}

TEST(SchedulePlan, WhatIsOnTimeFiresOnceWhateverThePolicy) {
  for (Missed missed : {Missed::kOne, Missed::kAll, Missed::kSkip}) {
    for (const Timing& timing : {kMinute, every("60s")}) {
      Plan plan = plan_due(timing, missed, kFirst, kFirst + 20s, 10);
      EXPECT_EQ(texts(plan.fire), Times{"2026-01-01 00:00"});
      EXPECT_EQ(plan.missed, 0U);
      EXPECT_EQ(plan.next, kFirst + 1min);
    }
  }
}

// DARK-B8
TEST(SchedulePlan, OneIsFiredForAllThatWereMissed) {
  for (const Timing& timing : {kMinute, every("60s")}) {
    Plan plan = plan_due(timing, Missed::kOne, kFirst, kFirst + 5min + 10s, 10);
    EXPECT_EQ(texts(plan.fire), Times{"2026-01-01 00:05"});
    EXPECT_EQ(plan.missed, 5U);
    EXPECT_EQ(plan.next, kFirst + 6min);
  }
}

TEST(SchedulePlan, AllAreFiredInOrderAFewAtATime) {
  for (const Timing& timing : {kMinute, every("60s")}) {
    WallTime now = kFirst + 5min;
    Plan plan = plan_due(timing, Missed::kAll, kFirst, now, 4);
    EXPECT_EQ(texts(plan.fire),
              (Times{"2026-01-01 00:00", "2026-01-01 00:01", "2026-01-01 00:02", "2026-01-01 00:03"}));
    EXPECT_EQ(plan.missed, 0U);
    ASSERT_EQ(plan.next, kFirst + 4min);
    plan = plan_due(timing, Missed::kAll, *plan.next, now, 4);
    EXPECT_EQ(texts(plan.fire), (Times{"2026-01-01 00:04", "2026-01-01 00:05"}));
    EXPECT_EQ(plan.next, kFirst + 6min);
  }
}

TEST(SchedulePlan, OfTooManyTheOldestAreGivenUpAndCounted) {
  for (const Timing& timing : {kMinute, every("60s")}) {
    WallTime now = kFirst + 1min * static_cast<int>(kCatchUpMax + 4);
    Plan plan = plan_due(timing, Missed::kAll, kFirst, now, 2);
    EXPECT_EQ(plan.missed, 5U);
    EXPECT_EQ(texts(plan.fire), (Times{"2026-01-01 00:05", "2026-01-01 00:06"}));
    // Exactly as many as may be are none too many.
    plan = plan_due(timing, Missed::kAll, kFirst, now - 5min, 2);
    EXPECT_EQ(plan.missed, 0U);
    EXPECT_EQ(texts(plan.fire), (Times{"2026-01-01 00:00", "2026-01-01 00:01"}));
  }
}

TEST(SchedulePlan, SkippedAreThoseThatAreMoreThanAMinuteLate) {
  for (const Timing& timing : {kMinute, every("60s")}) {
    Plan plan = plan_due(timing, Missed::kSkip, kFirst, kFirst + kGrace, 10);
    EXPECT_EQ(texts(plan.fire), (Times{"2026-01-01 00:00", "2026-01-01 00:01"}));
    EXPECT_EQ(plan.missed, 0U);
    plan = plan_due(timing, Missed::kSkip, kFirst, kFirst + kGrace + 1ns, 10);
    EXPECT_EQ(texts(plan.fire), Times{"2026-01-01 00:01"});
    EXPECT_EQ(plan.missed, 1U);
    plan = plan_due(timing, Missed::kSkip, kFirst, kFirst + 10min + 30s, 10);
    EXPECT_EQ(texts(plan.fire), Times{"2026-01-01 00:10"});
    EXPECT_EQ(plan.missed, 10U);
  }
  // An hour late with nothing since: it only goes on.
  Plan plan = plan_due(cron("0 * * * *"), Missed::kSkip, kFirst, kFirst + 59min, 10);
  EXPECT_EQ(plan.fire.size(), 0U);
  EXPECT_EQ(plan.missed, 1U);
  EXPECT_EQ(plan.next, kFirst + 1h);
}

TEST(SchedulePlan, CountingEndsAtAMillion) {
  WallTime now = kFirst + 1min * 1'100'000;
  EXPECT_EQ(plan_due(kMinute, Missed::kOne, kFirst, now, 1).missed, kCountMax);
  EXPECT_EQ(plan_due(kMinute, Missed::kOne, kFirst, now, 1).fire, std::vector<WallTime>{now});
  EXPECT_EQ(plan_due(kMinute, Missed::kSkip, kFirst, now, 1).missed, kCountMax + 1);
}

TEST(SchedulePlan, ATimeThatIsNotOfTheSeriesFiresToo) {
  // The time zone database may have changed since it was reckoned.
  WallTime odd = kFirst + 17s;
  Plan plan = plan_due(kMinute, Missed::kOne, odd, kFirst + 20s, 1);
  EXPECT_EQ(plan.fire, std::vector<WallTime>{odd});
  EXPECT_EQ(plan.next, kFirst + 1min);
}

TEST(SchedulePlan, AtTheEndOfTimeThereIsNoNext) {
  Timing yearly = cron("0 0 1 1 *");
  WallTime last = at("2262-01-01 00:00");
  EXPECT_EQ(plan_due(yearly, Missed::kOne, last, last + 1s, 1).next, std::nullopt);
}

TEST(SchedulePlan, NothingIsLostOrFiredTwiceHoweverOftenOneLooks) {
  EXPECT_TRUE(rc::check([] {
    auto missed = static_cast<Missed>(*rc::gen::inRange(0, 3));
    const Timing series[] = {cron("*/2 * * * *"), every("45s"), cron("30 2 * * *", "Europe/Berlin")};
    const Timing& timing = series[*rc::gen::inRange(0, 3)];
    WallTime next = *timing.next(kFirst), now = kFirst;
    WallTime begin = next;
    std::vector<WallTime> fired;
    std::uint64_t gone = 0;
    for (int i = 0; i < 20; ++i) {
      now += std::chrono::seconds(*rc::gen::inRange(0, 20'000));
      while (next <= now) {
        Plan plan = plan_due(timing, missed, next, now, *rc::gen::inRange<std::size_t>(1, 5));
        for (WallTime time : plan.fire) {
          RC_ASSERT(time <= now && time >= next);
          if (!fired.empty()) RC_ASSERT(fired.back() < time);
          fired.push_back(time);
        }
        gone += plan.missed;
        RC_ASSERT(*plan.next > next);
        next = *plan.next;
      }
    }
    RC_ASSERT(fired.size() + gone == timing.count(begin - Duration(1), next - Duration(1), 1'000'000));
    if (missed == Missed::kAll) RC_ASSERT(gone == 0U);
  }));
}

}  // namespace
}  // namespace perdure::schedule
