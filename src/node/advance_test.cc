// Time that is moved: everything happens at its own nominal moment, in order, and the answer comes when all is done.
#include "actor/test_kinds.h"
#include "node/node_fixture.h"
#include "session/cancel_source.h"
#include "store/store_test_util.h"

namespace perdure {
namespace {

using actor::Add;
using actor::Counter;
using actor::Get;
using std::chrono::minutes;

class NodeAdvance : public NodeFixture {
 protected:
  void SetUp() override {
    node = open_still();
    ASSERT_TRUE(node);
  }
  Queue& queue() { return node->queue(); }
  /// Notes in the diary when each event of the worker runs.
  void work(const std::string& worker) {
    ASSERT_TRUE(queue().work(worker, [this, worker](Job&) { diary.note(worker + " at " + clock_of(*node)); }));
  }
  std::string advance(Duration by) {
    auto now = node->advance(by);
    return now ? format_rfc3339(*now).substr(11, 12) : to_string(now.error());
  }

  std::unique_ptr<Node> node;
  Diary diary;
};

TEST_F(NodeAdvance, AnEventThatAlwaysFailsIsTriedAtZeroFiveAndTenMinutesAndIsDeadThen) {
  ASSERT_TRUE(queue().work("mail", [this](Job& job) -> Result<void> {
    diary.note("attempt " + std::to_string(job.attempt()) + " at " + clock_of(*node));
    return fail(ErrorCode::kHandlerFailed, "never");
  }));
  auto id = queue().emit("mail", 1)->id;
  EXPECT_EQ(advance(0s), "00:00:00.000");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"attempt 1 at 00:00:00.000"}));
  EXPECT_EQ(queue().get(id)->state, EventState::kScheduled);
  EXPECT_EQ(advance(5min), "00:05:00.000");
  EXPECT_EQ(queue().get(id)->state, EventState::kScheduled);
  EXPECT_EQ(advance(5min), "00:10:00.000");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"attempt 1 at 00:00:00.000", "attempt 2 at 00:05:00.000",
                                                       "attempt 3 at 00:10:00.000"}));
  EXPECT_EQ(queue().get(id)->state, EventState::kDead);
}

TEST_F(NodeAdvance, TheSameInOneStep) {
  ASSERT_TRUE(queue().work("mail", [this](Job&) -> Result<void> {
    diary.note(clock_of(*node));
    return fail(ErrorCode::kHandlerFailed, "never");
  }));
  auto id = queue().emit("mail", 1)->id;
  EXPECT_EQ(advance(15min), "00:15:00.000");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"00:00:00.000", "00:05:00.000", "00:10:00.000"}));
  auto event = queue().get(id);
  EXPECT_EQ(event->state, EventState::kDead);
  EXPECT_EQ(event->failures.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(event->failures[i].at, kStart + i * 5min);
}

TEST_F(NodeAdvance, TimeStandsStillUntilItIsMoved) {
  work("mail");
  auto id = queue().emit("mail", 1, {.delay = 1ms})->id;
  // A second node-free millisecond of real time is not what it waits for.
  EXPECT_EQ(code_of(queue().wait(id, 20ms)), ErrorCode::kDeadline);
  EXPECT_EQ(node->now(), kStart);
  EXPECT_EQ(advance(1ms), "00:00:00.001");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"mail at 00:00:00.001"}));
}

