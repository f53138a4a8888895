#include "sim/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "one_seed.h"
#include "sim/client_workload.h"

namespace perdure::sim {
namespace {

/// Fails when a node lives its third life, and notes what it was told about its nodes.
class Fragile final : public ClientWorkload {
 public:
  explicit Fragile(World& world) : ClientWorkload(world) {}

  void start(SimNode& node) override {
    ClientWorkload::start(node);
    up_.insert(&node);
    if (node.life() == 3) world().violation("node " + std::to_string(node.index()) + " lives its third life");
  }
  void node_stopped(SimNode& node) override {
    ClientWorkload::node_stopped(node);
    if (node.alive()) world().violation("a node is told to stop while it is alive");
    if (up_.erase(&node) != 1) world().violation("a node stops that has not started");
  }
  void operate(SimNode& node, std::uint64_t, Done done) override {
    node.store().transact_async([](Transaction& txn) { txn.add("n", 1); },
                                [done = std::move(done)](Result<void>) mutable { done(); });
  }
  void check(Store& store) override {
    if (!up_.empty()) world().violation("the check comes while a node is up");
    if (decode_counter(store.read([](Reader& reader) { return reader.get("n"); }).value()) == 0)
      world().violation("nothing was ever done");
  }

 private:
  std::set<SimNode*> up_;
};

const RegisterWorkload kFragile(
    {"fragile", "for tests: fails at a third life", {kClientsKnob, kThinkKnob}, make<Fragile>});

/// Never comes to rest.
class Restless final : public Workload {
 public:
  explicit Restless(World&) {}
  void start(SimNode& node) override { again(node); }
  bool idle() const override { return false; }
  void check(Store&) override {}

 private:
  void again(SimNode& node) {
    node.scheduler().at(node.scheduler().now() + std::chrono::seconds(1), [this, &node] { again(node); });
  }
};

const RegisterWorkload kRestless({"restless", "for tests: never comes to rest", {}, make<Restless>});

Scenario parsed(std::string_view text) {
  auto scenario = parse_scenario(text, "test.scenario");
  EXPECT_TRUE(scenario) << scenario.error().message;
  return *scenario;
}

TEST(Simulation, TheSameSeedGoesTheSameWayAndAnotherDoesNot) {
  auto scenarios = load_scenarios(PERDURE_SCENARIOS).value();
  for (const Scenario& scenario : scenarios) {
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      RunOutcome first = run_once(scenario, seed), again = run_once(scenario, seed, Trace::Keep::kLines);
      EXPECT_EQ(first.violations, std::vector<std::string>{}) << scenario.name << " " << seed;
      EXPECT_EQ(first.trace_hash, again.trace_hash) << scenario.name << " " << seed;
      EXPECT_EQ(first.operations, again.operations);
      EXPECT_GT(first.operations, 0u);
      EXPECT_FALSE(again.trace.empty());
      hashes.insert(first.trace_hash);
    }
    EXPECT_EQ(hashes.size(), 3u);
  }
}

TEST(Simulation, EveryClassOfFaultsStrikes) {
  auto scenarios = load_scenarios(PERDURE_SCENARIOS).value();
  Tally tally;
  for (const Scenario& scenario : scenarios)
    for (std::uint64_t seed = 1; seed <= 12; ++seed) tally.add(scenario, run_once(scenario, seed));
  for (const FaultInfo& fault : fault_table()) EXPECT_GT(tally.faults[std::string(fault.name)], 0u) << fault.name;
}

TEST(Simulation, AFailureIsShrunkToTheFaultsThatItNeeds) {
  Scenario scenario = parsed(
      "workload = fragile\nnodes = 2\nduration_s = 30\nfault.crash = 6\nfault.pause = 5\n"
      "fault.conflict = 5\nfault.slow_disk = 5");
  std::uint64_t seed = 1;
  while (run_once(scenario, seed).violations.empty()) ASSERT_LT(++seed, 50u);
  Shrunk shrunk = shrink(
      draw_shape(scenario, seed).plan,
      [&](const FaultPlan& plan) { return !run_with(scenario, seed, plan).violations.empty(); }, 200);
  ASSERT_EQ(shrunk.plan.size(), 2u) << "a third life needs two crashes and nothing else";
  for (const FaultEvent& event : shrunk.plan) EXPECT_EQ(event.kind, FaultClass::kCrash);
  EXPECT_EQ(shrunk.plan[0].node, shrunk.plan[1].node);
}

TEST(Simulation, AFailureNamesTheSeedTheFaultsAndTheCommandThatReplaysIt) {
  Scenario scenario = parsed("workload = fragile\nnodes = 1\nduration_s = 30\nfault.crash = 5\nfault.pause = 3");
  scenario.name = "fragile";
  std::uint64_t seed = 1;
  while (run_once(scenario, seed).violations.empty()) ASSERT_LT(++seed, 50u);
  Options options;
  std::string text = describe_failure(scenario, seed, options, run_once(scenario, seed));
  EXPECT_NE(text.find("FAILED: seed " + std::to_string(seed) + ", scenario fragile\n  node 0 lives its third life\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("with 2 of its 8 faults"), std::string::npos) << text;
  EXPECT_NE(text.find("replay: ./dev sim --seed " + std::to_string(seed) + " --scenario fragile --faults "),
            std::string::npos)
      << text;
}

TEST(Simulation, WhatDoesNotComeToRestIsAViolation) {
  Scenario scenario = parsed("workload = restless\nmode = liveness\nduration_s = 1\ndrain_s = 20");
  EXPECT_EQ(run_once(scenario, 1).violations, std::vector<std::string>{"not at rest 20 s after the last fault"});
  scenario.mode = Scenario::Mode::kSafety;
  EXPECT_EQ(run_once(scenario, 1).violations, std::vector<std::string>{});
}

TEST(Shrink, KeepsOnlyWhatIsNeededAndStaysWithinItsRuns) {
  FaultPlan plan;
  for (int i = 0; i < 40; ++i) plan.push_back({FaultClass::kConflict, i, {}, {}, 0});
  auto has = [](const FaultPlan& some, int node) {
    return std::ranges::any_of(some, [&](const FaultEvent& event) { return event.node == node; });
  };
  Shrunk shrunk = shrink(plan, [&](const FaultPlan& some) { return has(some, 7) && has(some, 31); }, 1000);
  ASSERT_EQ(shrunk.plan.size(), 2u);
  EXPECT_EQ(shrunk.plan[0].node, 7);
  EXPECT_EQ(shrunk.plan[1].node, 31);
  EXPECT_TRUE(shrink(plan, [](const FaultPlan&) { return true; }, 1000).plan.empty());
  EXPECT_LE(shrink(plan, [&](const FaultPlan& some) { return has(some, 7); }, 5).runs, 5u);
}

TEST(Tally, SurvivesTheWayFromAWorker) {
  Tally tally, read;
  tally.runs = 3;
  tally.operations = 17;
  tally.faults["crash"] = 4;
  tally.scenarios["ring"] = 3;
  tally.failures = {"one\ntwo\n"};
  std::string lines = tally.to_lines();
  for (std::size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1)
    EXPECT_TRUE(read.read_line(lines.substr(at, end - at)));
  EXPECT_EQ(read.to_lines(), lines);
  EXPECT_EQ(read.failures, tally.failures);
  EXPECT_FALSE(read.read_line("nonsense 3"));
}

}  // namespace
}  // namespace perdure::sim
