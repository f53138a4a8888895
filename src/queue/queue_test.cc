#include <set>

#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

class QueueTest : public QueueFixture {};

// DARK-1
TEST_F(QueueTest, DARK_1_AnEventRunsInTheHandlerOfItsWorker) {
  Queue queue = open();
  std::atomic<int> mails = 0, others = 0;
  ASSERT_TRUE(queue.work("mail", [&](Job& job) { mails += static_cast<int>(*job.value().as_integer()); }));
  ASSERT_TRUE(queue.work("other", [&](Job&) { ++others; }));
  auto emitted = queue.emit("mail", 7);
  ASSERT_TRUE(emitted) << to_string(emitted.error());
  auto ended = queue.wait(emitted->id, 5s);
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_EQ(ended->how, EndedEvent::How::kCompleted);
  EXPECT_EQ(ended->attempts, 1);
  EXPECT_EQ(mails, 7);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(info(queue, "mail").total, 0U);
  EXPECT_EQ(info(queue, "mail").completed, 1U);
}

TEST_F(QueueTest, ManyEventsRunOnceEach) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<NewEvent> events;
    for (int j = 0; j < 100; ++j) events.push_back({"mail", i * 100 + j, {}});
    ASSERT_TRUE(queue.emit_many(std::move(events)));
  }
  EXPECT_EQ(info(queue, "mail").ready, 2000U);
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }, {.concurrency = 64}));
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").completed == 2000; }));
  EXPECT_EQ(runs, 2000);
  EXPECT_EQ(info(queue, "mail").total, 0U);
  std::set<Uuid> remembered;
  auto records = attempts(queue, "mail");
  for (const AttemptRecord& record : records) remembered.insert(record.event);
  EXPECT_EQ(remembered.size(), static_cast<std::size_t>(kRingSize)) << "also where many are settled together";
  ASSERT_TRUE(queue.close());
}

TEST_F(QueueTest, AFailedAttemptIsRetriedAndThenDead) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.work("mail",
                         [&](Job& job) -> Result<void> {
                           EXPECT_EQ(job.attempt(), ++runs);
                           if (job.attempt() == 2) throw std::runtime_error("no such host");
                           return fail(ErrorCode::kUnavailable, "try later");
                         },
                         {.retry = at_once()}));
  auto id = queue.emit("mail", "x")->id;
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").dead == 1; }));
  EXPECT_EQ(runs, 3);
  auto event = queue.get(id);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state, EventState::kDead);
  EXPECT_EQ(event->retries, 2);
  ASSERT_EQ(event->failures.size(), 3U);
  EXPECT_NE(event->failures[1].error.find("no such host"), std::string::npos);
  EXPECT_EQ(*queue.redrive("mail"), 1U);
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").dead == 1 && runs == 6; }));
}

TEST_F(QueueTest, WhatCompleteWritesIsThereOnceAndWithTheCompletion) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("count", [&](Job& job) {
    job.complete([](Transaction& txn) -> Result<void> {
      txn.add("total", 1);
      return {};
    });
    return job.value();
  }));
  auto id = queue.emit("count", 3)->id;
  auto ended = queue.wait(id, 5s);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->result, Value(3));
  EXPECT_EQ(*store.read([](Reader& reader) { return decode_counter(reader.get("total")); }), 1);
}

TEST_F(QueueTest, ClaimsByHand) {
  Queue queue = open();
  auto id = queue.emit("hand", std::string(5000, 'x'))->id;
  auto claimed = queue.claim("hand");
  ASSERT_TRUE(claimed) << to_string(claimed.error());
  ASSERT_EQ(claimed->size(), 1U);
  EXPECT_EQ((*claimed)[0].id, id);
  EXPECT_EQ((*claimed)[0].value.as_text()->size(), 5000U);
  EXPECT_EQ(info(queue, "hand").running, 1U);
  auto until = queue.extend(id, *(*claimed)[0].token, 60s);
  ASSERT_TRUE(until) << to_string(until.error());
  ASSERT_TRUE(queue.complete(id, *(*claimed)[0].token, "done"));
  ASSERT_TRUE(queue.complete(id, *(*claimed)[0].token, "done"));
  EXPECT_EQ(code_of(queue.fail(id, Token{{Version{1}, 1}, (*claimed)[0].token->store}, "x")), ErrorCode::kStaleToken);
  EXPECT_EQ(info(queue, "hand").total, 0U);
  EXPECT_EQ(queue.wait(id, 1s)->result, Value("done"));
}