TEST_F(NodeAdvance, SchedulesWindowsAndDelayedCastsHappenEachAtItsOwnMomentAndInOrder) {
  work("tick");
  ASSERT_TRUE(node->debouncers().set("build", {.quiet = 90s, .max_wait = 1h, .worker = "window"}));
  work("window");
  Counter counter;
  counter.hooks->call = [this](Turn& turn) { diary.note(turn.actor().id + " at " + clock_of(*node)); };
  ASSERT_TRUE(node->actors().serve(counter));
  // From kStart on, every other minute.
  ASSERT_TRUE(node->schedules().set("cron", {.cron = "*/2 * * * *", .worker = "tick"}));
  ASSERT_TRUE(node->debouncers().touch("build", "main"));
  ASSERT_TRUE(node->actors().of<Counter>("late").cast(Add{1}, {.delay = 5min}));
  ASSERT_TRUE(node->actors().of<Counter>("soon").cast(Add{1}, {.delay = 1s}));
  ASSERT_TRUE(node->actors().of<Counter>("middle").cast(Add{1}, {.delay = 3min}));
  EXPECT_EQ(advance(6min), "00:06:00.000");
  EXPECT_EQ(diary.entries(),
            (std::vector<std::string>{"soon at 00:00:01.000", "window at 00:01:30.000", "tick at 00:02:00.000",
                                      "middle at 00:03:00.000", "tick at 00:04:00.000", "late at 00:05:00.000",
                                      "tick at 00:06:00.000"}));
  EXPECT_EQ(node->schedules().get("cron")->missed_count, 0U);
}

TEST_F(NodeAdvance, WhatHandlersBringAboutIsDoneAsWellBeforeTheAnswer) {
  work("third");
  ASSERT_TRUE(queue().work("second", [this](Job& job) {
    job.complete([this](Transaction& txn) -> Result<void> {
      queue().emit(txn, "third", 1, {.delay = 1min});
      return {};
    });
  }));
  ASSERT_TRUE(queue().work("first", [this](Job&) {
    EXPECT_TRUE(queue().emit("second", 1));
    node->actors().of<Counter>("a").cast_async(Add{2}, {}, [](const Result<void>& done) { EXPECT_TRUE(done); });
  }));
  ASSERT_TRUE(node->actors().serve(Counter()));
  ASSERT_TRUE(queue().emit("first", 1, {.delay = 1min}));
  EXPECT_EQ(advance(2min), "00:02:00.000");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"third at 00:02:00.000"}));
  EXPECT_EQ(node->actors().actor("counter", "a").inspect()->mailbox_length, 0U);
  EXPECT_EQ(node->actors().of<Counter>("a").call(Get{}).value(), 2);
}

TEST_F(NodeAdvance, RatesAndPausesEndAtTheirMoments) {
  ASSERT_TRUE(queue().configure("slow", WorkerSettings{.rate = Rate{1, 1min}}));
  ASSERT_TRUE(queue().pause(
      "paused", {.until = DueTime(std::chrono::floor<std::chrono::milliseconds>((kStart + 90s).time_since_epoch()))}));
  work("slow");
  work("paused");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue().emit("slow", i));
  ASSERT_TRUE(queue().emit("paused", 1));
  EXPECT_EQ(advance(10min), "00:10:00.000");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"slow at 00:00:00.000", "slow at 00:01:00.000",
                                                       "paused at 00:01:30.000", "slow at 00:02:00.000"}));
}

TEST_F(NodeAdvance, ClaimsByHandAreNotWaitedForAndEndAtTheirDeadlines) {
  auto id = queue().emit("hand", 1)->id;
  ASSERT_EQ(queue().claim("hand", {.lock = 30s})->size(), 1U);
  EXPECT_EQ(advance(29s), "00:00:29.000");
  EXPECT_EQ(queue().get(id)->state, EventState::kRunning);
  EXPECT_EQ(advance(1s), "00:00:30.000");
  EXPECT_EQ(queue().get(id)->state, EventState::kReady);
  EXPECT_EQ(queue().get(id)->losses, 1);
}

TEST_F(NodeAdvance, HowEventsEndedIsForgottenInTime) {
  auto id = queue().emit("hand", 1)->id;
  auto claimed = queue().claim("hand");
  ASSERT_TRUE(queue().complete(id, *claimed->at(0).token));
  EXPECT_EQ(advance(std::chrono::hours(23)), "23:00:00.000");
  EXPECT_TRUE(queue().wait(id, 0s));
  EXPECT_EQ(advance(std::chrono::hours(2)), "01:00:00.000");
  EXPECT_EQ(code_of(queue().wait(id, 0s)), ErrorCode::kNotFound);
}

