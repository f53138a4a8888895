// Operating on events: cancelling, redriving, settings, and what is remembered of executions.
#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

class QueueAdmin : public QueueFixture {
 protected:
  Uuid dead(Queue& queue, std::string_view worker, std::string error = "broken", EmitOptions options = {}) {
    auto id = queue.emit(worker, 1, std::move(options))->id;
    EXPECT_TRUE(queue.fail(id, *claim_one(queue, worker).token, std::move(error), {.give_up = true}));
    return id;
  }
  static std::vector<Uuid> ids_of(const std::vector<Event>& events) {
    std::vector<Uuid> ids;
    for (const Event& event : events) ids.push_back(event.id);
    return ids;
  }
};

TEST_F(QueueAdmin, AnEventThatHasNotRunIsCancelledInAnyState) {
  Queue queue = open();
  auto ready = queue.emit("mail", std::string(5'000, 'x'))->id, scheduled = queue.emit("mail", 1, {.delay = 1h})->id;
  auto buried = dead(queue, "other", "broken", {.unique = UniqueKey{"u"}});
  for (const Uuid& id : {ready, scheduled, buried}) {
    ASSERT_TRUE(queue.cancel(id));
    EXPECT_EQ(code_of(queue.get(id)), ErrorCode::kNotFound);
    EXPECT_EQ(ended(queue, id).how, EndedEvent::How::kCancelled);
    EXPECT_EQ(code_of(queue.cancel(id)), ErrorCode::kNotFound);
  }
  EXPECT_EQ(ended(queue, buried).last_error, "broken");
  EXPECT_EQ(info(queue, "mail").total, 0U);
  EXPECT_EQ(info(queue, "mail").cancelled, 2U);
}

// DARK-B13
TEST_F(QueueAdmin, DARK_B13_ARunningEventIsCancelledOnlyByForceAndItsHandlerIsTold) {
  Queue queue = open();
  std::atomic<bool> told = false;
  std::binary_semaphore began{0}, returned{0};
  ASSERT_TRUE(queue.work("mail", [&](Job& job) {
    began.release();
    told = job.cancel_signal().wait(20s);
    job.complete([](Transaction& txn) -> Result<void> {
      txn.set("written", "yes");
      return {};
    });
    returned.release();
  }));
  auto id = queue.emit("mail", 1)->id;
  began.acquire();
  EXPECT_EQ(code_of(queue.cancel(id)), ErrorCode::kWrongState);
  EXPECT_EQ(queue.get(id)->state, EventState::kRunning);
  ASSERT_TRUE(queue.cancel(id, Queue::Force::kYes));
  returned.acquire();
  EXPECT_TRUE(told);
  EXPECT_EQ(ended(queue, id).how, EndedEvent::How::kCancelled);
  EXPECT_EQ(info(queue, "mail").running, 0U);
  EXPECT_TRUE(eventually([&] { return queue.activity().running == 0; }));
  ASSERT_TRUE(queue.close());
  EXPECT_EQ(*store.read([](Reader& reader) { return reader.get("written"); }), std::nullopt);
  Queue next = open();
  std::size_t own = 0;
  EXPECT_TRUE(eventually([&] {
    own = rows(tuple::pack_onto(kSystemKeys, "session", "held")).size();
    return own == 0;
  })) << own
      << " rows are left of the session that was told";
}

TEST_F(QueueAdmin, CancellingAllTakesThoseOfOneStateOrAllButTheRunning) {
  Queue queue = open();
  auto fill = [&] {
    for (int i = 0; i < 1'100; ++i) ASSERT_TRUE(queue.emit("mail", i));
    ASSERT_TRUE(queue.emit("mail", 1, {.delay = 1h}));
    Claimed running = claim_one(queue, "mail"), gone = claim_one(queue, "mail");
    ASSERT_TRUE(queue.fail(gone.id, *gone.token, "x", {.give_up = true}));
  };
  fill();
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kScheduled), 1U);
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kDead), 1U);
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kReady), 1'098U) << "in several transactions";
  EXPECT_EQ(info(queue, "mail").running, 1U);
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kRunning), 1U) << "that is by force";
  EXPECT_EQ(info(queue, "mail").total, 0U);
  fill();
  EXPECT_EQ(*queue.cancel_all("mail"), 1'100U);
  EXPECT_EQ(info(queue, "mail").running, 1U);
  EXPECT_EQ(info(queue, "mail").total, 1U);
}

