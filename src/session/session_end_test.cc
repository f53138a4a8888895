// How sessions end: by stop, by loss, with their store, in the middle of something, and in their own callbacks.
#include <gtest/gtest.h>

#include <atomic>

#include "perdure/session.h"
#include "runtime/latch.h"
#include "session/rows.h"
#include "session/session_access.h"
#include "store/store_test_util.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;

/// An answer that may never come, which is then the failure.
template <class T>
class Answer {
 public:
  auto done() {
    return [this](Result<T> result) {
      result_.emplace(std::move(result));
      given_.set();
    };
  }
  Result<T> take() {
    if (!given_.wait_for(kPatience)) return fail(ErrorCode::kNotFound, "no answer");
    return std::move(*result_);
  }
  bool given() { return given_.is_set(); }

 private:
  std::optional<Result<T>> result_;
  Latch given_;
};

class SessionEnd : public ::testing::Test {
 protected:
  Session open(std::function<void(const Error&)> on_lost = {}) {
    auto session = Session::open(store_, {.on_lost = std::move(on_lost)});
    EXPECT_TRUE(session) << to_string(session.error());
    return std::move(*session);
  }
  template <class T>
  static ErrorCode code_of(const Result<T>& result) {
    return result ? ErrorCode::kNotFound : result.error().code;
  }
  /// What another does to a session that it takes for dead.
  void end_by_force(SessionId id) {
    auto ended = store_.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      txn.clear(session::open_key(id));
      txn.clear(session::beat_key(id));
      txn.set(session::ended_key(id), {});
    });
    ASSERT_TRUE(ended);
  }

  Store store_ = fresh_store();
};

TEST_F(SessionEnd, ClosingTheStoreAnswersWhoWaitsForALease) {
  Session a = open(), b = open();
  auto lease = a.acquire("x");
  Answer<Lease> other, own;
  b.acquire_async("x", 1h, other.done());
  a.acquire_async("x", Duration::max(), own.done());
  store_.close();
  EXPECT_EQ(code_of(other.take()), ErrorCode::kClosed);
  EXPECT_EQ(code_of(own.take()), ErrorCode::kClosed);
  EXPECT_TRUE(lease->cancel_signal().cancelled());
}

TEST_F(SessionEnd, ClosingTheStoreAnswersWhoWaitsForAStop) {
  Session session = open();
  auto lease = session.acquire("x");
  Answer<void> stopped;
  session.stop_async(1h, stopped.done());
  store_.close();
  EXPECT_EQ(code_of(stopped.take()), ErrorCode::kClosed);
}

TEST_F(SessionEnd, ClosingTheStoreInTheMiddleAnswersEverybody) {
  for (int turn = 0; turn < 30; ++turn) {
    Store store = fresh_store();
    Session session = *Session::open(store);
    Answer<Lease> leases[8];
    Answer<void> released, stopped;
    Lease held = *session.acquire("held");
    for (int i = 0; i < 8; ++i) session.acquire_async(std::to_string(i % 4), 1h, leases[i].done());
    held.release_async(released.done());
    if (turn % 2) session.stop_async(1h, stopped.done());
    store.close();
    for (auto& lease : leases) EXPECT_NE(code_of(lease.take()), ErrorCode::kDeadline);
    (void)released.take();
    EXPECT_TRUE(released.given());
    if (turn % 2) (void)stopped.take();
    EXPECT_TRUE(stopped.given() || turn % 2 == 0);
  }
}

TEST_F(SessionEnd, StoppingIsNoLoss) {
  std::atomic<int> lost = 0;
  for (int i = 0; i < 300; ++i) {
    Session session = open([&](const Error&) { ++lost; });
    ASSERT_TRUE(session.acquire("x"));
    ASSERT_TRUE(session.stop());
  }
  EXPECT_EQ(lost, 0);
}

TEST_F(SessionEnd, AGraceWithoutEndIsWaitedFor) {
  Session session = open();
  auto lease = session.acquire("x");
  Answer<void> stopped;
  session.stop_async(Duration::max(), stopped.done());
  EXPECT_TRUE(lease->held());
  EXPECT_FALSE(stopped.given());
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(stopped.take());
}

TEST_F(SessionEnd, ALossIsToldToEverybodyOnce) {
  std::atomic<int> lost = 0;
  Latch told;
  Session other = open(), session = open([&](const Error& why) {
                            EXPECT_EQ(why.code, ErrorCode::kStaleToken);
                            ++lost;
                            told.set();
                          });
  auto held = session.acquire("held"), theirs = other.acquire("theirs");
  std::atomic<int> cancelled = 0;
  held->cancel_signal().then([&] { ++cancelled; });
  Answer<Lease> waiting;
  session.acquire_async("theirs", 1h, waiting.done());
  end_by_force(session.id());
  ASSERT_TRUE(told.wait_for(kPatience));
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(code_of(waiting.take()), ErrorCode::kStaleToken);
  EXPECT_EQ(code_of(held->release()), ErrorCode::kStaleToken);
  EXPECT_EQ(code_of(session.acquire("more")), ErrorCode::kStaleToken);
  EXPECT_FALSE(session.alive());
  EXPECT_TRUE(session.stop()) << "there is nothing left to end";
  EXPECT_EQ(lost, 1);
  EXPECT_TRUE(other.acquire("held"));
}

