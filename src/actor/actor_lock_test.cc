// Locks: work outside of any transaction, while the mailbox waits.
#include <atomic>

#include "actor/actor_fixture.h"
#include "actor/state_codec.h"
#include "session/rows.h"

namespace perdure::actor {
namespace {

class ActorLockTest : public ActorFixture {
 protected:
  /// Lets the locked handler begin and end when the test says so.
  std::binary_semaphore began{0};
  std::counting_semaphore<> may_end{0};
  std::atomic<int> runs = 0;

  void SetUp() override {
    counter.hooks->locked = [this](Turn&) {
      ++runs;
      began.release();
      may_end.acquire();
    };
  }
  struct Pending {
    std::binary_semaphore done{0};
    Result<std::int64_t> reply = 0;
    Result<std::int64_t> wait() {
      done.acquire();
      return reply;
    }
  };
  template <class M>
  std::unique_ptr<Pending> start(Actors& actors, const std::string& name, const M& message) {
    auto pending = std::make_unique<Pending>();
    actors.of<Counter>(name).call_async(message, {.timeout = 60s}, [p = pending.get()](Result<std::int64_t> reply) {
      p->reply = std::move(reply);
      p->done.release();
    });
    return pending;
  }
};

TEST_F(ActorLockTest, MessagesWaitWhileItIsLockedAndUrgentOnesDoNot) {  // DGEN-U11, DGEN-U12
  Actors actors = node();
  Actors pusher = open();
  auto slow = start(actors, "a", Slow{100});
  began.acquire();
  auto waiting_inline = start(actors, "a", Add{1});
  auto waiting_pushed = start(pusher, "a", Add{1});
  EXPECT_TRUE(eventually([&] { return actors.actor("counter", "a").inspect()->mailbox_length == 2; }));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}, {.way = Way::kPriority}).value(), 0);
  EXPECT_FALSE(actors.of<Counter>("a").info(Slow{})) << "it is locked already: DGEN-B3";
  auto info = actors.actor("counter", "a").inspect();
  ASSERT_TRUE(info->locked) << "DGEN-B14";
  EXPECT_TRUE(info->oldest);
  may_end.release();
  EXPECT_EQ(slow->wait().value(), 100);
  EXPECT_GT(waiting_inline->wait().value(), 100);
  EXPECT_GT(waiting_pushed->wait().value(), 100);
  EXPECT_FALSE(actors.actor("counter", "a").inspect()->locked);
}

TEST_F(ActorLockTest, ACastAndAnInfoMayTakeTheLock) {  // DGEN-B5
  Actors actors = node();
  may_end.release(2);
  ASSERT_TRUE(actors.of<Counter>("a").cast(Slow{5}));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 5);
  ASSERT_TRUE(actors.of<Counter>("a").info(Slow{5}));
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 10);
  EXPECT_FALSE(actors.actor("counter", "a").inspect()->locked);
}

TEST_F(ActorLockTest, AFailureUnderTheLockFreesItAndIsNotTriedAgain) {  // DGEN-U13
  Actors actors = node();
  counter.hooks->locked = [this](Turn&) {
    ++runs;
    throw std::runtime_error("broke");
  };
  auto failed = actors.of<Counter>("a").call(Slow{5});
  EXPECT_EQ(code_of(failed), ErrorCode::kHandlerFailed);
  EXPECT_NE(failed.error().message.find("broke"), std::string::npos);
  EXPECT_FALSE(actors.actor("counter", "a").inspect()->locked) << "with the answer, not at the next message";
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 0);
  EXPECT_EQ(runs, 1);
}

/// Two entries, so that what is done under the lock and what urgent messages do need not meet.
struct Pair {
  static constexpr std::string_view kKind = "pair";
  struct State {
    std::int64_t left = 0;
    std::int64_t right = 0;
    PERDURE_DESCRIBE(State, left, right)
  };
  struct Left {
    using Reply = std::int64_t;
    PERDURE_DESCRIBE(Left)
  };
  struct Right {
    using Reply = std::int64_t;
    PERDURE_DESCRIBE(Right)
  };
  using Messages = MessageList<Left, Right>;
  std::function<void()> locked;
  Answer<std::int64_t> handle_call(const Left&, State& state, Turn&) { return ++state.left; }
  Answer<std::int64_t> handle_call(const Right&, State&, Turn&) { return take_lock; }
  Answer<std::int64_t> handle_locked(const Right&, State& state, Turn&) {
    locked();
    return ++state.right;
  }
  Answer<std::int64_t> handle_call(const Get&, State& state, Turn&) { return state.left * 10 + state.right; }
};

TEST_F(ActorLockTest, WhatUrgentMessagesWroteMeanwhileIsMerged) {  // DGEN-B4
  Actors actors = open();
  Pair pair;
  pair.locked = [this] {
    began.release();
    may_end.acquire();
  };
  ASSERT_TRUE(actors.serve(pair));
  std::thread caller([&] { EXPECT_EQ(actors.of<Pair>("a").call(Pair::Right{}, {.timeout = 60s}).value(), 1); });
  began.acquire();
  EXPECT_EQ(actors.of<Pair>("a").call(Pair::Left{}, {.way = Way::kPriority}).value(), 1);
  may_end.release();
  caller.join();
  EXPECT_EQ(actors.of<Pair>("a").state().value()->left, 1);
  EXPECT_EQ(actors.of<Pair>("a").state().value()->right, 1);
}

