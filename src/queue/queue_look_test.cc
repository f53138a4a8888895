// Looking at events: counts, lists, and why they wait.
#include <algorithm>

#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

class QueueLook : public QueueFixture {
 protected:
  std::binary_semaphore began{0};
  std::counting_semaphore<> may_end{0};

  /// A handler that waits for the test.
  auto held() {
    return [this](Job&) {
      began.release();
      may_end.acquire();
    };
  }
  Uuid dead(Queue& queue, std::string_view worker, std::string error = "broken", EmitOptions options = {}) {
    auto id = queue.emit(worker, 1, std::move(options))->id;
    EXPECT_TRUE(queue.fail(id, *claim_one(queue, worker).token, std::move(error), {.give_up = true}));
    return id;
  }
  std::string reasons(Queue& queue, const Uuid& id) {
    std::string codes;
    Why why = queue.why(id).value();
    for (const auto& reason : why.reasons) codes += reason.code + " ";
    return codes;
  }
  std::vector<Uuid> ids_of(const std::vector<Event>& events) {
    std::vector<Uuid> ids;
    for (const Event& event : events) ids.push_back(event.id);
    return ids;
  }
};

// DARK-5, DARK-35, DARK-B10
TEST_F(QueueLook, DARK_5_DARK_35_DARK_B10_EveryStoredEventIsCountedInTheStateThatItIsIn) {
  Queue queue = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.emit("mail", i));
  ASSERT_TRUE(queue.emit("mail", 1, {.delay = 1h}));
  Claimed running = claim_one(queue, "mail");
  Claimed retrying = claim_one(queue, "mail");
  ASSERT_TRUE(queue.fail(retrying.id, *retrying.token, "later"));
  dead(queue, "mail", "broken", {.priority = 0});
  ASSERT_TRUE(queue.pause("mail"));
  WorkerInfo now = info(queue, "mail");
  EXPECT_EQ(now.space, "default");
  EXPECT_EQ(now.worker, "mail");
  EXPECT_EQ(now.ready, 1U) << "paused";
  EXPECT_EQ(now.scheduled, 2U) << "delayed and retrying";
  EXPECT_EQ(now.running, 1U);
  EXPECT_EQ(now.dead, 1U);
  EXPECT_EQ(now.total, 4U) << "all but the dead";
  EXPECT_EQ(now.failed, 2U);
  EXPECT_EQ(now.completed, 0U);
  ASSERT_TRUE(queue.complete(running.id, *running.token));
  ASSERT_EQ(*queue.cancel_all("mail"), 4U);
  now = info(queue, "mail");
  EXPECT_EQ(now.total, 0U);
  EXPECT_EQ(now.dead, 0U);
  EXPECT_EQ(now.completed, 1U);
  EXPECT_EQ(now.cancelled, 4U);
  EXPECT_EQ(now.oldest, std::nullopt);
  WorkerInfo unknown = info(queue, "never");
  EXPECT_EQ(unknown.total + unknown.dead + unknown.completed + unknown.served_by, 0U);
  EXPECT_EQ(unknown.settings, WorkerSettings{});
}

TEST_F(QueueLook, TheOldestIsTheOneThatHasBeenReadyLongestOfAnyPriority) {
  Queue queue = open();
  auto first = queue.emit("mail", 1)->id;
  WallTime since = queue.get(first)->enqueued_at;
  ASSERT_TRUE(queue.emit("mail", 1, {.priority = 0}));
  ASSERT_TRUE(queue.emit("mail", 1, {.priority = 9}));
  EXPECT_EQ(info(queue, "mail").oldest, since);
}

