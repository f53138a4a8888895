#include "schedule/rows.h"

#include <gtest/gtest.h>

#include <set>

#include "schedule/schedule_test_util.h"

namespace perdure::schedule {
namespace {

using namespace std::chrono_literals;

ScheduleRow full_row() {
  ScheduleRow row;
  row.spec = {.every = {},
              .cron = "*/5 * * * *",
              .timezone = "Europe/Berlin",
              .worker = "mail",
              .value = Value::Map{{"a", Value::List{1, "x", Blob{Bytes("\0\1", 2)}}}},
              .missed = Missed::kSkip,
              .jitter = 1500ms};
  row.created = at("2026-01-01 00:00");
  row.first = at("2026-01-02 00:00");
  row.last = at("2026-01-03 00:00");
  row.next = at("2026-01-04 00:00");
  row.missed_count = 17;
  row.paused = SchedulePause{"ann", "a holiday", at("2026-01-05 00:00")};
  return row;
}

void expect_same(const ScheduleRow& one, const ScheduleRow& other) {
  EXPECT_EQ(one.spec, other.spec);
  EXPECT_EQ(one.created, other.created);
  EXPECT_EQ(one.first, other.first);
  EXPECT_EQ(one.last, other.last);
  EXPECT_EQ(one.next, other.next);
  EXPECT_EQ(one.missed_count, other.missed_count);
  ASSERT_EQ(one.paused.has_value(), other.paused.has_value());
  if (!one.paused) return;
  EXPECT_EQ(one.paused->by, other.paused->by);
  EXPECT_EQ(one.paused->reason, other.paused->reason);
  EXPECT_EQ(one.paused->since, other.paused->since);
}

TEST(ScheduleRows, ComeBackAsTheyWere) {
  for (const ScheduleRow& row : {full_row(), ScheduleRow{}}) {
    auto decoded = ScheduleRow::decode(row.encode());
    ASSERT_TRUE(decoded);
    expect_same(row, *decoded);
  }
}

TEST(ScheduleRows, WhatIsCutShortOrOfAnotherFormatIsDamaged) {
  Bytes whole = full_row().encode();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto decoded = ScheduleRow::decode(BytesView(whole).substr(0, size));
    ASSERT_FALSE(decoded) << size;
    ASSERT_EQ(decoded.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_FALSE(ScheduleRow::decode(whole + "x"));
  Bytes newer = whole;
  ASSERT_EQ(newer.substr(0, 2), tuple::pack(1));
  newer.replace(0, 2, tuple::pack(2));
  EXPECT_FALSE(ScheduleRow::decode(newer));
}

TEST(ScheduleRows, AnIdIsOfOneScheduleAndOneNominalTime) {
  WallTime noon = at("2026-01-01 12:00");
  std::set<Uuid> ids;
  for (const char* space : {"a", "b", "ab"})
    for (const char* name : {"a", "b", "bc"})
      for (WallTime time : {noon, noon + 1ns, noon + 1min}) ids.insert(event_id(space, name, time));
  EXPECT_EQ(ids.size(), 27U);
  // A contract: another version of perdure in the same store must come to the same.
  EXPECT_EQ(to_string(event_id("default", "report", noon)), "0399cf9d-7a61-8247-aa02-a057522e83bb");
}

TEST(ScheduleRows, JitterIsSpreadEvenlyAndAlwaysTheSame) {
  WallTime noon = at("2026-01-01 12:00");
  EXPECT_EQ(jitter_of("a", "b", noon, 0s), 0s);
  int early = 0;
  for (int i = 0; i < 1000; ++i) {
    Duration delay = jitter_of("a", "b", noon + i * 1min, 10s);
    ASSERT_GE(delay, 0s);
    ASSERT_LT(delay, 10s);
    ASSERT_EQ(delay, jitter_of("a", "b", noon + i * 1min, 10s));
    if (delay < 5s) ++early;
  }
  EXPECT_GT(early, 400);
  EXPECT_LT(early, 600);
}

}  // namespace
}  // namespace perdure::schedule