TEST_F(NodeAdvance, WorkersThatNobodyServesOrThatArePausedAreNotWaitedFor) {
  ASSERT_TRUE(queue().pause("paused"));
  work("paused");
  ASSERT_TRUE(queue().emit("paused", 1));
  ASSERT_TRUE(queue().emit("unserved", 1));
  ASSERT_TRUE(node->actors().actor("unserved", "a").cast(Value(1)));
  EXPECT_EQ(advance(1h), "01:00:00.000");
  EXPECT_EQ(diary.entries(), std::vector<std::string>());
}

TEST_F(NodeAdvance, AHeldNodeMovesItsTimeAndCatchesUpWhenItIsReleased) {
  work("tick");
  ASSERT_TRUE(node->schedules().set("cron", {.cron = "*/2 * * * *", .worker = "tick", .missed = Missed::kAll}));
  node->hold();
  ASSERT_TRUE(queue().emit("tick", 1));
  EXPECT_EQ(advance(5min), "00:05:00.000");
  EXPECT_EQ(diary.entries(), std::vector<std::string>());
  node->release();
  EXPECT_EQ(advance(0s), "00:05:00.000");
  EXPECT_EQ(diary.entries().size(), 3U) << "the event, and two that were missed";
}

TEST_F(NodeAdvance, AHandlerThatDoesNotEndIsWaitedForUntilTheTimeout) {
  CancelSource go_on;
  std::binary_semaphore begun(0);
  ASSERT_TRUE(queue().work("mail", [&](Job&) {
    begun.release();
    (void)go_on.signal().wait(20s);
  }));
  ASSERT_TRUE(queue().emit("mail", 1, {.delay = 1min}));
  // Long enough for the handler to begin.
  EXPECT_EQ(code_of(node->advance(5min, on_test_server() ? 5s : 50ms)), ErrorCode::kDeadline);
  begun.acquire();
  EXPECT_EQ(clock_of(*node), "00:01:00.000") << "it stands where something is still to be done";
  go_on.cancel();
  EXPECT_EQ(advance(1min), "00:02:00.000");
}

TEST_F(NodeAdvance, SeveralAtOnceAreDoneOneAfterTheOther) {
  work("mail");
  ASSERT_TRUE(queue().emit("mail", 1, {.delay = 3min}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this] { EXPECT_TRUE(node->advance(1min)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clock_of(*node), "00:04:00.000");
  EXPECT_EQ(diary.entries(), (std::vector<std::string>{"mail at 00:03:00.000"}));
}

TEST_F(NodeAdvance, ClosingEndsOneThatIsUnderWay) {
  CancelSource go_on;
  std::binary_semaphore begun(0);
  ASSERT_TRUE(queue().work("mail", [&](Job& job) {
    begun.release();
    (void)job.cancel_signal().wait(20s);
  }));
  ASSERT_TRUE(queue().emit("mail", 1));
  std::optional<ErrorCode> code;
  std::thread advancing([&] { code = code_of(node->advance(5min)); });
  begun.acquire();
  EXPECT_EQ(code_of(node->close(1ms)), ErrorCode::kDeadline) << "the handler's";
  advancing.join();
  EXPECT_EQ(code, ErrorCode::kClosed);
  EXPECT_EQ(code_of(node->advance(1s)), ErrorCode::kClosed);
}

TEST_F(NodeAdvance, WhatCannotBeIsRefused) {
  EXPECT_EQ(code_of(node->advance(-1s)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(node->now(), kStart);
  auto passing = open({.store = fresh_store_url()});
  EXPECT_EQ(code_of(passing->advance(1s)), ErrorCode::kInvalidArgument);
}

TEST_F(NodeAdvance, TheEntriesOfALogHaveStoreTime) {
  ASSERT_TRUE(node->sequences().set("p", {.types = {{"shop", {{"invoice", 1}}}}}));
  EXPECT_EQ(advance(1min), "00:01:00.000");
  ASSERT_TRUE(node->sequences().append("p", {.type = "shop", .workspace = 1, .next = {"invoice"}}));
  EXPECT_EQ(node->sequences().log("p")->at(0).at, kStart + 1min);
}

}  // namespace
}  // namespace perdure