TEST_F(QueueTest, AClaimThatHasEndedOneWayCannotEndAnother) {
  Queue queue = open();
  auto id = queue.emit("hand", 1)->id;
  Token token = *queue.claim("hand")->at(0).token;
  ASSERT_TRUE(queue.complete(id, token));
  EXPECT_EQ(code_of(queue.fail(id, token, "x")), ErrorCode::kStaleToken);
  EXPECT_EQ(code_of(queue.release(id, token)), ErrorCode::kStaleToken);
  RetryPolicy drop{.max = 0, .then = RetryPolicy::Then::kDrop};
  id = queue.emit("hand", 2, {.retry = drop})->id;
  token = *queue.claim("hand")->at(0).token;
  ASSERT_TRUE(queue.fail(id, token, "x"));
  ASSERT_TRUE(queue.fail(id, token, "x"));
  EXPECT_EQ(code_of(queue.complete(id, token)), ErrorCode::kStaleToken);
}

TEST_F(QueueTest, WhatTheLastTurnPutBackIsClaimedAgain) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  auto failing = [&](Job&) -> Result<void> { return fail(ErrorCode::kUnavailable, std::to_string(++runs)); };
  ASSERT_TRUE(queue.work("mail", failing, {.concurrency = 1, .retry = at_once()}));
  ASSERT_TRUE(queue.emit("mail", "x"));
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").dead == 1; })) << runs;
}

TEST_F(QueueTest, CancellingTheNextOfALimitKeyLetsThoseBehindItThrough) {
  Queue queue = open();
  std::vector<Uuid> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(queue.emit("mail", i, {.limit_key = "k"})->id);
  auto first = *queue.claim("mail");
  ASSERT_EQ(first.size(), 1U);
  ASSERT_TRUE(queue.complete(ids[0], *first[0].token));
  ASSERT_TRUE(queue.cancel(ids[1]));
  auto last = *queue.claim("mail");
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].id, ids[2]);
}

TEST_F(QueueTest, CancellingThePausedLeavesAWorkerAloneThatIsNotPaused) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit("mail", 1));
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kPaused), 0U);
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kBlocked), 0U);
  ASSERT_TRUE(queue.pause("mail"));
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kPaused), 1U);
}

TEST_F(QueueTest, CallsOnAQueueWhoseStoreIsClosedAreRefused) {
  Queue queue = open();
  auto id = queue.emit("mail", 1)->id;
  ASSERT_TRUE(store.close());
  EXPECT_EQ(code_of(queue.wait(id, 1s)), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.redrive("mail")), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.emit("mail", 1)), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.claim("mail", {.wait = 1s})), ErrorCode::kClosed);
}

TEST_F(QueueTest, PausedWorkersTakeNothing) {
  Queue queue = open();
  std::atomic<int> runs = 0;
  ASSERT_TRUE(queue.pause("mail", {.reason = "moving", .by = "ann"}));
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }));
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(queue.get(id)->state, EventState::kPaused);
  EXPECT_NE(queue.why(id)->text.find("paused by ann since"), std::string::npos) << queue.why(id)->text;
  ASSERT_TRUE(queue.block("mail"));
  ASSERT_TRUE(queue.unpause("mail"));
  EXPECT_EQ(queue.get(id)->state, EventState::kBlocked);
  EXPECT_EQ(runs, 0);
  ASSERT_TRUE(queue.unblock("mail"));
  EXPECT_TRUE(queue.wait(id, 5s));
  EXPECT_EQ(runs, 1);
}

TEST_F(QueueTest, ADelayedEventRunsWhenItIsDue) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail", [&](Job&) {}));
  // Long enough to look at it before, also where a look is a round trip.
  auto id = queue.emit("mail", 1, {.delay = on_test_server() ? 1s : 20ms})->id;
  EXPECT_EQ(queue.get(id)->state, EventState::kScheduled);
  auto ended = queue.wait(id, 5s);
  ASSERT_TRUE(ended);
}

}  // namespace
}  // namespace perdure::queue
