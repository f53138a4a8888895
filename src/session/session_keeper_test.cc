#include "session/session_keeper.h"

#include <gtest/gtest.h>

#include <atomic>

#include "perdure/testing.h"
#include "runtime/latch.h"
#include "session/rows.h"
#include "store/store_test_util.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;

constexpr Duration kPatience = 60s;

/// What another does to a session that it takes for dead.
void end_by_force(Transaction& txn, SessionId id) {
  SystemAccess access(txn);
  session::end_rows(txn, id);
}

class Keeper : public ::testing::Test {
 protected:
  void start(SessionOptions options = {}) {
    sim_.on_start([this, options](Node& node) {
      SessionKeeper::open(node.store(), options, [this, &node](Result<std::shared_ptr<SessionKeeper>> opened) {
        ASSERT_TRUE(opened) << to_string(opened.error());
        keeper_ = *opened;
        node.keep(keeper_);
        listen("");
      });
    });
    sim_.run_for(1s);
    ASSERT_TRUE(keeper_);
  }
  void listen(const std::string& name) {
    keeper_->add_listener({.opened =
                               [this, name](const std::shared_ptr<SessionImpl>& session) {
                                 EXPECT_NE(session, nullptr);
                                 ids_.push_back(session->id());
                                 heard_.push_back(name + "opened");
                               },
                           .over = [this, name] { heard_.push_back(name + "over"); }});
  }
  void lose() {
    ASSERT_TRUE(keeper_->id());
    sim_.node(0)->store().transact_async([id = *keeper_->id()](Transaction& txn) { end_by_force(txn, id); },
                                         [](Result<void> ended) { EXPECT_TRUE(ended); });
  }
  bool heard(const std::vector<std::string>& what, Duration at_most) {
    return sim_.run_until([&] { return heard_ == what; }, at_most);
  }
  std::vector<SessionInfo> sessions() {
    return sim_.read([](Reader& reader) { return Session::list(reader); }).value();
  }
  std::size_t rows(std::string_view table) {
    auto found = sim_.read([&](Reader& reader) {
      SystemAccess access(reader);
      return reader.get_range(session::table_range(table)).size();
    });
    return found.value();
  }

  Simulation sim_{{.nodes = 1}};
  std::shared_ptr<SessionKeeper> keeper_;
  std::vector<std::string> heard_;
  std::vector<SessionId> ids_;
};

TEST_F(Keeper, OpensAnotherInThePlaceOfALostOne) {
  start();
  auto first = keeper_->current();
  ASSERT_TRUE(first);
  EXPECT_EQ(heard_, std::vector<std::string>{"opened"});
  lose();
  EXPECT_TRUE(heard({"opened", "over", "opened"}, 1s));
  auto second = keeper_->current();
  ASSERT_TRUE(second);
  EXPECT_NE(first, second);
  EXPECT_GT(second->id(), first->id());
  EXPECT_EQ(ids_, (std::vector<SessionId>{first->id(), second->id()}));
  EXPECT_FALSE(first->alive());
  ASSERT_EQ(sessions().size(), 1u);
  EXPECT_EQ(sessions()[0].id, second->id());
}

TEST_F(Keeper, GoesOnTryingWhileTheStoreIsOutOfReach) {
  start();
  sim_.cut_off(0, 60s);
  EXPECT_TRUE(heard({"opened", "over"}, 5s));
  EXPECT_EQ(keeper_->current(), nullptr);
  EXPECT_EQ(keeper_->id(), std::nullopt);
  sim_.run_for(50s);
  EXPECT_EQ(heard_.size(), 2u);
  EXPECT_TRUE(heard({"opened", "over", "opened"}, 15s));
  EXPECT_TRUE(keeper_->current());
  sim_.run_for(10s);
  EXPECT_EQ(sessions().size(), 1u) << "and no leftovers of attempts";
}

TEST_F(Keeper, HasNoneRightAfterAPauseThatWasTooLong) {
  start();
  sim_.pause(0, 20s);
  sim_.run_for(19s);
  EXPECT_EQ(heard_, std::vector<std::string>{"opened"}) << "nothing of it runs";
  EXPECT_EQ(keeper_->current(), nullptr) << "whoever asks first";
  EXPECT_TRUE(heard({"opened", "over", "opened"}, 5s));
}

TEST_F(Keeper, EveryListenerHearsItInOrder) {
  start();
  listen("b ");
  EXPECT_EQ(heard_, (std::vector<std::string>{"opened", "b opened"})) << "at once";
  heard_.clear();
  lose();
  EXPECT_TRUE(heard({"over", "b over", "opened", "b opened"}, 1s));
  heard_.clear();
  sim_.cut_off(0, 60s);
  EXPECT_TRUE(heard({"over", "b over"}, 10s));
  listen("c ");
  EXPECT_EQ(heard_.size(), 2u) << "there is none";
  EXPECT_TRUE(heard({"over", "b over", "opened", "b opened", "c opened"}, 90s));
}

