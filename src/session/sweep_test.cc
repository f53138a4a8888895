// What dead sessions held, and who sweeps it: in virtual time.
#include "session/sweep.h"

#include <gtest/gtest.h>

#include "perdure/testing.h"
#include "session/rows.h"
#include "session/session_access.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using session::Sweeper;
using testing::Node;
using testing::Simulation;

/// Never one that is really opened here.
SessionId made_up(std::uint64_t number) {
  return {{{1'000'000 + number}, 0}};
}

Bytes thing_key(std::int64_t number) {
  return tuple::pack_onto(kSystemKeys, "thing", number);
}

/// As a session leaves it that died with `count` things of that kind.
void hold(Transaction& txn, SessionId id, std::string_view kind, std::int64_t count) {
  SystemAccess access(txn);
  auto holder = id.stamp.encode();
  for (std::int64_t i = 0; i < count; ++i) {
    txn.set(session::held_key(id, kind, i), "value");
    txn.set(thing_key(i), BytesView(holder.data(), holder.size()));
  }
}

void end(Transaction& txn, SessionId id) {
  SystemAccess access(txn);
  txn.set(session::ended_key(id), {});
}

void hold_lease(Transaction& txn, SessionId id, std::string_view name) {
  SystemAccess access(txn);
  auto token = id.stamp.encode();
  txn.set(session::held_key(id, session::kLeaseKind, name), BytesView(token.data(), token.size()));
  txn.set(session::lease_key(name), session::LeaseRow{id, id.stamp}.encode());
}

/// Frees things, as hold() made them.
Sweeper free_things() {
  return [](Transaction& txn, SessionId dead, BytesView rest, BytesView value) {
    EXPECT_EQ(value, "value");
    auto parts = tuple::unpack_as<std::int64_t>(rest);
    ASSERT_TRUE(parts) << printable(rest);
    Bytes key = thing_key(std::get<0>(*parts));
    auto holder = txn.get(key);
    auto wanted = dead.stamp.encode();
    if (holder && *holder == BytesView(wanted.data(), wanted.size())) txn.clear(key);
  };
}

class Sweep : public ::testing::Test {
 protected:
  /// A session on each node, with a sweeper for each of `kinds`.
  enum class Kept { kByTheNode, kByTheTest };
  void start(std::vector<std::string> kinds, Kept kept = Kept::kByTheNode) {
    sim_.on_start([this, kinds, kept](Node& node) {
      Session::open_async(node.store(), {.name = node.name()}, [this, &node, kinds, kept](Result<Session> opened) {
        session_ = std::make_shared<Session>(std::move(opened.value()));
        if (kept == Kept::kByTheNode) node.keep(session_);
        for (const std::string& kind : kinds) impl()->add_sweeper(kind, free_things());
      });
    });
  }
  std::shared_ptr<SessionImpl> impl() { return SessionAccess::impl(*session_); }
  std::size_t count(const KeyRange& range) {
    auto rows = sim_.read([&](Reader& reader) {
      SystemAccess access(reader);
      return reader.get_range(range).size();
    });
    return rows.value();
  }
  std::size_t held(SessionId id, std::string_view kind) {
    return count(tuple::extensions(session::held_key(id, kind)));
  }
  std::size_t things() { return count(tuple::range_onto(kSystemKeys, "thing")); }
  std::size_t leases() { return count(tuple::range_onto(kSystemKeys, "lease")); }
  std::size_t ended() { return count(session::table_range("ended")); }

  Simulation sim_{{.nodes = 1, .keep_trace = true}};
  std::shared_ptr<Session> session_;
};

TEST_F(Sweep, KindsWithASweeperAreSweptAndTheOthersStay) {
  SessionId dead = made_up(1);
  sim_.setup([&](Transaction& txn) {
    hold(txn, dead, "alien", 150);
    hold(txn, dead, "thing", 250);
    for (const char* name : {"a", "b", "c"}) hold_lease(txn, dead, name);
    end(txn, dead);
  });
  start({"thing"});
  sim_.run_for(10s);
  EXPECT_EQ(held(dead, "thing"), 0u);
  EXPECT_EQ(things(), 0u);
  EXPECT_EQ(held(dead, session::kLeaseKind), 0u);
  EXPECT_EQ(leases(), 0u);
  EXPECT_EQ(held(dead, "alien"), 150u);
  EXPECT_EQ(ended(), 1u) << "for somebody who knows that kind";
}

