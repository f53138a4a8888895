// What the feed of changes tells of schedules.
#include <gmock/gmock.h>

#include "perdure/queue.h"
#include "perdure/schedule.h"
#include "session/changes_test_text.h"

namespace perdure::schedule {
namespace {

using ::testing::ElementsAre;

TEST(ScheduleChanges, WhatPeopleDoIsToldOf) {
  Store store = store_with_feed();
  Schedules schedules = *Schedules::open(store, {.trigger = false});
  ASSERT_TRUE(schedules.set("s", {.every = "Daily", .worker = "mail"}));
  ASSERT_TRUE(schedules.run("s"));
  ASSERT_TRUE(schedules.pause("s"));
  ASSERT_TRUE(schedules.pause("s"));
  ASSERT_TRUE(schedules.unpause("s"));
  ASSERT_TRUE(schedules.remove("s"));
  EXPECT_THAT(all_changes(store), ElementsAre("schedule s set", "schedule s fired x1", "event mail ready",
                                              "schedule s paused", "schedule s unpaused", "schedule s removed"));
}

TEST(ScheduleChanges, OneThatFiresIsToldOfTogetherWithItsEvent) {
  Store store = store_with_feed();
  Changes changes = *Changes::open(store);
  Schedules schedules = *Schedules::open(store);
  ASSERT_TRUE(schedules.set("s", {.every = "Daily", .worker = "mail"}));
  std::string set = changes.read({})->changes[0].cursor;
  auto page = changes.wait({.after = set}, std::chrono::seconds(20));
  ASSERT_TRUE(page);
  EXPECT_THAT(texts_of(page->changes), ElementsAre("event mail ready", "schedule s fired x1"));
}

}  // namespace
}  // namespace perdure::schedule