TEST_F(ActorLockTest, TheSameEntryChangedOnBothSidesIsAConflict) {  // DGEN-B4
  Actors actors = node();
  auto slow = start(actors, "a", Slow{100});
  began.acquire();
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}, {.way = Way::kPriority}).value(), 1);
  may_end.release();
  EXPECT_EQ(code_of(slow->wait()), ErrorCode::kConflict);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 1) << "and the lock is free";
}

TEST_F(ActorLockTest, AnOperatorMayUnlock) {  // DGEN-B1
  Actors actors = node();
  std::binary_semaphore told{0};
  counter.hooks->locked = [&](Turn& turn) {
    began.release();
    turn.cancel_signal().then([&] { told.release(); });
    may_end.acquire();
  };
  auto slow = start(actors, "a", Slow{100});
  began.acquire();
  ASSERT_TRUE(actors.actor("counter", "a").unlock());
  EXPECT_EQ(code_of(slow->wait()), ErrorCode::kStaleToken);
  told.acquire();
  EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
  may_end.release();
  ASSERT_TRUE(actors.close());
  EXPECT_EQ(node().of<Counter>("a").state().value()->count, 1) << "what was done under the lost lock changes nothing";
  EXPECT_EQ(code_of(open().actor("counter", "a").unlock()), ErrorCode::kNotFound);
}

TEST_F(ActorLockTest, TheEndOfItsSessionFreesItAndTellsTheCaller) {  // DGEN-B1
  Actors other = node();
  Actors pusher = open();
  auto dying = std::make_unique<Actors>(open());
  ASSERT_TRUE(dying->serve(counter));
  // Called where it is served, so that it is known who holds the lock.
  auto slow = start(*dying, "a", Slow{100});
  began.acquire();
  auto behind = start(pusher, "a", Add{1});
  SessionId holder = dying->actor("counter", "a").inspect()->locked->owner;
  // As another node does that has seen it dead.
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    session::end_rows(txn, holder);
  }));
  EXPECT_EQ(code_of(slow->wait()), ErrorCode::kStaleToken);
  EXPECT_EQ(behind->wait().value(), 1);
  may_end.release();
  ASSERT_TRUE(dying->close());
  EXPECT_EQ(pusher.of<Counter>("a").call(Get{}).value(), 1);
}

TEST_F(ActorLockTest, TheEndOfItsSessionTellsTheCallerThoughNoMessageFollows) {  // DGEN-B1
  Actors other = node();
  Actors dying = open();
  ASSERT_TRUE(dying.serve(counter));
  auto slow = start(dying, "a", Slow{100});
  began.acquire();
  SessionId holder = dying.actor("counter", "a").inspect()->locked->owner;
  ASSERT_TRUE(store.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    session::end_rows(txn, holder);
  }));
  EXPECT_EQ(code_of(slow->wait()), ErrorCode::kStaleToken);
  may_end.release();
  ASSERT_TRUE(dying.close());
}

TEST_F(ActorLockTest, ClosingGivesTheLockBack) {  // DGEN-B1
  Actors actors = node();
  counter.hooks->locked = [this](Turn& turn) {
    turn.cancel_signal().then([this] { may_end.release(); });
    began.release();
    may_end.acquire();
  };
  auto slow = start(actors, "a", Slow{5});
  began.acquire();
  ASSERT_TRUE(actors.close());
  EXPECT_EQ(node().of<Counter>("a").call(Get{}).value(), 5) << "it was told, and ended in time";
}

TEST_F(ActorLockTest, KillAndResetFreeTheLock) {  // DGEN-B2, DGEN-B3
  for (bool kill : {true, false}) {
    Actors actors = node();
    auto slow = start(actors, "a", Slow{100});
    began.acquire();
    Actor a = actors.actor("counter", "a");
    SessionId holder = a.inspect()->locked->owner;
    Bytes held = session::held_key(holder, kHeldLock);
    EXPECT_EQ(rows(held).size(), 1U);
    ASSERT_TRUE(kill ? a.kill() : a.reset());
    EXPECT_TRUE(rows(held).empty()) << "nothing is left for whoever sweeps after the holder";
    EXPECT_EQ(actors.of<Counter>("a").call(Add{1}).value(), 1);
    auto reply = slow->wait();
    EXPECT_EQ(code_of(reply), kill ? ErrorCode::kActorGone : ErrorCode::kStaleToken);
    may_end.release();
    ASSERT_TRUE(actors.close());
    EXPECT_EQ(*node().of<Counter>("a").call(Get{}), 1);
    ASSERT_TRUE(open().actor("counter", "a").kill());
  }
}

TEST_F(ActorLockTest, StopFromOutsideFreesTheLockAndTellsItsCaller) {  // DGEN-U7, DGEN-B3, DGEN-B13
  Actors actors = node();
  auto slow = start(actors, "a", Slow{100});
  began.acquire();
  ASSERT_TRUE(actors.actor("counter", "a").stop("enough"));
  EXPECT_EQ(code_of(slow->wait()), ErrorCode::kActorGone);
  EXPECT_EQ(actors.of<Counter>("a").call(Get{}).value(), 0);
  may_end.release();
  ASSERT_TRUE(actors.close());
  // Nothing else was changed that it could be in conflict with.
  EXPECT_EQ(node().of<Counter>("a").call(Get{}).value(), 0) << "what was done under the lost lock changes nothing";
}

}  // namespace
}  // namespace perdure::actor