TEST_F(Sweep, ASweeperThatComesLaterFindsWhatWasLeft) {
  SessionId dead = made_up(1);
  sim_.setup([&](Transaction& txn) {
    hold(txn, dead, "alien", 250);
    end(txn, dead);
  });
  start({});
  sim_.run_for(10s);
  ASSERT_EQ(held(dead, "alien"), 250u);
  impl()->add_sweeper("alien", free_things());
  EXPECT_TRUE(sim_.run_until([&] { return ended() == 0; }, 1s)) << "before the next renewal";
  EXPECT_EQ(held(dead, "alien"), 0u);
  EXPECT_EQ(things(), 0u);
}

TEST_F(Sweep, WhatIsHeldByAnotherByNowIsNotFreed) {
  sim_.setup([&](Transaction& txn) {
    hold(txn, made_up(1), "thing", 10);
    hold(txn, made_up(2), "thing", 5);
    end(txn, made_up(1));
  });
  start({"thing"});
  sim_.run_for(10s);
  EXPECT_EQ(held(made_up(1), "thing"), 0u);
  EXPECT_EQ(things(), 5u) << "those that the second took since";
  EXPECT_EQ(held(made_up(2), "thing"), 5u) << "which has not ended";
}

TEST_F(Sweep, WhatNobodyCanSweepHoldsUpNobody) {
  constexpr std::uint64_t kMany = 300;
  sim_.setup([&](Transaction& txn) {
    for (std::uint64_t i = 1; i <= kMany; ++i) {
      hold(txn, made_up(i), "alien", 1);
      end(txn, made_up(i));
    }
    hold_lease(txn, made_up(kMany + 1), "last");
    end(txn, made_up(kMany + 1));
  });
  start({});
  EXPECT_TRUE(sim_.run_until([&] { return leases() == 0; }, 60s));
  EXPECT_EQ(ended(), kMany);
}

TEST_F(Sweep, WhatNobodyCanSweepIsNotTriedAgainAndAgain) {
  auto busy = [](int dead) {
    Simulation sim({.keep_trace = true});
    sim.setup([&](Transaction& txn) {
      for (int i = 1; i <= dead; ++i) {
        hold(txn, made_up(static_cast<std::uint64_t>(i)), "alien", 1);
        end(txn, made_up(static_cast<std::uint64_t>(i)));
      }
    });
    sim.on_start([](Node& node) {
      Session::open_async(node.store(), {}, [&node](Result<Session> opened) {
        node.keep(std::make_shared<Session>(std::move(opened.value())));
      });
    });
    sim.run_for(60s);
    std::size_t before = sim.trace().size();
    sim.run_for(60s);
    return sim.trace().size() - before;
  };
  std::size_t alone = busy(0);
  EXPECT_GT(alone, 0u);
  EXPECT_LT(busy(100), alone * 5 / 4) << "as if nothing were left to others";
}

TEST_F(Sweep, ASessionThatStopsSweepsItsOwn) {
  start({"thing"});
  sim_.run_for(1s);
  bool stopped = false;
  sim_.node(0)->store().transact_async([id = session_->id()](Transaction& txn) { hold(txn, id, "thing", 50); },
                                       [&](Result<void> written) {
                                         EXPECT_TRUE(written);
                                         session_->stop_async(0s, [&](Result<void>) { stopped = true; });
                                       });
  EXPECT_TRUE(sim_.run_until([&] { return stopped; }, 5s));
  EXPECT_EQ(things(), 0u);
  EXPECT_EQ(ended(), 0u);
  EXPECT_EQ(count(session::table_range("held")), 0u);
}

TEST_F(Sweep, ASessionThatIsDroppedSweepsItsOwn) {
  start({"thing"}, Kept::kByTheTest);
  sim_.run_for(1s);
  sim_.node(0)->store().transact_async([id = session_->id()](Transaction& txn) { hold(txn, id, "thing", 50); },
                                       [&](Result<void> written) {
                                         EXPECT_TRUE(written);
                                         session_.reset();
                                       });
  sim_.run_for(1s);
  EXPECT_EQ(session_, nullptr);
  EXPECT_EQ(things(), 0u);
  EXPECT_EQ(ended(), 0u);
  EXPECT_EQ(count(session::table_range("held")), 0u);
}

// Being told that a session is over.

TEST_F(Sweep, ADeadProcessIsNotToldThatItsSessionIsOver) {
  int told = 0;
  start({});
  sim_.run_for(1s);
  auto session = impl();
  session->on_over([&] { ++told; });
  session_.reset();
  sim_.crash(0, testing::Crash::kAtOnce, 1h);
  sim_.run_for(1min);
  session->on_over([&] { ++told; });
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(session->alive());
}

}  // namespace
}  // namespace perdure