TEST_F(QueueLook, ListingGoesThroughAllStatesInTheirOrderPageByPage) {
  Queue queue = open();
  std::vector<Uuid> wanted;
  auto d1 = dead(queue, "mail"), d2 = dead(queue, "mail");
  auto r1 = queue.emit("mail", 1)->id, r2 = queue.emit("mail", 1)->id;
  Claimed running = claim_one(queue, "mail"), other = claim_one(queue, "mail");
  EXPECT_EQ(running.id, r1);
  EXPECT_EQ(other.id, r2);
  auto late = queue.emit("mail", 1, {.delay = 2h})->id, soon = queue.emit("mail", 1, {.delay = 1h})->id;
  auto last = queue.emit("mail", 1, {.priority = 9})->id, middle = queue.emit("mail", 1)->id;
  auto first = queue.emit("mail", 1, {.priority = 0})->id;
  for (std::string worker : {"other", "mail"}) {
    Queue elsewhere = queue.in(worker == "mail" ? "other" : "default");
    ASSERT_TRUE(elsewhere.emit(worker, 1));
    ASSERT_TRUE(elsewhere.emit(worker, 1));
    claim_one(elsewhere, worker);
  }
  wanted = {first, middle, last, soon, late, r1, r2, d1, d2};
  EXPECT_EQ(ids_of(list(queue, {.worker = "mail"})), wanted);
  for (std::size_t limit = 1; limit <= 10; ++limit) {
    std::vector<Uuid> seen;
    EventFilter filter{.worker = "mail", .limit = limit};
    for (int pages = 0; pages < 12; ++pages) {
      auto page = queue.list(filter).value();
      EXPECT_LE(page.events.size(), limit);
      for (const Event& event : page.events) seen.push_back(event.id);
      filter.after = page.next;
      if (page.next.empty()) break;
    }
    EXPECT_EQ(seen, wanted) << limit;
    EXPECT_EQ(filter.after, "");
  }
  auto of = [&](EventState state) { return ids_of(list(queue, {.worker = "mail", .state = state})); };
  EXPECT_EQ(of(EventState::kReady), (std::vector<Uuid>{first, middle, last}));
  EXPECT_EQ(of(EventState::kScheduled), (std::vector<Uuid>{soon, late}));
  EXPECT_EQ(of(EventState::kRunning), (std::vector<Uuid>{r1, r2}));
  EXPECT_EQ(of(EventState::kDead), (std::vector<Uuid>{d1, d2}));
  EXPECT_EQ(of(EventState::kPaused), std::vector<Uuid>());
  ASSERT_TRUE(queue.pause("mail"));
  EXPECT_EQ(of(EventState::kReady), std::vector<Uuid>());
  EXPECT_EQ(of(EventState::kPaused), (std::vector<Uuid>{first, middle, last}));
  ASSERT_TRUE(queue.block("mail"));
  EXPECT_EQ(of(EventState::kPaused), std::vector<Uuid>());
  EXPECT_EQ(of(EventState::kBlocked), (std::vector<Uuid>{first, middle, last}));
}

TEST_F(QueueLook, EventsThatWaitForASlotAreListedBehindTheReadyOnes) {
  Queue queue = open();
  std::vector<Uuid> waiting;
  for (std::string key : {"a", "b"})
    for (int i = 0; i < 4; ++i) waiting.push_back(queue.emit("mail", i, {.limit_key = key})->id);
  ASSERT_EQ(queue.claim("mail")->size(), 2U) << "one of each key";
  std::erase(waiting, waiting[4]);
  std::erase(waiting, waiting[0]);
  auto ready = queue.emit("mail", 1)->id;
  std::vector<Uuid> wanted = waiting;
  wanted.insert(wanted.begin(), ready);
  for (std::size_t limit : {1, 2, 3, 5, 7, 20}) {
    std::vector<Uuid> seen;
    EventFilter filter{.worker = "mail", .state = EventState::kReady, .limit = limit};
    do {
      auto page = queue.list(filter).value();
      for (const Event& event : page.events) seen.push_back(event.id);
      filter.after = page.next;
    } while (!filter.after.empty() && seen.size() < 20);
    EXPECT_EQ(seen, wanted) << limit;
  }
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kReady), 7U);
  EXPECT_EQ(info(queue, "mail").ready, 0U);
  EXPECT_EQ(info(queue, "mail").running, 2U);
}