TEST_F(SessionEnd, WhoListensIsToldOfALossBetweenTheCancelSignalsAndOnLost) {
  std::vector<std::string> order;
  Latch lost;
  Session session = open([&](const Error&) {
    order.emplace_back("on_lost");
    lost.set();
  });
  auto lease = session.acquire("x");
  lease->cancel_signal().then([&] { order.emplace_back("cancelled"); });
  auto impl = SessionAccess::impl(session);
  impl->on_over([&] {
    EXPECT_FALSE(impl->alive());
    order.emplace_back("over");
  });
  EXPECT_TRUE(impl->alive());
  end_by_force(session.id());
  ASSERT_TRUE(lost.wait_for(kPatience));
  EXPECT_EQ(order, (std::vector<std::string>{"cancelled", "over", "on_lost"}));
  impl->on_over([&] { order.emplace_back("at once"); });
  EXPECT_EQ(order.back(), "at once");
}

TEST_F(SessionEnd, WhoListensIsToldOnceOfAStopAndOfClosing) {
  int told = 0;
  {
    Session session = open();
    auto lease = session.acquire("x");
    SessionAccess::impl(session)->on_over([&] {
      EXPECT_TRUE(lease->cancel_signal().cancelled());
      EXPECT_TRUE(lease->held()) << "there is still time to finish";
      ++told;
    });
    Answer<void> stopped;
    session.stop_async(1h, stopped.done());
    EXPECT_EQ(told, 1);
    ASSERT_TRUE(lease->release());
    EXPECT_TRUE(stopped.take());
  }
  EXPECT_EQ(told, 1);
  std::shared_ptr<SessionImpl> dropped;
  {
    Session session = open();
    dropped = SessionAccess::impl(session);
    dropped->on_over([&] { ++told; });
  }
  EXPECT_EQ(told, 2);
  Session last = open();
  SessionAccess::impl(last)->on_over([&] { ++told; });
  store_.close();
  EXPECT_EQ(told, 3);
  dropped->on_over([&] { ++told; });
  EXPECT_EQ(told, 4) << "at once, however long it has been over";
  EXPECT_FALSE(dropped->alive());
}

TEST_F(SessionEnd, OnLostMayDestroyTheSession) {
  std::optional<Session> session;
  Latch destroyed;
  session.emplace(open([&](const Error&) {
    session.reset();
    destroyed.set();
  }));
  ASSERT_TRUE(session->acquire("x"));
  end_by_force(session->id());
  EXPECT_TRUE(destroyed.wait_for(kPatience));
}

TEST_F(SessionEnd, OnLostMayReopenTheSession) {
  std::optional<Session> session;
  Answer<Session> reopened;
  std::atomic<bool> first = true;
  session.emplace(open([&](const Error&) {
    if (first.exchange(false)) session->reopen_async(reopened.done());
  }));
  SessionId old = session->id();
  auto lease = session->acquire("x");
  end_by_force(old);
  auto anew = reopened.take();
  ASSERT_TRUE(anew) << to_string(anew.error());
  EXPECT_NE(anew->id(), old);
  auto again = anew->acquire("x");
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_GT(again->token().stamp, lease->token().stamp);
}

TEST_F(SessionEnd, ASessionKeepsItsStoreOpen) {
  auto store = std::make_optional(fresh_store());
  Session session = *Session::open(*store);
  store.reset();
  auto lease = session.acquire("x");
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_TRUE(lease->release());
}

TEST_F(SessionEnd, ALeaseInItsOwnCallbackIsNotKeptForEver) {
  Session session = open();
  auto shared = std::make_shared<int>(1);
  {
    auto lease = session.acquire("x");
    lease->cancel_signal().then([copy = *lease, shared] { EXPECT_TRUE(copy.held()); });
    ASSERT_TRUE(lease->release());
    lease->cancel_signal().then([copy = *lease, shared] { EXPECT_TRUE(copy.held()); });
  }
  EXPECT_EQ(shared.use_count(), 1);
}

TEST_F(SessionEnd, ASessionThatNobodyRenewsIsEndedInTime) {
  Session session = open();
  // As a process that died before its first renewal left it, on an engine that cannot tell.
  Receipt receipt;
  auto made = store_.transact(
      [](Transaction& txn) {
        SystemAccess access(txn);
        auto key = [](std::string_view table) {
          return tuple::pack_stamped_onto(kSystemKeys, "session", table, tuple::IncompleteStamp{});
        };
        txn.set_stamped(key("open"), session::OpenRow{200ms, {}, "dead"}.encode());
        txn.set_stamped(key("beat"), encode_counter(0));
      },
      {}, &receipt);
  ASSERT_TRUE(made);
  ASSERT_TRUE(store_.transact([&](Transaction& txn) {
    SystemAccess access(txn);
    txn.set(session::lease_key("x"), session::LeaseRow{{receipt.stamp()}, receipt.stamp()}.encode());
  }));
  auto lease = session.acquire("x", kPatience);
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_GT(lease->token().stamp, receipt.stamp());
}

}  // namespace
}  // namespace perdure
