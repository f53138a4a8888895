// What the feed of changes tells of events and workers.
#include <gmock/gmock.h>

#include "queue/queue_fixture.h"
#include "session/changes_test_text.h"

namespace perdure::queue {
namespace {

using ::testing::ElementsAre;

class QueueChanges : public QueueFixture {
 protected:
  QueueChanges() { store = store_with_feed(); }
};

TEST_F(QueueChanges, AnEventIsToldOfFromItsEmitToItsEnd) {
  Queue queue = open();
  auto id = queue.emit("mail", 1)->id;
  ASSERT_TRUE(queue.fail(id, *claim_one(queue, "mail").token, "no such host", {.retry_in = 0s}));
  ASSERT_TRUE(queue.complete(id, *claim_one(queue, "mail").token));
  EXPECT_THAT(all_changes(store),
              ElementsAre("event mail ready", "event mail running 1.", "event mail failed 1. (no such host)",
                          "event mail ready 1.", "event mail running 2.", "event mail completed 2."));
  EXPECT_EQ(Changes::open(store)->read({})->changes[0].id, to_string(id));
}

TEST_F(QueueChanges, OtherEndsHaveTheirReason) {
  Queue queue = open();
  auto late = queue.emit("mail", 1, {.delay = 1h})->id;
  ASSERT_TRUE(queue.cancel(late));
  auto dead = queue.emit("mail", 2)->id;
  ASSERT_TRUE(queue.fail(dead, *claim_one(queue, "mail").token, "no", {.give_up = true}));
  EXPECT_EQ(queue.redrive("mail").value(), 1U);
  ASSERT_TRUE(queue.release(dead, *claim_one(queue, "mail").token));
  ASSERT_TRUE(queue.cancel(dead));
  auto dropped = queue.emit("mail", 3, {.retry = RetryPolicy{.max = 0, .then = RetryPolicy::Then::kDrop}})->id;
  ASSERT_TRUE(queue.fail(dropped, *claim_one(queue, "mail").token, "never mind"));
  EXPECT_THAT(all_changes(store),
              ElementsAre("event mail scheduled", "event mail cancelled",                          //
                          "event mail ready", "event mail running 1.", "event mail dead 1. (no)",  //
                          "event mail ready 1.", "event mail running 2.", "event mail ready 1.",   //
                          "event mail cancelled 1.", "event mail ready", "event mail running 1.",  //
                          "event mail dropped 1. (never mind)"));
}

TEST_F(QueueChanges, ManyEventsOfATransactionAreOneRow) {
  Queue queue = open();
  std::vector<NewEvent> events;
  for (int i = 0; i < 100; ++i) events.push_back({i % 2 == 0 ? "mail" : "sms", i, {}});
  ASSERT_TRUE(queue.emit_many(std::move(events)));
  EXPECT_EQ(rows(changes_prefix("default")).size(), 1U);
  EXPECT_EQ(all_changes(store).size(), 100U);
  auto claimed = queue.claim("mail", {.max = 50, .wait = 20s});
  ASSERT_EQ(claimed->size(), 50U);
  EXPECT_EQ(rows(changes_prefix("default")).size(), 2U);
  EXPECT_EQ(all_changes(store).size(), 150U);
}

TEST_F(QueueChanges, WhatHandlersDoIsToldOfInOrder) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail", [](Job&) {}, {.concurrency = 16}));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(queue.emit("mail", i));
  ASSERT_TRUE(eventually([&] { return info(queue, "mail").completed == 200; }));
  ASSERT_TRUE(queue.close());
  std::map<std::string, std::vector<std::string>> lives;
  auto page = Changes::open(store)->read({.limit = 1'000});
  for (const Change& change : page->changes) lives[change.id].push_back(change.state);
  EXPECT_EQ(lives.size(), 200U);
  for (auto& [id, states] : lives) EXPECT_THAT(states, ElementsAre("ready", "running", "completed"));
}

TEST_F(QueueChanges, RulesAndSettingsAreToldOf) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail"));
  ASSERT_TRUE(queue.pause("mail"));
  ASSERT_TRUE(queue.block("mail"));
  ASSERT_TRUE(queue.unblock("mail"));
  ASSERT_TRUE(queue.unpause("mail"));
  ASSERT_TRUE(queue.unpause("mail"));
  ASSERT_TRUE(queue.configure("mail", WorkerSettings{}));
  ASSERT_TRUE(queue.configure("mail", std::nullopt));
  EXPECT_THAT(all_changes(store), ElementsAre("worker mail paused", "worker mail blocked", "worker mail unblocked",
                                              "worker mail unpaused", "worker mail set", "worker mail removed"));
}

TEST_F(QueueChanges, ARuleThatEndsByItselfIsToldOfWhenThatIsFound) {
  Queue queue = open();
  ASSERT_TRUE(queue.pause("mail", {.until = DueTime(std::chrono::milliseconds(1))}));
  ASSERT_TRUE(queue.emit("mail", 1));
  claim_one(queue, "mail");
  EXPECT_THAT(all_changes(store),
              ElementsAre("worker mail paused", "event mail ready", "worker mail unpaused", "event mail running 1."));
}

}  // namespace
}  // namespace perdure::queue
