#include "perdure/testing.h"

#include <gtest/gtest.h>

#include "perdure/session.h"

namespace perdure::testing {
namespace {

using namespace std::chrono_literals;

std::int64_t number(Simulation& sim, std::string_view key) {
  return sim.read([&](Reader& reader) { return decode_counter(reader.get(key)); }).value();
}

/// Adds 1 to "count" every 10 ms or so, and counts the answers.
void count_up(Node& node, int& acknowledged) {
  node.store().transact_async([](Transaction& txn) { txn.add("count", 1); },
                              [&](Result<void> result) {
                                if (result) ++acknowledged;
                                node.after(10ms, [&] { count_up(node, acknowledged); });
                              });
}

std::uint64_t hash_of(std::uint64_t seed, Faults faults) {
  int acknowledged = 0;
  Simulation sim({.seed = seed, .nodes = 3, .faults = faults});
  sim.on_start([&](Node& node) { count_up(node, acknowledged); });
  sim.run_for(30s);
  EXPECT_GT(acknowledged, 0);
  return sim.trace_hash();
}

TEST(Simulation, TheSameSeedGivesTheSameRunAndAnotherGivesAnother) {
  for (Faults faults : {Faults::kNone, Faults::kSome, Faults::kMany}) {
    EXPECT_EQ(hash_of(7, faults), hash_of(7, faults));
    EXPECT_NE(hash_of(7, faults), hash_of(8, faults));
  }
}

TEST(Simulation, NothingThatWasAcknowledgedIsLostUnderAnyFaults) {
  auto report = for_each_seed({.count = 60}, {.nodes = 3, .faults = Faults::kMany}, [](Simulation& sim) {
    int acknowledged = 0;
    sim.on_start([&](Node& node) { count_up(node, acknowledged); });
    sim.run_for(40s);
    sim.expect(number(sim, "count") >= acknowledged, "a commit was acknowledged and lost");
    sim.expect(acknowledged > 0, "nothing was done at all");
  });
  EXPECT_TRUE(report.ok()) << report.to_string();
  EXPECT_EQ(report.passed, 60u);
}

struct Once {
  int answers = 0;
  void operator()(Node& node) {
    if (node.life() == 1)
      node.store().transact_async([](Transaction& txn) { txn.set("done", "yes"); },
                                  [this](Result<void>) { ++answers; });
  }
};

TEST(SimulationCrash, BeforeTheApplyTheCommitIsLostAndAfterItItIsThere) {
  for (StoreKind kind : {StoreKind::kEmbedded, StoreKind::kRemote})
    for (Crash when : {Crash::kBeforeApply, Crash::kAfterApply}) {
      Once once;
      Simulation sim({.store = kind});
      sim.on_start(std::ref(once));
      sim.crash(0, when, 3s);
      sim.run_for(2s);
      EXPECT_EQ(sim.node(0), nullptr);
      sim.run_for(2s);
      ASSERT_NE(sim.node(0), nullptr);
      EXPECT_EQ(sim.node(0)->life(), 2);
      auto there = sim.read([](Reader& reader) { return reader.get("done").has_value(); });
      EXPECT_EQ(there.value(), when == Crash::kAfterApply);
      EXPECT_EQ(once.answers, 0) << "the code of a dead process does not run";
    }
}

TEST(SimulationCrash, AHandlerThatTriesAgainForEverDiesWithItsNode) {
  struct Stubborn {
    static void go(Node& node) {
      node.store().transact_async([](Transaction& txn) { txn.add("count", 1); }, [&](Result<void>) { go(node); });
    }
  };
  Simulation sim;
  sim.on_start(Stubborn::go);
  sim.run_for(100ms);
  sim.crash(0);
  std::int64_t at_death = number(sim, "count");
  sim.run_for(500ms);
  EXPECT_EQ(number(sim, "count"), at_death);
  sim.run_for(1s);
  EXPECT_GT(number(sim, "count"), at_death);
}

TEST(SimulationCrash, WhatANodeKeepsGoesWithIt) {
  std::weak_ptr<int> kept;
  Simulation sim;
  sim.on_start([&](Node& node) {
    auto thing = std::make_shared<int>(node.life());
    kept = thing;
    node.keep(thing);
  });
  sim.run_for(1s);
  EXPECT_FALSE(kept.expired());
  Node* before = sim.node(0);
  sim.crash(0);
  EXPECT_TRUE(kept.expired());
  EXPECT_FALSE(before->alive());
}

TEST(SimulationPause, TimersComeLate) {
  SteadyTime started, ran;
  Simulation sim;
  sim.on_start([&](Node& node) {
    started = node.now();
    node.after(100ms, [&] { ran = node.now(); });
  });
  sim.run_for(1ms);
  sim.pause(0, 5s);
  sim.run_for(4s);
  EXPECT_EQ(ran, SteadyTime{});
  sim.run_for(2s);
  EXPECT_GE(ran - started, 5s);
}

TEST(SimulationPause, HealWakesTheNodeAndStartsOneThatIsDown) {
  Simulation sim({.nodes = 2});
  sim.pause(0, 1h);
  sim.crash(1, Crash::kAtOnce, 1h);
  sim.heal();
  bool ran = false;
  ASSERT_NE(sim.node(1), nullptr);
  sim.node(0)->after(1ms, [&] { ran = true; });
  EXPECT_TRUE(sim.run_until([&] { return ran; }, 1s));
}

TEST(SimulationClock, AJumpMovesTheWallClockAlone) {
  Simulation sim;
  Node& node = *sim.node(0);
  auto wall = node.wall_now();
  auto steady = node.now();
  sim.jump_wall_clock(0, -2h);
  EXPECT_EQ(node.now(), steady);
  EXPECT_EQ(node.wall_now() - wall, -2h);
  sim.crash(0, Crash::kAtOnce, 1s);
  sim.run_for(2s);
  EXPECT_EQ(sim.node(0)->wall_now() - wall, -2h + (sim.node(0)->now() - steady)) << "it outlives a crash";
}

TEST(SimulationCutOff, CallsFailUntilItIsOver) {
  std::vector<std::string> answers;
  Simulation sim;
  auto ask = [&] {
    sim.node(0)->store().transact_async(
        [](Transaction& txn) { txn.set("k", "v"); },
        [&](Result<void> result) { answers.emplace_back(result ? "ok" : result.error().name()); }, {.timeout = 1s});
    sim.run_for(2s);
  };
  sim.cut_off(0, 3s);
  ask();
  sim.run_for(2s);
  ask();
  EXPECT_EQ(answers, (std::vector<std::string>{"unavailable", "ok"}));
}

TEST(SimulationPowerCut, LosesOnlyWhatNobodyWasToldOf) {
  int runs_with_losses = 0;
  auto report = for_each_seed({.count = 200}, {.nodes = 3, .store = StoreKind::kEmbedded}, [&](Simulation& sim) {
    int acknowledged = 0;
    sim.on_start([&](Node& node) { count_up(node, acknowledged); });
    sim.run_for(Duration(200ms) + Duration(static_cast<Duration::rep>(sim.random() % 20'000'000)));
    std::int64_t before = number(sim, "count");
    sim.power_cut();
    std::int64_t after = number(sim, "count");
    if (after < before) ++runs_with_losses;
    sim.expect(after >= acknowledged, "an acknowledged commit was lost");
  });
  EXPECT_TRUE(report.ok()) << report.to_string();
  EXPECT_GT(runs_with_losses, 10);
}

/// Takes the lease as soon as it can, and then writes under it once a second.
struct Leader {
  explicit Leader(Node& on) : node(on) {}
  void start() {
    Session::open_async(node.store(), {.name = node.name()}, [this](Result<Session> opened) {
      session.emplace(std::move(opened.value()));
      session->acquire_async("leader", 1h, [this](Result<Lease> got) {
        lease = std::move(got.value());
        write();
      });
    });
  }
  void write() {
    node.store().transact_async(
        [this](Transaction& txn) {
          fence(txn, "leader", lease->token());
          txn.set("by", node.name());
        },
        [this](Result<void> result) {
          answers.emplace_back(result ? "ok" : result.error().name());
          node.after(1s, [this] { write(); });
        });
  }
  Node& node;
  std::optional<Session> session;
  std::optional<Lease> lease;
  std::vector<std::string> answers;
};

TEST(SimulationSession, APausedLeaderLosesItsLeaseAndItsLateWriteIsRefused) {
  std::vector<std::shared_ptr<Leader>> leaders(2);
  Simulation sim({.nodes = 2});
  sim.on_start([&](Node& node) {
    auto& leader = leaders[static_cast<std::size_t>(node.index())];
    leader = std::make_shared<Leader>(node);
    leader->start();
  });
  sim.run_for(4s);
  int first = leaders[0]->lease ? 0 : 1;
  Leader& paused = *leaders[static_cast<std::size_t>(first)];
  Leader& other = *leaders[static_cast<std::size_t>(1 - first)];
  ASSERT_TRUE(paused.lease);
  ASSERT_FALSE(other.lease);
  sim.pause(first, 20s);
  sim.run_for(19s);
  ASSERT_TRUE(other.lease);
  EXPECT_EQ(paused.answers.back(), "ok");
  sim.run_for(4s);
  EXPECT_EQ(paused.answers.back(), "stale_token");
  EXPECT_FALSE(paused.lease->held());
  auto by = sim.read([](Reader& reader) { return reader.get("by").value_or(""); });
  EXPECT_EQ(by.value(), other.node.name());
}

TEST(SimulationSession, ADeadNodeIsToldOfNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    int told = 0;
    Simulation sim({.seed = seed});
    sim.on_start([&](Node& node) {
      Session::open_async(node.store(), {.on_lost = [&](const Error&) { ++told; }}, [&](Result<Session> opened) {
        auto session = std::make_shared<Session>(std::move(opened.value()));
        node.keep(session);
        session->acquire_async("leader", 0s, [&told, session](Result<Lease> lease) {
          lease->cancel_signal().then([&told] { ++told; });
          session->acquire_async("leader", 1h, [&told](Result<Lease>) { ++told; });
        });
      });
    });
    sim.run_for(2s);
    auto holder = sim.read([](Reader& reader) { return Session::holder_of(reader, "leader").has_value(); });
    EXPECT_TRUE(holder.value());
    sim.crash(0, Crash::kAtOnce, 1h);
    sim.run_for(1min);
    EXPECT_EQ(told, 0) << seed;
  }
}

TEST(SimulationBlocking, CallsThatBlockAreRefused) {
  std::vector<ErrorCode> codes;
  auto block = [&](Store& store) {
    codes.push_back(store.transact([](Transaction& txn) { txn.set("k", "v"); }).error().code);
    codes.push_back(store.read([](Reader& reader) { return reader.get("k").has_value(); }).error().code);
    codes.push_back(Session::open(store).error().code);
  };
  Simulation sim;
  sim.on_start([&](Node& node) { block(node.store()); });
  sim.run_for(1s);
  block(sim.node(0)->store());
  EXPECT_EQ(codes, std::vector<ErrorCode>(6, ErrorCode::kInvalidArgument));
}

TEST(ForEachSeed, NamesTheFirstThatFailsAndShowsItsTrace) {
  auto report = for_each_seed({.first = 10, .count = 50}, {}, [](Simulation& sim) {
    sim.run_for(1s);
    sim.node(0)->note("so far");
    sim.expect(sim.options().seed != 13, "it is the thirteenth");
  });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.passed, 3u);
  EXPECT_EQ(report.failure->seed, 13u);
  EXPECT_EQ(report.failure->what, "it is the thirteenth");
  std::string text = report.to_string();
  EXPECT_TRUE(
      text.starts_with("seed 13 failed: it is the thirteenth\nreplay: for_each_seed({.first = 13, .count = 1}"));
  EXPECT_NE(text.find("so far"), std::string::npos) << text;
}

TEST(ForEachSeed, AnExceptionIsAFailureAndSoIsOneOnANode) {
  auto thrown = for_each_seed({}, {}, [](Simulation&) { throw std::runtime_error("in the test"); });
  EXPECT_EQ(thrown.failure.value().what, "the test threw: in the test");
  auto on_node = for_each_seed({}, {}, [](Simulation& sim) {
    sim.on_start([](Node&) { throw std::runtime_error("at once"); });
    sim.run_for(1s);
  });
  EXPECT_EQ(on_node.failure.value().what, "on_start threw on n0.1: at once");
}

TEST(ForEachSeed, ATestThatDoesNotReplayIsFoundOut) {
  int calls = 0;
  auto report = for_each_seed({}, {}, [&](Simulation& sim) {
    sim.run_for(std::chrono::seconds(1));
    sim.node(0)->note(std::to_string(++calls));
    sim.expect(false, "wrong");
  });
  EXPECT_NE(report.failure.value().what.find("does not replay"), std::string::npos);
}

}  // namespace
}  // namespace perdure::testing
