// What the calls do, on a store of their own and the clock of the machine.
#include <gmock/gmock.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "perdure/queue.h"
#include "perdure/schedule.h"
#include "schedule/rows.h"
#include "store/store_test_util.h"
#include "store/system_access.h"

namespace perdure::schedule {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SchedulesTest : public ::testing::Test {
 protected:
  Store store_ = fresh_store();
  Queue queue_ = *Queue::open(store_);
  /// Changes schedules, and fires none.
  Schedules still_ = *Schedules::open(store_, {.trigger = false});

  static ScheduleSpec daily() { return {.every = "Daily", .worker = "mail"}; }
  static ScheduleSpec yearly() { return {.cron = "@yearly", .worker = "mail"}; }

  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
  std::string refusal_of(const ScheduleSpec& spec) {
    auto info = still_.set("s", spec);
    if (info) return "no error";
    EXPECT_EQ(info.error().code, ErrorCode::kInvalidArgument);
    return info.error().message;
  }
  /// The rows of the timetable.
  std::size_t ticks() {
    return store_
        .transact([](Transaction& txn) {
          SystemAccess access(txn);
          return txn.get_range(tuple::extensions(timetable())).size();
        })
        .value();
  }
  std::uint64_t events(const std::string& worker = "mail") { return queue_.worker(worker)->total; }
};

// DARK-U11, DARK-39
TEST_F(SchedulesTest, AnIntervalThatNeverRanIsDueNow) {
  Schedules schedules = *Schedules::open(store_);
  auto set = schedules.set("sweep", {.every = "every 12HRS", .worker = "cleaner"});
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_TRUE(set->next);
  EXPECT_EQ(set->last, std::nullopt);
  ASSERT_TRUE(eventually([&] { return events("cleaner") == 1; }));
  auto page = queue_.list({.worker = "cleaner"});
  ASSERT_TRUE(page);
  ASSERT_EQ(page->events.size(), 1U);
  const Event& event = page->events[0];
  EXPECT_EQ(event.module, "CRON");
  EXPECT_EQ(event.modifier, "Every 12hrs");
  EXPECT_EQ(event.value, Value());
  EXPECT_EQ(event.id, event_id("default", "sweep", *set->next));
  EXPECT_EQ(event.priority, kPriorityDefault);
  EXPECT_EQ(event.state, EventState::kReady);
  auto info = schedules.get("sweep");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->last, set->next);
  EXPECT_EQ(info->next, *set->next + 12h);
  EXPECT_EQ(info->missed_count, 0U);
}

TEST_F(SchedulesTest, ItsHandlerGetsTheValue) {
  Schedules schedules = *Schedules::open(store_);
  std::atomic<std::int64_t> got = 0;
  ASSERT_TRUE(queue_.work("mail", [&](Job& job) { got = *job.value().find("n")->as_integer(); }));
  ASSERT_TRUE(schedules.set("s", {.every = "1h", .worker = "mail", .value = Value::Map{{"n", 7}}}));
  EXPECT_TRUE(eventually([&] { return got == 7; }));
}

TEST_F(SchedulesTest, ACronExpressionWaitsForItsTime) {
  auto set = still_.set("s", {.cron = "  0 0 1 1 *  ", .timezone = "Europe/Berlin", .worker = "mail"});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->spec.cron, "0 0 1 1 *");
  ASSERT_TRUE(set->next);
  EXPECT_EQ((set->next->time_since_epoch() % 1h), 0s);
  EXPECT_GT(*set->next, set->created);
  EXPECT_EQ(ticks(), 1U);
  EXPECT_EQ(events(), 0U);
}