TEST_F(Keeper, TheUserIsToldOfEachLossAfterTheListeners) {
  start({.on_lost = [this](const Error& why) {
    EXPECT_EQ(why.code, ErrorCode::kStaleToken);
    heard_.emplace_back("lost");
  }});
  lose();
  EXPECT_TRUE(heard({"opened", "over", "lost", "opened"}, 1s));
  lose();
  EXPECT_TRUE(heard({"opened", "over", "lost", "opened", "over", "lost", "opened"}, 1s));
}

TEST_F(Keeper, AListenerMayCloseItAndAddOthers) {
  start();
  bool closed = false;
  keeper_->add_listener({.opened =
                             [&](const auto&) {
                               keeper_->add_listener({.opened = [&](const auto&) {
                                 keeper_->close_async(0s, [&](Result<void> result) {
                                   EXPECT_TRUE(result);
                                   closed = true;
                                 });
                               }});
                             },
                         .over = {}});
  EXPECT_TRUE(sim_.run_until([&] { return closed; }, 5s));
  EXPECT_EQ(heard_, (std::vector<std::string>{"opened", "over"}));
}

TEST_F(Keeper, SweepersAreOnEverySession) {
  start();
  int swept = 0;
  auto hold = [&](std::string_view kind) {
    auto id = *keeper_->id();
    sim_.node(0)->store().transact_async(
        [id, kind](Transaction& txn) {
          SystemAccess access(txn);
          txn.set(session::held_key(id, kind, 1), "value");
        },
        [&](Result<void> held) {
          EXPECT_TRUE(held);
          lose();
        });
  };
  keeper_->add_sweeper("thing", [&](Transaction&, SessionId, BytesView, BytesView) { ++swept; });
  hold("thing");
  EXPECT_TRUE(sim_.run_until([&] { return ids_.size() == 2 && rows("held") == 0; }, 5s));
  EXPECT_GE(swept, 1);
  hold("thing");
  EXPECT_TRUE(sim_.run_until([&] { return ids_.size() == 3 && rows("held") == 0; }, 5s));
  EXPECT_GE(swept, 2);
  EXPECT_TRUE(sim_.run_until([&] { return rows("ended") == 0; }, 5s));
}

TEST_F(Keeper, ClosingStopsTheSessionAndOpensNoOther) {
  start();
  int closed = 0;
  auto done = [&](Result<void> result) {
    EXPECT_TRUE(result);
    ++closed;
  };
  keeper_->close_async(0s, done);
  EXPECT_EQ(heard_, (std::vector<std::string>{"opened", "over"})) << "at once";
  keeper_->close_async(0s, done);
  EXPECT_TRUE(sim_.run_until([&] { return closed == 2; }, 1s));
  EXPECT_TRUE(sessions().empty());
  keeper_->close_async(0s, done);
  EXPECT_TRUE(sim_.run_until([&] { return closed == 3; }, 1s)) << "again";
  EXPECT_EQ(keeper_->current(), nullptr);
  sim_.run_for(30s);
  EXPECT_EQ(heard_.size(), 2u);
  EXPECT_TRUE(sessions().empty());
}

TEST_F(Keeper, ClosingWhileItIsReopeningLeavesNoSession) {
  start();
  // At any moment of the reopening: while an attempt is under way, and in the pause between two.
  for (int turn = 0; turn < 60; ++turn) {
    Simulation sim({.seed = static_cast<std::uint64_t>(turn + 1), .nodes = 1});
    std::shared_ptr<SessionKeeper> keeper;
    int opened = 0, closed = 0;
    sim.on_start([&](Node& node) {
      SessionKeeper::open(node.store(), {}, [&](Result<std::shared_ptr<SessionKeeper>> made) {
        keeper = *made;
        node.keep(keeper);
        keeper->add_listener({.opened = [&](const auto&) { ++opened; }});
      });
    });
    sim.run_for(1s);
    sim.cut_off(0, turn % 3 == 0 ? Duration(5s) : Duration(30s));
    sim.run_for(Duration(4500ms) + Duration(turn * 37ms));
    keeper->close_async(0s, [&](Result<void>) { ++closed; });
    EXPECT_TRUE(sim.run_until([&] { return closed == 1; }, 10s)) << turn;
    int by_then = opened;
    sim.run_for(60s);
    EXPECT_EQ(opened, by_then) << turn;
    EXPECT_EQ(closed, 1) << turn;
  }
}

TEST_F(Keeper, ADeadProcessHearsNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    int told = 0;
    Simulation sim({.seed = seed});
    std::weak_ptr<SessionKeeper> weak;
    sim.on_start([&](Node& node) {
      if (node.life() > 1) return;
      SessionKeeper::open(node.store(), {.on_lost = [&](const Error&) { ++told; }},
                          [&](Result<std::shared_ptr<SessionKeeper>> made) {
                            weak = *made;
                            node.keep(*made);
                            (*made)->add_listener({.over = [&] { ++told; }});
                          });
    });
    sim.run_for(2s);
    ASSERT_FALSE(weak.expired());
    // Sometimes in the middle of closing or reopening.
    if (seed % 3 == 1) weak.lock()->close_async(1h, [&, keeper = weak.lock()](Result<void>) { told += 2; });
    if (seed % 3 == 2) sim.cut_off(0, 1h);
    if (seed % 3 == 2) sim.run_for(10s);
    int before = told;
    sim.crash(0, testing::Crash::kAtOnce, 1h);
    sim.run_for(1min);
    EXPECT_EQ(told, before) << seed;
    EXPECT_TRUE(weak.expired()) << "nothing of it is left: " << seed;
  }
}