TEST_F(QueueAdmin, CancellingThePausedTakesNothingOfAWorkerThatIsNot) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit("mail", 1));
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kPaused), 0U);
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kBlocked), 0U);
  ASSERT_TRUE(queue.pause("mail"));
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kReady), 0U) << "it is paused";
  EXPECT_EQ(*queue.cancel_all("mail", EventState::kPaused), 1U);
  ASSERT_TRUE(queue.emit("mail", 1));
  EXPECT_EQ(*queue.cancel_all("mail"), 1U) << "without a state, rules do not matter";
}

// DARK-B7
TEST_F(QueueAdmin, DARK_B7_DeadLettersAreListedWithTheirErrorAndCanBeRedriven) {
  Queue queue = open();
  auto a = dead(queue, "mail", "first"), b = dead(queue, "mail", "second"), c = dead(queue, "mail", "third");
  auto other = dead(queue, "other");
  auto letters = list(queue, {.worker = "mail", .state = EventState::kDead});
  ASSERT_EQ(letters.size(), 3U);
  EXPECT_EQ(letters[0].last_error, "first");
  EXPECT_EQ(letters[2].last_error, "third");
  auto ready = queue.emit("mail", 1)->id;
  EXPECT_EQ(*queue.redrive("mail", {.ids = {b, b, ready, other, Uuid{}}}), 1U) << "what is not dead here is skipped";
  Event back = queue.get(b).value();
  EXPECT_EQ(back.state, EventState::kReady);
  EXPECT_EQ(back.retries, 0);
  EXPECT_EQ(back.losses, 0);
  EXPECT_EQ(back.last_error, "second") << "what happened is still known";
  EXPECT_EQ(*queue.redrive("mail"), 2U);
  EXPECT_EQ(*queue.redrive("mail"), 0U);
  EXPECT_EQ(info(queue, "mail").dead, 0U);
  EXPECT_EQ(info(queue, "other").dead, 1U);
  EXPECT_EQ(queue.get(a)->state, EventState::kReady);
  EXPECT_EQ(queue.get(c)->state, EventState::kReady);
  EXPECT_EQ(code_of(queue.redrive("mail", {.ids = std::vector<Uuid>(1'001)})), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(queue.redrive("mail", {.rate = Rate{0, 1s}})), ErrorCode::kInvalidArgument);
}

TEST_F(QueueAdmin, RedrivingManyTakesSeveralTransactionsAndKeepsTheirOrder) {
  Queue queue = open();
  ASSERT_TRUE(queue.configure("mail", WorkerSettings{.retry = {.max = 0}}));
  std::vector<Uuid> ids;
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(100, {"mail", 1, {}})));
  for (int i = 0; i < 12; ++i) {
    auto claimed = queue.claim("mail", {.max = 100});
    ASSERT_TRUE(store.transact([&](Transaction& txn) {
      for (const Claimed& event : *claimed) queue.fail(txn, event.id, *event.token, "x");
    }));
    for (const Claimed& event : *claimed) ids.push_back(event.id);
  }
  EXPECT_EQ(info(queue, "mail").dead, 1'200U);
  EXPECT_EQ(*queue.redrive("mail"), 1'200U);
  auto first = list(queue, {.worker = "mail", .limit = 1'000});
  ids.resize(1'000);
  EXPECT_EQ(ids_of(first), ids);
}

// DARK-U13, DARK-U14
TEST_F(QueueAdmin, DARK_U13_DARK_U14_TheLastExecutionsAreRememberedWithTheirOutcomes) {
  Queue queue = open();
  auto id = queue.emit("mail", Value::Map{{"n", 1}})->id;
  ASSERT_TRUE(queue.release(id, *claim_one(queue, "mail").token));
  ASSERT_TRUE(queue.fail(id, *claim_one(queue, "mail").token, "no such host", {.retry_in = 0s}));
  Claimed last = claim_one(queue, "mail");
  ASSERT_TRUE(queue.complete(id, *last.token, "sent"));
  auto records = attempts(queue, "mail");
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].event, id);
  EXPECT_EQ(records[0].attempt, 2);
  EXPECT_EQ(records[0].outcome, AttemptRecord::Outcome::kCompleted);
  EXPECT_EQ(records[0].value, Value(Value::Map{{"n", 1}}));
  EXPECT_EQ(records[0].result, Value("sent"));
  EXPECT_EQ(records[0].started, last.locked_at);
  EXPECT_GE(records[0].ended, records[0].started);
  EXPECT_EQ(records[1].outcome, AttemptRecord::Outcome::kFailed);
  EXPECT_EQ(records[1].error, "no such host");
  EXPECT_EQ(records[1].result, Value());
  EXPECT_EQ(records[2].outcome, AttemptRecord::Outcome::kReleased);
  EXPECT_EQ(name_of(AttemptRecord::Outcome::kCompleted), "completed");
  EXPECT_EQ(name_of(AttemptRecord::Outcome::kFailed), "failed");
  EXPECT_EQ(name_of(AttemptRecord::Outcome::kReleased), "released");
  EXPECT_EQ(name_of(AttemptRecord::Outcome::kLost), "lost");
}

TEST_F(QueueAdmin, TheRingOfExecutionsHasABound) {
  Queue queue = open();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(50, {"mail", round, {}})));
    auto claimed = queue.claim("mail", {.max = 1'000});
    for (const Claimed& event : *claimed) ASSERT_TRUE(queue.complete(event.id, *event.token));
  }
  auto records = attempts(queue, "mail");
  ASSERT_EQ(records.size(), static_cast<std::size_t>(kRingSize));
  EXPECT_EQ(records[0].value, Value(2));
  EXPECT_EQ(records[49].value, Value(2));
  EXPECT_EQ(records[50].value, Value(1)) << "the newest first";
  // Many in one transaction: the last of them.
  std::vector<NewEvent> events;
  for (int i = 0; i < 100; ++i) events.push_back({"mail", 100 + i, {}});
  ASSERT_TRUE(queue.emit_many(std::move(events)));
  auto claimed = queue.claim("mail", {.max = 1'000});
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    for (const Claimed& event : *claimed) queue.complete(txn, event.id, *event.token, std::string(2'000, 'x'));
  }));
  records = attempts(queue, "mail");
  ASSERT_EQ(records.size(), static_cast<std::size_t>(kRingSize));
  EXPECT_EQ(records[0].result, Value()) << "nothing of more than a thousand bytes";
  for (std::int64_t i = 0; i < kRingSize; ++i) EXPECT_EQ(records[static_cast<std::size_t>(i)].value, Value(199 - i));
}

TEST_F(QueueAdmin, SettingsAreCheckedKeptAndTakenBack) {
  Queue queue = open();
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.retry = {.delay = -1s}})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.rate = Rate{0, 1s}})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.rate = Rate{1, 0s}})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.rate = Rate{1, 24h * 365 * 101}})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.limit_per_key = 0})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.limit_per_key = 10'001})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.retention = -1s})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.retention = 24h * 365 * 101})), kWrong);
  EXPECT_EQ(code_of(queue.configure("mail", WorkerSettings{.losses_max = -1})), kWrong);
  EXPECT_EQ(info(queue, "mail").settings, WorkerSettings{});
  WorkerSettings settings{.retry = {.delay = 1s, .factor = 1.5, .max = 7, .then = RetryPolicy::Then::kDrop},
                          .rate = Rate{10, 1min},
                          .limit_per_key = 3,
                          .retention = 1h,
                          .losses_max = 0};
  ASSERT_TRUE(queue.configure("mail", settings));
  EXPECT_EQ(info(queue, "mail").settings, settings);
  ASSERT_TRUE(queue.configure("mail", std::nullopt));
  EXPECT_EQ(info(queue, "mail").settings, WorkerSettings{});
}

