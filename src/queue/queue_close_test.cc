// The ends of a node: closing, dropping, a store that is closed first, handlers that are replaced.
#include "queue/queue_fixture.h"
#include "store/store_test_util.h"

namespace perdure::queue {
namespace {

class QueueClose : public QueueFixture {
 protected:
  std::counting_semaphore<> began{0}, may_end{0};
  std::atomic<int> runs = 0;

  /// A handler that goes on when it was told not to.
  struct Hang {
    std::binary_semaphore began{0}, told{0}, may_end{0};
    void until_told(const Job& job) {
      began.release();
      EXPECT_TRUE(job.cancel_signal().wait(20s));
      told.release();
      may_end.acquire();
    }
  };

  auto held() {
    return [this](Job&) {
      ++runs;
      began.release();
      may_end.acquire();
    };
  }
};

// DARK-10
TEST_F(QueueClose, DARK_10_ClosingWaitsForRunningHandlersAndGivesBackWhatIsLeft) {
  Queue queue = open();
  auto hang = std::make_shared<Hang>();
  ASSERT_TRUE(queue.work("mail", [hang](Job& job) { hang->until_told(job); }));
  auto id = queue.emit("mail", 1)->id;
  hang->began.acquire();
  EXPECT_EQ(code_of(queue.close(1ms)), ErrorCode::kDeadline);
  hang->told.acquire();
  Queue next = open();
  Event event = next.get(id).value();
  EXPECT_EQ(event.state, EventState::kReady);
  EXPECT_EQ(event.attempts, 0) << "it was given back, which is not counted";
  EXPECT_EQ(event.losses, 0);
  EXPECT_EQ(info(next, "mail").served_by, 0U);
  hang->may_end.release();
  EXPECT_EQ(code_of(queue.emit("mail", 1)), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.work("mail", held())), ErrorCode::kClosed);
  EXPECT_TRUE(queue.close()) << "again";
}

// DARK-U9
TEST_F(QueueClose, DARK_U9_ClosingTakesNoMoreEventsAndLetsTheRunningOnesFinish) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail", held(), {.concurrency = 2}));
  std::vector<Uuid> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(queue.emit("mail", i)->id);
  began.acquire();
  began.acquire();
  std::thread closing([&] { EXPECT_TRUE(queue.close()); });
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").served_by == 0; }));
  may_end.release(2);
  closing.join();
  EXPECT_EQ(runs, 2);
  Queue next = open();
  EXPECT_EQ(info(next, "mail").completed, 2U);
  EXPECT_EQ(info(next, "mail").ready, 3U);
  EXPECT_EQ(info(next, "mail").lost, 0U);
}

TEST_F(QueueClose, WorkingAnewReplacesTheHandlerAndRunningAttemptsEndWithTheOld) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail", [&](Job&) {
    began.release();
    may_end.acquire();
    return "old";
  }));
  auto first = queue.emit("mail", 1)->id;
  began.acquire();
  ASSERT_TRUE(queue.work("mail", [&](Job&) { return "new"; }));
  EXPECT_EQ(ended(queue, queue.emit("mail", 2)->id).result, Value("new"));
  EXPECT_EQ(queue.activity().running, 1U);
  may_end.release();
  EXPECT_EQ(ended(queue, first).result, Value("old"));
  EXPECT_TRUE(eventually([&] { return queue.activity().running + queue.activity().settling == 0; }));
}

TEST_F(QueueClose, StoppingToWorkTakesNoMoreEvents) {
  Queue queue = open();
  ASSERT_TRUE(queue.emit_many(std::vector<NewEvent>(3, {"mail", 1, {}})));
  ASSERT_TRUE(queue.work("mail", held(), {.concurrency = 1}));
  began.acquire();
  queue.stop_working("mail");
  queue.stop_working("never");
  ASSERT_TRUE(queue.emit("mail", 2));
  may_end.release(4);
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").completed == 1; }));
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").served_by == 0; }));
  EXPECT_TRUE(eventually([&] { return queue.activity().running + queue.activity().settling == 0; }));
  EXPECT_EQ(info(queue, "mail").ready, 3U) << "also of those that it knew of";
  EXPECT_EQ(runs, 1);
}