// With threads.

class KeeperThreads : public ::testing::Test {
 protected:
  std::shared_ptr<SessionKeeper> open(Store& store, SessionOptions options = {}) {
    auto opened = std::make_shared<Promise<Result<std::shared_ptr<SessionKeeper>>>>();
    SessionKeeper::open(store, std::move(options),
                        [opened](Result<std::shared_ptr<SessionKeeper>> keeper) { opened->set(std::move(keeper)); });
    auto keeper = opened->take();
    EXPECT_TRUE(keeper) << to_string(keeper.error());
    return *keeper;
  }
};

TEST_F(KeeperThreads, RefusesWhatASessionRefuses) {
  Store store = fresh_store();
  std::optional<ErrorCode> code;
  SessionKeeper::open(store, {.ttl = 1s, .renew = 1s},
                      [&](Result<std::shared_ptr<SessionKeeper>> keeper) { code = keeper.error().code; });
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  store.close();
  SessionKeeper::open(store, {}, [&](Result<std::shared_ptr<SessionKeeper>> keeper) { code = keeper.error().code; });
  EXPECT_EQ(code, ErrorCode::kClosed);
}

TEST_F(KeeperThreads, ClosingTheStoreEndsIt) {
  Store store = fresh_store();
  auto keeper = open(store);
  std::atomic<int> over = 0;
  keeper->add_listener({.over = [&] { ++over; }});
  auto session = keeper->current();
  ASSERT_TRUE(session);
  store.close();
  EXPECT_EQ(over, 1);
  EXPECT_EQ(keeper->current(), nullptr);
  EXPECT_FALSE(session->alive());
  std::optional<ErrorCode> code;
  keeper->close_async(0s, [&](Result<void> closed) { code = closed.error().code; });
  EXPECT_EQ(code, ErrorCode::kClosed);
  EXPECT_EQ(over, 1);
}

TEST_F(KeeperThreads, MayOutliveTheLastHandleOfItsStore) {
  auto store = std::make_optional(fresh_store());
  auto keeper = open(*store);
  auto session = keeper->current();
  store.reset();
  EXPECT_EQ(keeper->current(), nullptr);
  EXPECT_FALSE(session->alive());
  keeper->add_sweeper("thing", {});
  keeper.reset();
}

TEST_F(KeeperThreads, ClosingTheStoreInTheMiddleAnswersEverybody) {
  for (int turn = 0; turn < 60; ++turn) {
    Store store = fresh_store();
    auto keeper = open(store);
    auto heard = std::make_shared<std::atomic<int>>(0);
    keeper->add_listener({.opened = [heard](const auto&) { ++*heard; }, .over = [heard] { --*heard; }});
    auto lease = std::make_shared<Promise<Result<Lease>>>();
    if (turn % 4 == 3) {
      keeper->current()->leases().acquire("x", 0s, [lease](Result<Lease> got) { lease->set(std::move(got)); });
      ASSERT_TRUE(lease->take());
    }
    // Sometimes in the middle of a loss, too.
    if (turn % 2)
      store.transact_async([id = *keeper->id()](Transaction& txn) { end_by_force(txn, id); }, [](Result<void>) {});
    auto closed = std::make_shared<Latch>();
    keeper->close_async(turn % 4 == 3 ? Duration(1h) : Duration(0s), [closed](Result<void>) { closed->set(); });
    store.close();
    EXPECT_TRUE(closed->wait_for(kPatience)) << turn;
    EXPECT_EQ(*heard, 0) << turn;
  }
}

TEST_F(KeeperThreads, LossesAndListenersFromManySidesStayInOrder) {
  Store store = fresh_store();
  auto keeper = open(store);
  struct Order {
    std::atomic<int> depth = 0, opened = 0;
    std::atomic<bool> wrong = false;
    Latch enough;
  };
  auto order = std::make_shared<Order>();
  auto opened = [order, &store](const std::shared_ptr<SessionImpl>& session) {
    if (++order->depth != 1) order->wrong = true;
    if (++order->opened == 50) return order->enough.set();
    store.transact_async([id = session->id()](Transaction& txn) { end_by_force(txn, id); }, [](Result<void>) {});
  };
  keeper->add_listener({.opened = opened, .over = [order] {
                          if (--order->depth != 0) order->wrong = true;
                        }});
  ASSERT_TRUE(order->enough.wait_for(kPatience));
  keeper->abandon();
  EXPECT_EQ(order->depth, 0) << "nothing is told afterwards";
  EXPECT_FALSE(order->wrong);
  EXPECT_EQ(order->opened, 50);
}

}  // namespace
}  // namespace perdure