TEST_F(QueueAdmin, WaitingForAnEndKnowsWhatIsNotThereAndWhatTakesTooLong) {
  Queue queue = open();
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(code_of(queue.wait(Uuid{}, 1s)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(queue.wait(id, 0s)), ErrorCode::kDeadline);
  EXPECT_EQ(code_of(queue.wait(id, -1s)), ErrorCode::kDeadline);
  ASSERT_TRUE(queue.configure("mail", WorkerSettings{.retention = 0s}));
  auto told_of_end = [&](const Uuid& event, Token& token) {
    std::optional<Result<EndedEvent>> answer;
    std::binary_semaphore answered{0};
    queue.wait_async(event, Duration::max(), [&](Result<EndedEvent> end) {
      answer.emplace(std::move(end));
      answered.release();
    });
    token = *claim_one(queue, "mail").token;
    EXPECT_TRUE(queue.complete(event, token));
    answered.acquire();
    EXPECT_EQ(code_of(*answer), ErrorCode::kNotFound);
    return answer->error().message;
  };
  Token token;
  std::string why = told_of_end(id, token);
  // Who looks for the first time after the end cannot tell the event from one that never was, and on a server that
  // happens now and then.
  for (int tries = 0; tries < 20 && why.find("keeps no history") == std::string::npos; ++tries) {
    id = queue.emit("mail", 1)->id;
    why = told_of_end(id, token);
  }
  EXPECT_NE(why.find("keeps no history"), std::string::npos) << why;
  EXPECT_EQ(code_of(queue.complete(id, token)), ErrorCode::kStaleToken) << "nothing is remembered of it";
  EXPECT_EQ(rows(tuple::pack_onto(kSystemKeys, "event")).size(), 0U);
}

}  // namespace
}  // namespace perdure::queue