TEST_F(QueueClose, ClosingInAHandlerIsRefused) {
  Queue queue = open();
  std::optional<ErrorCode> refused;
  ASSERT_TRUE(queue.work("mail", [&](Job&) { refused = code_of(queue.close()); }));
  ended(queue, queue.emit("mail", 1)->id);
  EXPECT_EQ(refused, ErrorCode::kInvalidArgument);
}

TEST_F(QueueClose, BlockingCallsAreRefusedInCallbacksOfTheStore) {
  Queue queue = open();
  std::vector<std::optional<ErrorCode>> codes;
  std::binary_semaphore done{0};
  queue.emit_async("mail", 1, {}, [&](Result<Emitted> emitted) {
    ASSERT_TRUE(emitted);
    codes = {code_of(queue.emit("mail", 1)),       code_of(queue.claim("mail")),
             code_of(queue.get(emitted->id)),      code_of(queue.pause("mail")),
             code_of(queue.wait(emitted->id, 1s)), code_of(queue.cancel_all("mail")),
             code_of(queue.redrive("mail")),       code_of(queue.close()),
             code_of(Queue::open(store))};
    done.release();
  });
  done.acquire();
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], ErrorCode::kInvalidArgument) << i;
}

TEST_F(QueueClose, TheLastHandleMayGoInAHandlerOrInACallback) {
  auto queue = std::make_unique<Queue>(open());
  ASSERT_TRUE(queue->work("mail", [&](Job&) {
    began.acquire();
    queue.reset();
    may_end.release();
  }));
  auto id = queue->emit("mail", 1)->id;
  began.release();
  may_end.acquire();
  Queue next = open();
  std::atomic<int> again = 0;
  ASSERT_TRUE(next.work("mail", [&](Job&) { ++again; }));
  EXPECT_EQ(ended(next, id).how, EndedEvent::How::kCompleted);

  auto other = std::make_unique<Queue>(open());
  Queue* raw = other.get();
  raw->emit_async("other", 1, {}, [&](Result<Emitted>) {
    other.reset();
    may_end.release();
  });
  may_end.acquire();
  EXPECT_EQ(info(next, "other").ready, 1U);
}

TEST_F(QueueClose, AStoreThatClosesFirstIsFine) {
  Store own = fresh_store();
  Queue queue = *Queue::open(own);
  ASSERT_TRUE(queue.work("mail", held()));
  ASSERT_TRUE(queue.emit("mail", 1));
  began.acquire();
  ASSERT_TRUE(own.close());
  may_end.release();
  EXPECT_EQ(code_of(queue.emit("mail", 1)), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.get(Uuid{})), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.claim("mail")), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.work("mail", held())), ErrorCode::kClosed);
  EXPECT_EQ(code_of(queue.wait(Uuid{}, 1s)), ErrorCode::kClosed);
  EXPECT_TRUE(queue.close());
}

TEST_F(QueueClose, WhoWaitsIsAnsweredWhenTheNodeGoes) {
  struct Answers {
    std::counting_semaphore<> done{0};
    std::optional<ErrorCode> claim, wait;
  };
  auto ask = [&](Queue& queue, const std::shared_ptr<Answers>& answers) {
    auto id = queue.emit("never", 1, {.delay = 1h})->id;
    queue.claim_async("never", {.wait = Duration::max()}, [answers](Result<std::vector<Claimed>> claimed) {
      answers->claim = code_of(claimed);
      answers->done.release();
    });
    queue.wait_async(id, Duration::max(), [answers](Result<EndedEvent> end) {
      answers->wait = code_of(end);
      answers->done.release();
    });
  };
  auto store_first = std::make_shared<Answers>(), dropped = std::make_shared<Answers>();
  {
    Store own = fresh_store();
    Queue queue = *Queue::open(own);
    ask(queue, store_first);
    ASSERT_TRUE(own.close());
    for (int i = 0; i < 2; ++i) store_first->done.acquire();
  }
  {
    Queue queue = open();
    ask(queue, dropped);
  }
  for (int i = 0; i < 2; ++i) dropped->done.acquire();
  for (const auto& answers : {store_first, dropped}) {
    EXPECT_EQ(answers->claim, ErrorCode::kClosed);
    EXPECT_EQ(answers->wait, ErrorCode::kClosed);
  }
}

}  // namespace
}  // namespace perdure::queue
