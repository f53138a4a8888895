#include "perdure/session.h"

#include <gtest/gtest.h>

#include "runtime/latch.h"
#include "store/store_test_util.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;

class SessionTest : public ::testing::Test {
 protected:
  Session open(std::string name = "test", Duration ttl = 5s) {
    auto session = Session::open(store_, {.ttl = ttl, .renew = ttl / 4, .name = std::move(name)});
    EXPECT_TRUE(session) << to_string(session.error());
    return std::move(*session);
  }
  template <class T>
  static ErrorCode code_of(const Result<T>& result) {
    EXPECT_FALSE(result.has_value());
    return result ? ErrorCode::kClosed : result.error().code;
  }
  Result<void> write(const Lease& lease, std::string_view value) {
    return store_.transact([&](Transaction& txn) {
      lease.fence(txn);
      txn.set("written", value);
    });
  }
  std::size_t rows() {
    // Everything, perdure's own rows included.
    return store_.verify()->rows;
  }

  Store store_ = fresh_store();
};

TEST_F(SessionTest, ALeaseIsHeldByOneSessionAtATime) {
  Session a = open("a"), b = open("b");
  auto lease = a.acquire("leader");
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_TRUE(lease->held());
  auto refused = b.acquire("leader");
  EXPECT_EQ(code_of(refused), ErrorCode::kDeadline);
  EXPECT_NE(refused.error().message.find("(a)"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(lease->release());
  EXPECT_FALSE(lease->held());
  EXPECT_TRUE(b.acquire("leader"));
}

TEST_F(SessionTest, WhoWaitsIsWokenByTheRelease) {
  Session a = open("a"), b = open("b");
  auto lease = a.acquire("leader");
  ASSERT_TRUE(lease);
  Promise<Result<Lease>> got;
  b.acquire_async("leader", 1h, [&](Result<Lease> result) { got.set(std::move(result)); });
  ASSERT_TRUE(lease->release());
  auto taken = got.take();
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_GT(taken->token().stamp, lease->token().stamp);
}

TEST_F(SessionTest, WaitersOfOneSessionAreServedInOrder) {
  Session session = open();
  auto lease = session.acquire("x");
  ASSERT_TRUE(lease);
  Promise<Result<Lease>> second, third;
  session.acquire_async("x", 1h, [&](Result<Lease> result) { second.set(std::move(result)); });
  session.acquire_async("x", 1h, [&](Result<Lease> result) { third.set(std::move(result)); });
  EXPECT_EQ(code_of(session.acquire("x")), ErrorCode::kDeadline);
  ASSERT_TRUE(lease->release());
  auto next = second.take();
  ASSERT_TRUE(next);
  ASSERT_TRUE(next->release());
  auto last = third.take();
  ASSERT_TRUE(last);
  EXPECT_GT(last->token().stamp, next->token().stamp);
}

TEST_F(SessionTest, WaitingEndsInTime) {
  Session a = open("a"), b = open("b");
  ASSERT_TRUE(a.acquire("leader"));
  EXPECT_EQ(code_of(b.acquire("leader", 20ms)), ErrorCode::kDeadline);
  EXPECT_EQ(code_of(a.acquire("leader", 20ms)), ErrorCode::kDeadline);
}

TEST_F(SessionTest, StoppingFreesEverything) {
  Session a = open("a"), b = open("b");
  std::vector<Lease> leases;
  for (int i = 0; i < 250; ++i) leases.push_back(*a.acquire("lease " + std::to_string(i)));
  EXPECT_TRUE(a.stop());
  EXPECT_TRUE(a.stop()) << "again";
  for (Lease& lease : leases) {
    EXPECT_FALSE(lease.held());
    EXPECT_TRUE(lease.cancel_signal().cancelled());
  }
  EXPECT_EQ(code_of(write(leases[0], "x")), ErrorCode::kStaleToken);
  for (int i = 0; i < 250; ++i) EXPECT_TRUE(b.acquire("lease " + std::to_string(i)));
  EXPECT_EQ(code_of(a.acquire("another")), ErrorCode::kClosed);
}

TEST_F(SessionTest, StoppingGivesHoldersAGrace) {
  Session session = open();
  auto lease = session.acquire("job");
  ASSERT_TRUE(lease);
  Lease job = *lease;
  job.cancel_signal().then([&] {
    EXPECT_TRUE(job.held()) << "there is still time to finish";
    job.release_async([](Result<void> released) { EXPECT_TRUE(released); });
  });
  EXPECT_TRUE(session.stop(1h)) << "returns as soon as nothing is held";
}

TEST_F(SessionTest, NothingIsLeftBehind) {
  std::size_t before;
  {
    Session first = open();
    before = rows();
  }
  for (int i = 0; i < 3; ++i) {
    Session session = open();
    ASSERT_TRUE(session.acquire("a"));
    auto released = session.acquire("b");
    ASSERT_TRUE(released->release());
    ASSERT_TRUE(session.stop());
  }
  Session last = open();
  // One session: its open row and its beat, the number of the store, and nothing of those before.
  EXPECT_EQ(rows(), before);
}

TEST_F(SessionTest, AFenceLetsOnlyTheHolderCommit) {
  Session a = open("a"), b = open("b");
  auto first = a.acquire("x");
  EXPECT_TRUE(write(*first, "first"));
  Token stale = first->token();
  ASSERT_TRUE(first->release());
  EXPECT_EQ(code_of(write(*first, "late")), ErrorCode::kStaleToken);
  auto second = b.acquire("x");
  auto handed = [&](const Token& token, std::string_view name = "x") {
    return store_.transact([&](Transaction& txn) {
      fence(txn, name, token);
      txn.set("written", "by token");
    });
  };
  EXPECT_EQ(code_of(handed(stale)), ErrorCode::kStaleToken);
  EXPECT_TRUE(handed(second->token()));
  EXPECT_EQ(code_of(handed(second->token(), "y")), ErrorCode::kStaleToken);
}

TEST_F(SessionTest, TokensAreTextThatSortsByTime) {
  Session session = open();
  auto lease = session.acquire("x");
  std::string first = lease->token().to_string();
  EXPECT_EQ(Token::parse(first), lease->token());
  ASSERT_TRUE(lease->release());
  EXPECT_GT(session.acquire("x")->token().to_string(), first);
  for (std::string wrong : {std::string(), std::string("x"), first + "0", first.substr(1), "G" + first.substr(1)})
    EXPECT_EQ(code_of(Token::parse(wrong)), ErrorCode::kInvalidArgument) << wrong;
}

TEST_F(SessionTest, ListsWhoIsThereAndWhatTheyHold) {
  Session a = open("a"), b = open("b");
  for (const char* name : {"1", "2", "3"}) ASSERT_TRUE(b.acquire(name));
  auto listed = store_.read([&](Reader& reader) {
    auto sessions = Session::list(reader);
    EXPECT_EQ(sessions.size(), 2u);
    EXPECT_EQ(sessions[0].name, "a");
    EXPECT_EQ(sessions[1].id, b.id());
    EXPECT_EQ(sessions[1].ttl, 5s);
    EXPECT_TRUE(Session::leases_of(reader, a.id()).empty());
    auto page = Session::leases_of(reader, b.id(), {.limit = 2});
    EXPECT_EQ(page.size(), 2u);
    auto rest = Session::leases_of(reader, b.id(), {.limit = 2, .after = page[1].name});
    EXPECT_EQ(rest.size(), 1u);
    EXPECT_EQ(rest[0].name, "3");
    EXPECT_EQ(Session::holder_of(reader, "3")->session, b.id());
    EXPECT_EQ(Session::holder_of(reader, "3")->token, rest[0].token);
    EXPECT_FALSE(Session::holder_of(reader, "4"));
  });
  EXPECT_TRUE(listed);
}

// Bad input: one clear error, and nothing changes.

TEST_F(SessionTest, RefusesTimesThatCannotWork) {
  std::size_t before = rows();
  for (auto [ttl, renew] : std::vector<std::pair<Duration, Duration>>{
           {1s, 1s}, {1s, 2s}, {1s, 0s}, {1s, -1s}, {1ms, 100us}, {48h, 1s}, {0s, -1s}}) {
    auto session = Session::open(store_, {.ttl = ttl, .renew = renew});
    EXPECT_EQ(code_of(session), ErrorCode::kInvalidArgument) << ttl.count() << " " << renew.count();
  }
  EXPECT_EQ(rows(), before);
}

TEST_F(SessionTest, RefusesNamesThatCannotBe) {
  Session session = open();
  std::size_t before = rows();
  for (const std::string& name : {std::string(), std::string(kLeaseNameMax + 1, 'x'), std::string("a\nb"),
                                  std::string("\xff"), std::string("a\0b", 3)})
    EXPECT_EQ(code_of(session.acquire(name)), ErrorCode::kInvalidArgument) << name.size();
  EXPECT_EQ(rows(), before);
  EXPECT_TRUE(session.acquire(std::string(kLeaseNameMax, 'x')));
}

TEST_F(SessionTest, RefusesATokenOfAnotherStore) {
  Session session = open();
  auto lease = session.acquire("x");
  Store other = fresh_store();
  auto elsewhere = Session::open(other);
  ASSERT_TRUE(elsewhere->acquire("x"));
  std::size_t before = other.verify()->rows;
  auto refused = other.transact([&](Transaction& txn) {
    fence(txn, "x", lease->token());
    txn.set("a", "b");
  });
  EXPECT_EQ(code_of(refused), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("another store"), std::string::npos);
  EXPECT_EQ(other.verify()->rows, before);
}

TEST_F(SessionTest, ReleaseByWhoDoesNotHoldItChangesNothing) {
  Session a = open("a"), b = open("b");
  auto mine = a.acquire("x");
  Lease copy = *mine;
  ASSERT_TRUE(a.stop());
  auto theirs = b.acquire("x");
  ASSERT_TRUE(theirs);
  EXPECT_FALSE(copy.release());
  EXPECT_TRUE(theirs->held());
  EXPECT_TRUE(write(*theirs, "still"));
}

TEST_F(SessionTest, ASessionOutlivesItsClosedStoreWithoutHarm) {
  Session session = open();
  auto lease = session.acquire("x");
  store_.close();
  EXPECT_FALSE(session.alive());
  EXPECT_FALSE(lease->held());
  EXPECT_EQ(code_of(session.acquire("y")), ErrorCode::kClosed);
  EXPECT_FALSE(lease->release());
  EXPECT_EQ(code_of(session.stop()), ErrorCode::kClosed);
}

TEST_F(SessionTest, BlockingCallsAreRefusedInCallbacks) {
  Session session = open();
  auto lease = session.acquire("x");
  Promise<int> tested;
  store_.transact_async([](Transaction& txn) { txn.set("a", "b"); },
                        [&](Result<void>) {
                          EXPECT_EQ(code_of(session.acquire("y")), ErrorCode::kInvalidArgument);
                          EXPECT_EQ(code_of(session.stop()), ErrorCode::kInvalidArgument);
                          EXPECT_EQ(code_of(lease->release()), ErrorCode::kInvalidArgument);
                          EXPECT_EQ(code_of(Session::open(store_)), ErrorCode::kInvalidArgument);
                          tested.set(1);
                        });
  tested.take();
  EXPECT_TRUE(lease->held());
}

}  // namespace
}  // namespace perdure