TEST_F(QueueLook, WhatIsNoCursorIsRefused) {
  Queue queue = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.emit("mail", i));
  std::string cursor = queue.list({.worker = "mail", .limit = 1})->next;
  ASSERT_FALSE(cursor.empty());
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  for (std::string wrong : {"x", "0", "00", "4.", "0.0", "0.0g", "0.zz", "-1.00"})
    EXPECT_EQ(code_of(queue.list({.worker = "mail", .after = wrong})), kWrong) << wrong;
  EXPECT_EQ(code_of(queue.list({.worker = "mail", .state = EventState::kDead, .after = cursor})), kWrong);
  EXPECT_EQ(queue.list({.worker = "mail", .state = EventState::kReady, .after = cursor})->events.size(), 2U);
  EXPECT_EQ(code_of(queue.list({.worker = "mail", .limit = 0})), kWrong);
  EXPECT_EQ(code_of(queue.list({.worker = "mail", .limit = 1'001})), kWrong);
  EXPECT_EQ(queue.list({.worker = "mail", .limit = 1'000})->events.size(), 3U);
}

TEST_F(QueueLook, WhySaysWhatAnEventWaitsFor) {
  Queue queue = open();
  auto ready = queue.emit("mail", 1)->id;
  EXPECT_EQ(reasons(queue, ready), "unserved ");
  EXPECT_EQ(queue.why(ready)->text, "no node has a handler for the worker mail");
  ASSERT_TRUE(queue.pause("mail", {.reason = "moving", .by = "ann", .until = kLastDueTime}));
  ASSERT_TRUE(queue.block("mail"));
  EXPECT_EQ(reasons(queue, ready), "paused blocked unserved ");
  EXPECT_EQ(queue.why(ready)->reasons[0].by, "ann");
  EXPECT_EQ(queue.why(ready)->reasons[0].since, info(queue, "mail").rules[0].since);
  EXPECT_NE(queue.why(ready)->text.find(" (moving) until 9999-12-31T23:59:59.999Z; blocked since "), std::string::npos)
      << queue.why(ready)->text;
  auto later = queue.emit("mail", 1, {.at = DueTime(std::chrono::milliseconds(4'102'444'800'123))})->id;
  EXPECT_EQ(reasons(queue, later), "scheduled paused blocked ");
  EXPECT_EQ(queue.why(later)->reasons[0].text, "it is due at 2100-01-01T00:00:00.123Z");
  auto gone = dead(queue, "other");
  EXPECT_EQ(reasons(queue, gone), "dead ");
  EXPECT_EQ(queue.why(gone)->text, "it is dead after 1 attempts: broken; redrive it to try again");
  EXPECT_EQ(code_of(queue.why(Uuid{})), ErrorCode::kNotFound);

  ASSERT_TRUE(queue.work("held", held(), {.concurrency = 1}));
  auto running = queue.emit("held", 1)->id;
  began.acquire();
  auto next = queue.emit("held", 1)->id, second = queue.emit("held", 1)->id, third = queue.emit("held", 1)->id;
  EXPECT_EQ(reasons(queue, running), "running ");
  EXPECT_EQ(queue.why(running)->reasons[0].since, queue.get(running)->locked_at);
  EXPECT_EQ(queue.why(next)->text, "ready: it is the next one");
  EXPECT_EQ(queue.why(second)->text, "ready: 1 event is before it");
  EXPECT_EQ(queue.why(third)->text, "ready: 2 events are before it");
  may_end.release(4);
  ended(queue, third);
}

TEST_F(QueueLook, WhyTellsOfLimitKeysAndRates) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit("mail", 1, {.limit_key = "k"}));
  auto waits = queue.emit("mail", 1, {.limit_key = "k"})->id;
  ASSERT_EQ(queue.claim("mail")->size(), 1U);
  EXPECT_EQ(reasons(queue, waits), "unserved limit_key ");
  ASSERT_TRUE(queue.configure("slow", WorkerSettings{.rate = Rate{1, 1h}}));
  ASSERT_TRUE(queue.emit("slow", 1));
  auto slow = queue.emit("slow", 1)->id;
  ASSERT_EQ(queue.claim("slow")->size(), 1U);
  EXPECT_EQ(reasons(queue, slow), "unserved rate ");
  EXPECT_NE(queue.why(slow)->text.find("the worker takes 1 events in 3600"), std::string::npos);
}

// DARK-U6
TEST_F(QueueLook, DARK_U6_WithoutAHandlerEventsWaitAndItShows) {
  Queue queue = open();
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(info(queue, "mail").served_by, 0U);
  EXPECT_EQ(reasons(queue, id), "unserved ");
  Queue second = open();
  ASSERT_TRUE(second.work("mail", held()));
  began.acquire();
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").served_by == 1; }));
  ASSERT_TRUE(queue.work("mail", held()));
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").served_by == 2; }));
  queue.stop_working("mail");
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").served_by == 1; }));
  may_end.release();
  EXPECT_EQ(ended(queue, id).how, EndedEvent::How::kCompleted);
  ASSERT_TRUE(second.close());
  EXPECT_EQ(info(queue, "mail").served_by, 0U);
}

TEST_F(QueueLook, WorkersAreListedByNamePageByPage) {
  Queue queue = open();
  for (std::string name : {"c", "a", "b", "ab"}) ASSERT_TRUE(queue.emit(name, 1));
  ASSERT_TRUE(queue.in("other").emit("z", 1));
  auto names = [&](PageOptions page) {
    return *store.read([&](Reader& reader) { return queue.workers(reader, page); });
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({}), (Names{"a", "ab", "b", "c"}));
  EXPECT_EQ(names({.limit = 2}), (Names{"a", "ab"}));
  EXPECT_EQ(names({.limit = 2, .after = "ab"}), (Names{"b", "c"}));
  EXPECT_EQ(names({.after = "c"}), Names());
}

}  // namespace
}  // namespace perdure::queue