TEST_F(SchedulesTest, WrongOnesAreRefusedWithOneClearError) {
  EXPECT_THAT(refusal_of({.worker = "mail"}), HasSubstr("either an interval (every) or a cron expression (cron)"));
  EXPECT_THAT(refusal_of({.every = "Daily", .cron = "* * * * *", .worker = "mail"}), HasSubstr("either an interval"));
  EXPECT_THAT(refusal_of({.every = "Hourly", .worker = "mail"}), HasSubstr("the interval \"Hourly\" is not known"));
  EXPECT_THAT(refusal_of({.cron = "61 * * * *", .worker = "mail"}), HasSubstr("\"61\" at character 1"));
  EXPECT_THAT(refusal_of({.cron = "0 0 30 2 *", .worker = "mail"}), HasSubstr("never fires"));
  EXPECT_THAT(refusal_of({.cron = "@daily", .timezone = "Mars/Phobos", .worker = "mail"}),
              HasSubstr("no time zone \"Mars/Phobos\""));
  EXPECT_THAT(refusal_of({.every = "Daily", .timezone = "Mars/Phobos", .worker = "mail"}), HasSubstr("Mars/Phobos"));
  EXPECT_THAT(refusal_of({.every = "Daily"}), HasSubstr("the worker"));
  EXPECT_THAT(refusal_of({.every = "Daily", .worker = "mail", .jitter = -1s}), HasSubstr("jitter"));
  EXPECT_THAT(refusal_of({.every = "Daily", .worker = "mail", .jitter = 25h}), HasSubstr("jitter"));
  EXPECT_THAT(refusal_of({.every = "Daily", .worker = "mail", .value = "\xff"}), HasSubstr("the value"));
  EXPECT_EQ(code_of(still_.set("s", {.every = "Daily", .worker = "mail", .value = std::string(70'000, 'x')})),
            ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(still_.set("no name", daily())), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(still_.in("no space").set("s", daily())), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(Schedules::open(store_, {.space = ""})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ticks(), 0U);
}

TEST_F(SchedulesTest, WithoutATimeZoneDatabaseUtcWorks) {
  Schedules bare = *Schedules::open(store_, {.trigger = false, .zoneinfo = "/nowhere"});
  EXPECT_TRUE(bare.set("s", yearly()));
  auto set = bare.set("t", {.cron = "@daily", .timezone = "Europe/Berlin", .worker = "mail"});
  EXPECT_EQ(code_of(set), ErrorCode::kUnavailable);
  EXPECT_THAT(set.error().message, HasSubstr("tzdata"));
}

TEST_F(SchedulesTest, ReplacingKeepsTheTimesIfTheTimingStays) {
  auto first = still_.set("s", {.every = "90s", .worker = "mail"});
  ASSERT_TRUE(first);
  auto second = still_.set("s", {.every = "90s", .worker = "post", .value = 7, .missed = Missed::kAll, .jitter = 1s});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->next, first->next);
  EXPECT_EQ(second->created, first->created);
  auto info = still_.get("s");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->spec.worker, "post");
  EXPECT_EQ(info->spec.value, Value(7));
  EXPECT_EQ(info->spec.missed, Missed::kAll);
  EXPECT_EQ(info->spec.jitter, 1s);
  EXPECT_EQ(ticks(), 1U);
  // Another timing is another series.
  auto third = still_.set("s", yearly());
  ASSERT_TRUE(third);
  EXPECT_NE(third->next, first->next);
  EXPECT_EQ(third->created, first->created);
  auto fourth = still_.set("s", {.cron = "@yearly", .timezone = "Asia/Kolkata", .worker = "mail"});
  ASSERT_TRUE(fourth);
  EXPECT_EQ(*fourth->next, *third->next - 5h - 30min);
  EXPECT_EQ(ticks(), 1U);
}

TEST_F(SchedulesTest, ANewIntervalCountsFromTheLastEvent) {
  Schedules schedules = *Schedules::open(store_);
  ASSERT_TRUE(schedules.set("s", daily()));
  ASSERT_TRUE(eventually([&] { return events() == 1; }));
  WallTime last = *schedules.get("s")->last;
  auto shorter = schedules.set("s", {.every = "1h", .worker = "mail"});
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->next, last + 1h);
  EXPECT_EQ(shorter->last, last);
  auto back = schedules.set("s", daily());
  EXPECT_EQ(back->next, last + 24h);
  EXPECT_EQ(events(), 1U);
}

TEST_F(SchedulesTest, AreListedByNameAndPage) {
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(still_.set(name, daily()));
  ASSERT_TRUE(still_.in("other").set("z", daily()));
  auto names = [&](const PageOptions& page) {
    std::vector<std::string> out;
    auto page_of = still_.list(page);
    for (const ScheduleInfo& info : *page_of) out.push_back(info.name);
    return out;
  };
  EXPECT_THAT(names({}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names({.limit = 2}), ElementsAre("a", "b"));
  EXPECT_THAT(names({.limit = 2, .after = "b"}), ElementsAre("c"));
  EXPECT_THAT(names({.after = "aa"}), ElementsAre("b", "c"));
  EXPECT_EQ(still_.in("other").list()->at(0).space, "other");
  EXPECT_EQ(code_of(still_.list({.after = "\xff"})), ErrorCode::kInvalidArgument);
}

TEST_F(SchedulesTest, WhatIsRemovedIsGone) {
  ASSERT_TRUE(still_.set("s", daily()));
  ASSERT_TRUE(still_.remove("s"));
  EXPECT_EQ(ticks(), 0U);
  EXPECT_EQ(code_of(still_.get("s")), ErrorCode::kNotFound);
  for (auto code : {code_of(still_.remove("s")), code_of(still_.pause("s")), code_of(still_.unpause("s")),
                    code_of(still_.run("s"))})
    EXPECT_EQ(code, ErrorCode::kNotFound);
  EXPECT_THAT(still_.remove("s").error().message, HasSubstr("there is no schedule s in the space default"));
}

TEST_F(SchedulesTest, APauseHasAReasonAndTakesItOffTheTimetable) {
  ASSERT_TRUE(still_.set("s", yearly()));
  ASSERT_TRUE(still_.pause("s", {.by = "ann", .reason = "a holiday"}));
  ASSERT_TRUE(still_.pause("s", {.by = "bob", .reason = "another"}));
  auto info = still_.get("s");
  ASSERT_TRUE(info && info->paused);
  EXPECT_EQ(info->paused->by, "ann");
  EXPECT_EQ(info->paused->reason, "a holiday");
  EXPECT_GE(info->paused->since, info->created);
  EXPECT_EQ(info->next, std::nullopt);
  EXPECT_EQ(ticks(), 0U);
  // Set anew, it stays paused.
  ASSERT_TRUE(still_.set("s", daily()));
  EXPECT_EQ(ticks(), 0U);
  ASSERT_TRUE(still_.set("s", yearly()));
  ASSERT_TRUE(still_.unpause("s"));
  ASSERT_TRUE(still_.unpause("s"));
  info = still_.get("s");
  EXPECT_FALSE(info->paused);
  EXPECT_TRUE(info->next);
  EXPECT_EQ(ticks(), 1U);
  EXPECT_EQ(code_of(still_.pause("s", {.reason = std::string(1'001, 'x')})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(still_.pause("s", {.by = "\xff"})), ErrorCode::kInvalidArgument);
}

TEST_F(SchedulesTest, RunFiresOnceOutsideOfTheSeries) {
  ScheduleSpec spec = yearly();
  spec.value = 5;
  spec.jitter = 1h;
  auto before = still_.set("s", spec);
  ASSERT_TRUE(still_.pause("s"));
  auto first = still_.run("s"), second = still_.run("s");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->id, second->id);
  EXPECT_EQ(events(), 2U);
  auto event = queue_.get(first->id);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->module, "CRON");
  EXPECT_EQ(event->modifier, "@yearly");
  EXPECT_EQ(event->value, Value(5));
  EXPECT_EQ(event->state, EventState::kReady);
  ASSERT_TRUE(still_.unpause("s"));
  auto after = still_.get("s");
  EXPECT_EQ(after->last, std::nullopt);
  EXPECT_EQ(after->next, before->next);
}

TEST_F(SchedulesTest, TakePartInATransactionOfTheCaller) {
  auto failed = store_.transact([&](Transaction& txn) -> Result<void> {
    still_.set(txn, "s", daily());
    txn.set("mine", "1");
    return fail(ErrorCode::kConflict, "as the test wants it");
  });
  EXPECT_FALSE(failed);
  EXPECT_EQ(code_of(still_.get("s")), ErrorCode::kNotFound);
  auto done = store_.transact([&](Transaction& txn) {
    auto info = still_.set(txn, "s", daily());
    still_.run(txn, "s");
    still_.pause(txn, "s");
    still_.unpause(txn, "s");
    return info;
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(events(), 1U);
  // What is wrong fails the whole of it.
  auto refused = store_.transact([&](Transaction& txn) {
    txn.set("mine", "1");
    still_.remove(txn, "nosuch");
  });
  EXPECT_EQ(code_of(refused), ErrorCode::kNotFound);
  EXPECT_EQ(store_.read([](Reader& reader) { return reader.get("mine"); }).value(), std::nullopt);
}

class Metrics : public MetricsSink {
 public:
  void add(const MetricInfo& metric, std::string_view, std::uint64_t count) override {
    if (metric.metric == Metric::kScheduleMissed) missed += count;
  }
  void set(const MetricInfo&, double) override {}
  void observe(const MetricInfo&, double) override {}
  std::atomic<std::uint64_t> missed = 0;
};

/// As if the schedule had been set an hour ago.
void set_back(Store& store) {
  ASSERT_TRUE(store.transact([](Transaction& txn) {
    SystemAccess access(txn);
    auto before = read_schedule(txn, "default", "s");
    ScheduleRow after = *before;
    after.first -= 1h;
    after.next = after.first;
    write_schedule(txn, "default", "s", before, after);
  }));
}

TEST_F(SchedulesTest, LargeEventsThatWereMissedAreMadeUpForInPartsThatFit) {
  ASSERT_TRUE(still_.set(
      "s", {.every = "60s", .worker = "mail", .value = Value(std::string(60'000, 'x')), .missed = Missed::kAll}));
  set_back(store_);
  still_.release();
  EXPECT_TRUE(eventually([&] { return events() == 61; })) << events();
}

TEST(SchedulesReport, WhatWasMissedIsCountedAndLogged) {
  auto metrics = std::make_shared<Metrics>();
  std::atomic<int> records = 0;
  std::binary_semaphore told(0);
  Store store = fresh_store({.log =
                                 [&](const LogRecord& record) {
                                   if (record.component != "schedule") return;
                                   if (++records == 1) told.release();
                                   EXPECT_EQ(record.message, "times of a schedule were missed");
                                 },
                             .metrics = metrics});
  Schedules schedules = *Schedules::open(store, {.trigger = false});
  ASSERT_TRUE(schedules.set("s", {.every = "60s", .worker = "mail"}));
  set_back(store);
  schedules.release();
  told.acquire();
  EXPECT_EQ(metrics->missed, 60U);
  EXPECT_EQ(schedules.get("s")->missed_count, 60U);
}

// DARK-U12
TEST_F(SchedulesTest, ANodeThatDoesNotTriggerLeavesItToOthersUntilReleased) {
  ASSERT_TRUE(still_.set("s", daily()));
  {
    Schedules other = *Schedules::open(store_);
    other.hold();
  }
  still_.release();
  ASSERT_TRUE(eventually([&] { return events() == 1; }));
  still_.hold();
  ASSERT_TRUE(still_.set("t", daily()));
  Schedules other = *Schedules::open(store_);
  ASSERT_TRUE(eventually([&] { return events() == 2; }));
}

TEST_F(SchedulesTest, BlockingCallsAreRefusedInCallbacksAndOnAClosedStore) {
  std::optional<ErrorCode> seen;
  std::binary_semaphore done(0);
  store_.transact_async([](Transaction&) {},
                        [&](const Result<void>&) {
                          seen = code_of(still_.set("s", daily()));
                          done.release();
                        });
  done.acquire();
  EXPECT_EQ(seen, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(store_.close());
  EXPECT_EQ(code_of(still_.get("s")), ErrorCode::kClosed);
  EXPECT_EQ(code_of(still_.set("s", daily())), ErrorCode::kClosed);
  EXPECT_EQ(code_of(Schedules::open(store_)), ErrorCode::kClosed);
}

TEST_F(SchedulesTest, DamageIsTakenOffTheTimetableAndKeepsNobodyWaiting) {
  ASSERT_TRUE(still_.set("bad", {.every = "1s", .worker = "mail"}));
  ASSERT_TRUE(still_.set("good", {.every = "1d", .worker = "post"}));
  ASSERT_TRUE(store_.transact([](Transaction& txn) {
    SystemAccess access(txn);
    txn.set(schedule_key("default", "bad"), "nonsense");
    txn.set(tuple::pack_onto(timetable(), "nonsense"), "");
    txn.set(tick_key(WallTime{}, "default", "gone"), "");
    txn.set(tick_key(WallTime{}, "default", "good"), "");
  }));
  still_.release();
  ASSERT_TRUE(eventually([&] { return events("post") == 1; }));
  ASSERT_TRUE(eventually([&] { return ticks() == 1; }));
  EXPECT_EQ(code_of(still_.get("bad")), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(still_.list()), ErrorCode::kCorrupt);
  EXPECT_EQ(events("mail"), 0U);
}

}  // namespace
}  // namespace perdure::schedule
