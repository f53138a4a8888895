// Nodes that serve a worker: threads, handlers that misbehave, sessions that are lost.
#include "queue/queue_fixture.h"

namespace perdure::queue {
namespace {

class QueueNode : public QueueFixture {
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

// DARK-2
TEST_F(QueueNode, DARK_2_EmittingDoesNotWaitForTheHandlerAndItRunsElsewhere) {
  Queue emitter = open({.dispatch = false}), node = open();
  std::thread::id thread;
  ASSERT_TRUE(node.work("mail", [&](Job&) {
    thread = std::this_thread::get_id();
    began.release();
    may_end.acquire();
  }));
  auto id = emitter.emit("mail", 1)->id;
  began.acquire();
  EXPECT_EQ(emitter.get(id)->state, EventState::kRunning) << "emit has returned, and it has not";
  EXPECT_NE(thread, std::this_thread::get_id());
  may_end.release();
  ended(emitter, id);
  EXPECT_EQ(code_of(emitter.work("mail", [](Job&) {})), ErrorCode::kInvalidArgument) << "dispatch is off";
}

// DARK-14, DARK-U8
TEST_F(QueueNode, DARK_14_DARK_U8_ANodeClaimsNoMoreThanItHasPlacesFor) {
  Queue node = open(), other = open();
  EXPECT_EQ(WorkOptions{}.concurrency, 4U);
  EXPECT_EQ(WorkOptions{}.timeout, Duration::max()) << "DARK-9: executions have no limit";
  ASSERT_TRUE(node.work("mail", held()));
  ASSERT_TRUE(node.emit_many(std::vector<NewEvent>(10, {"mail", 1, {}})));
  for (int i = 0; i < 4; ++i) began.acquire();
  EXPECT_EQ(info(node, "mail").running, 4U);
  EXPECT_EQ(info(node, "mail").ready, 6U);
  EXPECT_EQ(node.activity().running, 4U);
  ASSERT_TRUE(other.work("mail", held(), {.concurrency = 3}));
  for (int i = 0; i < 3; ++i) began.acquire();
  EXPECT_EQ(info(node, "mail").running, 7U) << "the rest is there for whoever has room";
  EXPECT_EQ(other.activity().running, 3U);
  may_end.release(10);
  EXPECT_TRUE(eventually([&] { return info(node, "mail").completed == 10; }));
  EXPECT_EQ(runs, 10);
}

// DARK-37
TEST_F(QueueNode, DARK_37_AHandlerRunsWhileNoTransactionIsOpen) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail", [&](Job& job) -> Result<Value> {
    // All of these would conflict with, or wait for, a transaction that were open.
    EXPECT_EQ(queue.get(job.id())->state, EventState::kRunning);
    EXPECT_TRUE(queue.emit("other", 1));
    EXPECT_TRUE(queue.pause("mail"));
    EXPECT_TRUE(queue.unpause("mail"));
    auto sum = store.transact([](Transaction& txn) {
      txn.add("sum", 1);
      return decode_counter(txn.get("sum"));
    });
    return Value(*sum);
  }));
  EXPECT_EQ(ended(queue, queue.emit("mail", 1)->id).result, Value(1));
  EXPECT_EQ(info(queue, "other").ready, 1U);
}

// DARK-U9
TEST_F(QueueNode, DARK_U9_AHandlerMayThrowAnythingAndTheWorkerGoesOn) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail",
                         [&](Job& job) {
                           switch (*job.value().as_integer()) {
                             case 0:
                               throw std::runtime_error("broken");
                             case 1:
                               throw 7;
                             case 2:
                               throw std::bad_alloc();
                             default:
                               return;
                           }
                         },
                         {.concurrency = 1, .retry = at_once(0)}));
  std::vector<Uuid> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(queue.emit("mail", i)->id);
  ended(queue, ids[3]);
  EXPECT_NE(queue.get(ids[0])->last_error.find("broken"), std::string::npos);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.get(ids[i])->state, EventState::kDead);
  EXPECT_FALSE(queue.get(ids[1])->last_error.empty());
}

