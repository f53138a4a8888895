// Schedules on virtual time: what fires when, on how many nodes, and after what outages.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "perdure/schedule.h"
#include "perdure/testing.h"
#include "schedule/schedule_test_check.h"
#include "schedule/table.h"

namespace perdure::schedule {
namespace {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;

class ScheduleSim : public ::testing::Test {
 protected:
  explicit ScheduleSim(int nodes = 1) : ScheduleSim(testing::SimulationOptions{.nodes = nodes}) {}
  explicit ScheduleSim(const testing::SimulationOptions& options) : sim_(options) {
    sim_.on_start([this](Node& node) {
      auto opened = Schedules::open(node.store());
      ASSERT_TRUE(opened);
      auto kept = std::make_shared<Schedules>(std::move(*opened));
      nodes_[node.index()] = kept;
      node.keep(kept);
    });
    sim_.run_for(1ms);
  }
  Schedules& on(int node) { return *nodes_[node].lock(); }
  WallTime wall_now(int node = 0) { return sim_.node(node)->wall_now(); }

  /// Runs a transaction on a node to its end.
  template <class F>
  Result<void> transact(F body, int node = 0) {
    auto answer = std::make_shared<std::optional<Result<void>>>();
    sim_.node(node)->store().transact_async([body](Transaction& txn) { body(txn); },
                                            [answer](Result<void> result) { answer->emplace(std::move(result)); });
    EXPECT_TRUE(sim_.run_until([&] { return answer->has_value(); }, 10s));
    return **answer;
  }
  ScheduleInfo set(const std::string& name, const ScheduleSpec& spec, int node = 0) {
    ScheduleInfo info;
    EXPECT_TRUE(transact([&](Transaction& txn) { info = on(node).set(txn, name, spec); }, node));
    return info;
  }
  ScheduleInfo info(const std::string& name) {
    return sim_
        .read([&](Reader& reader) {
          SystemAccess access(reader);
          return get(reader, "default", name);
        })
        .value();
  }
  std::optional<Event> event(const std::string& name, WallTime nominal) {
    return sim_
        .read([&](Reader& reader) -> Result<std::optional<Event>> {
          auto found = queue::get_event(reader, "default", event_id("default", name, nominal), wall_now());
          if (!found) return std::nullopt;
          return *found;
        })
        .value();
  }
  std::uint64_t events(const std::string& worker) {
    return sim_.read([&](Reader& reader) { return queue::worker_info(reader, "default", worker, {}).total; }).value();
  }
  /// In the order in which they will be claimed.
  std::vector<Uuid> ready(const std::string& worker) {
    return sim_
        .read([&](Reader& reader) -> Result<std::vector<Uuid>> {
          std::vector<Uuid> ids;
          std::string after;
          do {
            auto page = queue::list_events(
                reader, "default", {.worker = worker, .state = EventState::kReady, .after = after, .limit = 1'000}, {});
            for (const Event& each : page->events) ids.push_back(each.id);
            after = page->next;
          } while (!after.empty());
          return ids;
        })
        .value();
  }
  void expect_rows_hold() {
    auto wrong = sim_.read([](Reader& reader) { return ScheduleCheck::run(reader); });
    EXPECT_EQ(*wrong, std::vector<std::string>());
  }
  /// Nobody is there for so long.
  void outage(Duration length) {
    for (int i = 0; i < sim_.options().nodes; ++i) sim_.crash(i, testing::Crash::kAtOnce, length);
    sim_.run_for(length + 2s);
  }

  Simulation sim_;
  std::map<int, std::weak_ptr<Schedules>> nodes_;
};

class ScheduleSimOfThree : public ScheduleSim {
 protected:
  ScheduleSimOfThree() : ScheduleSim(3) {}
};

// DARK-B8, DARK-U11
TEST_F(ScheduleSim, FiresAtItsNominalTimesAndDoesNotDrift) {
  WallTime first = *set("s", {.every = "10s", .worker = "w"}).next;
  for (int i = 0; i < 60; ++i) {
    // Late again and again, by less than an interval.
    if (i % 5 == 0) sim_.pause(0, 4s);
    sim_.run_for(10s);
  }
  EXPECT_GE(events("w"), 60U);
  for (int i = 0; i < 60; ++i) {
    auto fired = event("s", first + i * 10s);
    ASSERT_TRUE(fired) << i;
    EXPECT_GE(fired->enqueued_at, first + i * 10s);
    EXPECT_LT(fired->enqueued_at, first + i * 10s + 5s);
  }
  EXPECT_EQ(info("s").missed_count, 0U);
  expect_rows_hold();
}

TEST_F(ScheduleSim, FiresWithinMoments) {
  WallTime minute = *set("s", {.cron = "* * * * *", .worker = "w"}).next;
  sim_.run_for(3min);
  for (WallTime nominal : {minute, minute + 1min}) {
    auto fired = event("s", nominal);
    ASSERT_TRUE(fired);
    EXPECT_GE(fired->enqueued_at, nominal);
    EXPECT_LT(fired->enqueued_at, nominal + 300ms);
    EXPECT_EQ(fired->modifier, "* * * * *");
  }
}

// DARK-36, DARK-B8
TEST_F(ScheduleSimOfThree, SeveralNodesFireEachTimeOnce) {
  WallTime first = *set("s", {.every = "1s", .worker = "w", .missed = Missed::kAll}, 1).next;
  sim_.run_for(60s);
  EXPECT_GE(events("w"), 55U);
  EXPECT_TRUE(event("s", first));
  expect_rows_hold();
}

TEST_F(ScheduleSimOfThree, AnyNodeWillDo) {
  set("s", {.every = "1s", .worker = "w", .missed = Missed::kAll});
  for (int i = 0; i < 3; ++i) sim_.crash(i, testing::Crash::kAfterApply, 20s);
  sim_.run_for(2min);
  expect_rows_hold();
  EXPECT_GE(events("w"), 100U);
}

TEST_F(ScheduleSimOfThree, WhatOneNodeSetsAnotherFiresAtOnce) {
  on(0).hold();
  on(1).hold();
  sim_.run_for(10min);
  // Whichever clock is ahead.
  for (int node = 0; node < 2; ++node) {
    std::string name = "s" + std::to_string(node);
    WallTime nominal = *set(name, {.every = "Daily", .worker = "w"}, node).next;
    sim_.run_for(1s);
    EXPECT_TRUE(event(name, nominal)) << node;
  }
}

TEST_F(ScheduleSim, AfterAnOutageOneEventStandsForAll) {
  set("s", {.cron = "* * * * *", .worker = "w"});
  sim_.run_for(3min);
  std::uint64_t before = events("w");
  outage(10min);
  EXPECT_EQ(events("w"), before + 1);
  EXPECT_GE(info("s").missed_count, 8U);
  EXPECT_LE(info("s").missed_count, 10U);
  expect_rows_hold();
}

TEST_F(ScheduleSim, AfterAnOutageAllAreCaughtUpInOrder) {
  WallTime first = *set("s", {.every = "1s", .worker = "w", .missed = Missed::kAll}).next;
  sim_.run_for(3s);
  outage(20min);
  sim_.run_for(10s);
  expect_rows_hold();
  auto ids = ready("w");
  ASSERT_GT(ids.size(), 1'200U);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(ids[i], event_id("default", "s", first + static_cast<int>(i) * 1s)) << i;
}

TEST_F(ScheduleSim, WhoeverCatchesUpKeepsNobodyWaiting) {
  set("many", {.every = "1s", .worker = "w", .missed = Missed::kAll});
  WallTime first = *set("other", {.every = "30s", .worker = "v"}).next;
  sim_.run_for(3s);
  sim_.crash(0, testing::Crash::kAtOnce, 2h);
  sim_.run_for(2h);
  ASSERT_TRUE(sim_.run_until([&] { return info("other").missed_count > 0; }, 10s));
  EXPECT_LT(events("w"), 2'000U) << "it was not asked while the other was catching up";
  sim_.run_for(1min);
  EXPECT_GT(events("w"), 7'200U);
  EXPECT_TRUE(event("other", *info("other").last));
  EXPECT_GT(*info("other").last, first + 2h);
}

TEST_F(ScheduleSim, OfTooManyTheOldestAreGivenUp) {
  WallTime first = *set("s", {.every = "1s", .worker = "w", .missed = Missed::kAll}).next;
  sim_.run_for(100ms);
  ASSERT_EQ(events("w"), 1U);
  outage(3h);
  sim_.run_for(1min);
  ScheduleInfo now = info("s");
  EXPECT_GE(now.missed_count, 800U);
  EXPECT_LE(now.missed_count, 810U);
  EXPECT_GE(events("w"), 10'000U);
  EXPECT_FALSE(event("s", first + 1s * static_cast<int>(now.missed_count)));
  EXPECT_TRUE(event("s", first + 1s * static_cast<int>(now.missed_count + 1)));
}

TEST_F(ScheduleSim, WhatIsLongPastIsSkippedAndCounted) {
  set("s", {.every = "10s", .worker = "w", .missed = Missed::kSkip});
  sim_.run_for(1s);
  ASSERT_EQ(events("w"), 1U);
  outage(10min);
  // Those of the last minute are not missed yet.
  EXPECT_GE(events("w"), 6U);
  EXPECT_LE(events("w"), 9U);
  EXPECT_GE(info("s").missed_count, 52U);
  expect_rows_hold();
}

TEST_F(ScheduleSim, WhatPassesDuringAPauseIsNeitherFiredNorMissed) {
  WallTime first = *set("s", {.every = "10s", .worker = "w"}).next;
  sim_.run_for(15s);
  ASSERT_EQ(events("w"), 2U);
  ASSERT_TRUE(transact([&](Transaction& txn) { on(0).pause(txn, "s", {.by = "ann", .reason = "lunch"}); }));
  sim_.run_for(10min);
  EXPECT_EQ(events("w"), 2U);
  ASSERT_TRUE(transact([&](Transaction& txn) { on(0).unpause(txn, "s"); }));
  WallTime next = *info("s").next;
  EXPECT_GT(next, wall_now() - 100ms);
  EXPECT_EQ((next - first) % 10s, 0s) << "it goes on in the same series";
  sim_.run_for(15s);
  EXPECT_GE(events("w"), 3U);
  EXPECT_LE(events("w"), 4U);
  EXPECT_TRUE(event("s", next));
  EXPECT_EQ(info("s").missed_count, 0U);
}

TEST_F(ScheduleSim, WhatIsRemovedFiresNoMore) {
  set("s", {.every = "1s", .worker = "w"});
  sim_.run_for(5s);
  ASSERT_TRUE(transact([&](Transaction& txn) { on(0).remove(txn, "s"); }));
  std::uint64_t before = events("w");
  sim_.run_for(1min);
  EXPECT_EQ(events("w"), before);
}

TEST_F(ScheduleSim, JitterDelaysEventsAndNotTheSeries) {
  WallTime first = *set("s", {.every = "60s", .worker = "w", .jitter = 50s}).next;
  sim_.run_for(10min + 1s);
  std::set<Duration> delays;
  for (int i = 0; i < 10; ++i) {
    WallTime nominal = first + i * 60s;
    auto fired = event("s", nominal);
    ASSERT_TRUE(fired);
    EXPECT_LT(fired->enqueued_at, nominal + 300ms);
    Duration delay = fired->delay_until - nominal;
    EXPECT_EQ(std::chrono::ceil<std::chrono::milliseconds>(delay),
              std::chrono::ceil<std::chrono::milliseconds>(jitter_of("default", "s", nominal, 50s)));
    delays.insert(delay);
  }
  EXPECT_GT(delays.size(), 5U);
}

// DARK-U12
TEST_F(ScheduleSim, WhileItIsHeldNothingFires) {
  set("s", {.every = "10s", .worker = "w"});
  sim_.run_for(1s);
  on(0).hold();
  sim_.run_for(5min);
  EXPECT_EQ(events("w"), 1U);
  on(0).release();
  sim_.run_for(1s);
  EXPECT_EQ(events("w"), 2U);
  EXPECT_GE(info("s").missed_count, 28U);
  expect_rows_hold();
}

TEST_F(ScheduleSim, ManySchedulesAtOnceAllFire) {
  for (int i = 0; i < 600; ++i) set("s" + std::to_string(i), {.cron = "* * * * *", .worker = "w" + std::to_string(i)});
  sim_.run_for(5min);
  expect_rows_hold();
  for (int i = 0; i < 600; ++i) ASSERT_GE(events("w" + std::to_string(i)), 4U) << i;
}

class ScheduleSimTraced : public ScheduleSim {
 protected:
  ScheduleSimTraced() : ScheduleSim(testing::SimulationOptions{.keep_trace = true}) {}
};

TEST_F(ScheduleSimTraced, NobodyPolls) {
  set("s", {.every = "1d", .worker = "w"});
  sim_.run_for(1min);
  std::size_t before = sim_.trace().size();
  sim_.run_for(24h - 10min);
  // Once a minute, because the wall clock might have been put ahead.
  EXPECT_LT(sim_.trace().size() - before, 24U * 60U * 20U);
  EXPECT_EQ(events("w"), 1U);
  sim_.run_for(10min);
  EXPECT_EQ(events("w"), 2U);
}

// Q4
TEST(ScheduleFaults, EachNominalTimeOnceWhateverGoesWrong) {
  testing::SimulationOptions options{.nodes = 3, .faults = testing::Faults::kMany};
  auto report = testing::for_each_seed({.count = 60}, options, [](Simulation& sim) {
    sim.on_start([](Node& node) {
      auto schedules = std::make_shared<Schedules>(*Schedules::open(node.store()));
      node.keep(schedules);
      // Set anew by each life, and always to the same.
      node.store().transact_async(
          [schedules = schedules.get()](Transaction& txn) {
            schedules->set(txn, "all", {.every = "1s", .worker = "w1", .missed = Missed::kAll});
            schedules->set(txn, "one", {.every = "2s", .worker = "w2", .missed = Missed::kOne});
            schedules->set(txn, "skip", {.every = "3s", .worker = "w3", .missed = Missed::kSkip});
            schedules->set(txn, "cron",
                           {.cron = "* * * * *", .timezone = "Europe/Berlin", .worker = "w4", .missed = Missed::kAll});
          },
          [](const Result<void>&) {});
    });
    auto hold = [&] {
      auto wrong = sim.read([](Reader& reader) { return ScheduleCheck::run(reader); });
      sim.expect(wrong->empty(), wrong->empty() ? "" : wrong->front());
    };
    for (int i = 0; i < 8; ++i) {
      sim.run_for(5s);
      hold();
    }
    sim.heal();
    // One whose life began in the outage of all may have set nothing yet.
    sim.run_for(90s);
    hold();
    auto fired = sim.read([](Reader& reader) { return queue::worker_info(reader, "default", "w1", {}).total; });
    sim.expect(*fired >= 60, "it fires once all is well");
  });
  EXPECT_TRUE(report.ok()) << report.to_string();
}

}  // namespace
}  // namespace perdure::schedule