// DARK-7
TEST_F(QueueNode, DARK_7_AnEventIsCompletedWhateverItsHandlerReturns) {
  Queue queue = open();
  std::vector<Value> results = {Value("\xff"), Value(std::string(kEventBytesMax, 'x')),
                                Value(Value::Map{{"error", "incomplete"}}), Value()};
  ASSERT_TRUE(queue.work("mail", [&](Job& job) {
    ++runs;
    return results[static_cast<std::size_t>(*job.value().as_integer())];
  }));
  for (std::int64_t i = 0; i < 4; ++i) {
    auto end = ended(queue, queue.emit("mail", i)->id);
    EXPECT_EQ(end.how, EndedEvent::How::kCompleted);
    EXPECT_EQ(end.attempts, 1);
    EXPECT_EQ(end.result, i == 2 ? results[2] : Value()) << "what cannot be kept is null";
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(QueueNode, HandlersReturnNothingAValueOrAResultOfThese) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("a", [](Job&) -> Result<void> { return {}; }));
  ASSERT_TRUE(queue.work("b", [](Job&) { return "text"; }));
  ASSERT_TRUE(queue.work("c", [](Job&) -> Result<Value> { return Value(7); }));
  EXPECT_EQ(ended(queue, queue.emit("a", 1)->id).result, Value());
  EXPECT_EQ(ended(queue, queue.emit("b", 1)->id).result, Value("text"));
  EXPECT_EQ(ended(queue, queue.emit("c", 1)->id).result, Value(7));
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code_of(queue.work("a", held(), {.concurrency = 0})), kWrong);
  EXPECT_EQ(code_of(queue.work("a", held(), {.concurrency = 10'001})), kWrong);
  EXPECT_EQ(code_of(queue.work("a", held(), {.timeout = 0s})), kWrong);
  EXPECT_EQ(code_of(queue.work("a", held(), {.retry = RetryPolicy{.max = -1}})), kWrong);
}

TEST_F(QueueNode, ABodyThatRefusesOrThrowsFailsTheAttempt) {
  Queue queue = open();
  ASSERT_TRUE(queue.work("mail",
                         [&](Job& job) {
                           job.complete([](Transaction& txn) -> Result<void> {
                             txn.add("sum", 1);
                             return {};
                           });
                           job.complete([attempt = job.attempt()](Transaction& txn) -> Result<void> {
                             txn.add("sum", 10);
                             if (attempt == 1) return fail(ErrorCode::kInvalidArgument, "not like this");
                             if (attempt == 2) throw std::runtime_error("nor like that");
                             return {};
                           });
                           return "done";
                         },
                         {.retry = at_once(2)}));
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(ended(queue, id).attempts, 3);
  EXPECT_EQ(ended(queue, id).result, Value("done"));
  EXPECT_EQ(*store.read([](Reader& reader) { return decode_counter(reader.get("sum")); }), 11);
  auto records = attempts(queue, "mail");
  ASSERT_EQ(records.size(), 3U);
  EXPECT_NE(records[2].error.find("not like this"), std::string::npos) << records[2].error;
  EXPECT_NE(records[1].error.find("nor like that"), std::string::npos) << records[1].error;
}

// DARK-B4
TEST_F(QueueNode, DARK_B4_WhatIsCommittedWithACompletionIsFencedByTheClaim) {
  Queue queue = open();
  std::atomic<int> bodies = 0;
  ASSERT_TRUE(queue.work("mail", [&](Job& job) {
    job.complete([&, id = job.id()](Transaction& txn) -> Result<void> {
      txn.set("written", "yes");
      // The claim is lost while the transaction is under way, which so begins anew.
      if (++bodies == 1) std::thread([&] { EXPECT_TRUE(queue.cancel(id, Queue::Force::kYes)); }).join();
      return {};
    });
  }));
  auto id = queue.emit("mail", 1)->id;
  EXPECT_EQ(ended(queue, id).how, EndedEvent::How::kCancelled);
  ASSERT_TRUE(queue.close());
  EXPECT_EQ(bodies, 1);
  EXPECT_EQ(*store.read([](Reader& reader) { return reader.get("written"); }), std::nullopt);
}

// DARK-B13
TEST_F(QueueNode, DARK_B13_AnAttemptThatRunsPastItsTimeoutFails) {
  Queue queue = open();
  // Nobody waits for a handler that hangs: what it uses is its own.
  auto hang = std::make_shared<Hang>();
  ASSERT_TRUE(queue.work("mail",
                         [hang](Job& job) {
                           if (job.attempt() > 1) return Value("second");
                           hang->until_told(job);
                           return Value("first");
                         },
                         {.timeout = 5ms, .retry = at_once()}));
  auto id = queue.emit("mail", 1)->id;
  hang->told.acquire();
  EXPECT_EQ(ended(queue, id).result, Value("second")) << "while the first still hangs";
  EXPECT_NE(attempts(queue, "mail")[1].error.find("longer than its timeout"), std::string::npos);
  hang->may_end.release();
  EXPECT_EQ(info(queue, "mail").failed, 1U);
}

// DARK-24
TEST_F(QueueNode, DARK_24_WhatALostSessionHadClaimedIsRunAgainAndTheFirstAttemptChangesNothing) {
  Queue lost = open({.session = {.name = "lost"}}), other = open();
  std::atomic<bool> told = false;
  std::binary_semaphore heard{0};
  ASSERT_TRUE(lost.work("mail",
                        [&](Job& job) {
                          ++runs;
                          began.release();
                          told = job.cancel_signal().wait(20s);
                          heard.release();
                          may_end.acquire();
                          job.complete([](Transaction& txn) -> Result<void> {
                            txn.add("sum", 100);
                            return {};
                          });
                          return "first";
                        },
                        {.concurrency = 1}));
  auto id = other.emit("mail", 1)->id;
  began.acquire();
  lost.stop_working("mail");
  end_sessions("lost");
  ASSERT_TRUE(other.work("mail", [&](Job& job) {
    EXPECT_EQ(job.attempt(), 2);
    EXPECT_EQ(job.event().losses, 1);
    job.complete([](Transaction& txn) -> Result<void> {
      txn.add("sum", 1);
      return {};
    });
    return "second";
  }));
  EXPECT_EQ(ended(other, id).result, Value("second"));
  heard.acquire();
  EXPECT_TRUE(told);
  may_end.release();
  ASSERT_TRUE(lost.close());
  EXPECT_EQ(*store.read([](Reader& reader) { return decode_counter(reader.get("sum")); }), 1);
  EXPECT_EQ(ended(other, id).result, Value("second"));
}

TEST_F(QueueNode, ANodeThatLostItsSessionServesUnderTheNext) {
  Queue queue = open({.session = {.name = "lost"}});
  ASSERT_TRUE(queue.work("mail", [&](Job&) { ++runs; }));
  ended(queue, queue.emit("mail", 1)->id);
  end_sessions("lost");
  ended(queue, queue.emit("mail", 2)->id);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(eventually([&] { return info(queue, "mail").served_by == 1; })) << info(queue, "mail").served_by;
}

}  // namespace
}  // namespace perdure::queue
