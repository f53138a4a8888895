#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/seeded_bug.h"
#include "sim/fault_plan.h"
#include "sim/workload.h"

namespace perdure::sim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::string_view text) {
  auto scenario = parse_scenario(text, "scenarios/some.scenario");
  return scenario ? "no error" : scenario.error().message;
}

TEST(ScenarioFile, EveryKeyIsRead) {
  auto scenario = parse_scenario(R"(# A comment.
workload = ring      # another
mode = liveness
nodes = 2
duration_s = 3..7
drain_s = 90
weight = 5
fault.crash = 1..4
knob.size = 3..5
catches = lose_bell, reuse_token
remote = 1
unknown_commits = 0
knows_deaths = 0..1
request_us = 5..6
sync_us = 7
bell_us = 8
)",
                                 "scenarios/some.scenario");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(scenario->name, "some");
  EXPECT_EQ(scenario->workload, "ring");
  EXPECT_EQ(scenario->mode, Scenario::Mode::kLiveness);
  EXPECT_EQ(scenario->nodes, (NumberRange{2, 2}));
  EXPECT_EQ(scenario->duration_s, (NumberRange{3, 7}));
  EXPECT_EQ(scenario->drain_s, 90);
  EXPECT_EQ(scenario->weight, 5);
  EXPECT_EQ(scenario->faults[static_cast<std::size_t>(FaultClass::kCrash)], (NumberRange{1, 4}));
  EXPECT_EQ(scenario->faults[static_cast<std::size_t>(FaultClass::kPause)], NumberRange{});
  EXPECT_EQ(scenario->knobs.at("size"), (NumberRange{3, 5}));
  EXPECT_EQ(scenario->catches, (std::vector<std::string>{"lose_bell", "reuse_token"}));
  EXPECT_EQ(scenario->remote, (NumberRange{1, 1}));
  EXPECT_EQ(scenario->unknown_commits, (NumberRange{0, 0}));
  EXPECT_EQ(scenario->request_us, (NumberRange{5, 6}));
  EXPECT_EQ(scenario->sync_us, (NumberRange{7, 7}));
  EXPECT_EQ(scenario->bell_us, (NumberRange{8, 8}));
}

TEST(ScenarioFile, EventsFollowOneAnother) {
  auto scenario = parse_scenario(
      "workload = ring\nnodes = 2\nduration_s = 60\n"
      "event.1 = pause 1 at 2000..3000 for 500\nevent.2 = unavailable 0 at +10..20 for 700\n",
      "scenarios/some.scenario");
  ASSERT_TRUE(scenario) << scenario.error().message;
  FaultPlan plan = draw_shape(*scenario, 1).plan;
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].kind, FaultClass::kPause);
  EXPECT_EQ(plan[0].node, 1);
  EXPECT_GE(plan[0].start, std::chrono::seconds(2));
  EXPECT_LE(plan[0].start, std::chrono::seconds(3));
  EXPECT_EQ(plan[0].duration, std::chrono::milliseconds(500));
  EXPECT_GE(plan[1].start, plan[0].end() + std::chrono::milliseconds(10));
  EXPECT_LE(plan[1].start, plan[0].end() + std::chrono::milliseconds(20));
}

TEST(ScenarioFile, ErrorsNameTheFileTheLineAndWhatToDo) {
  EXPECT_THAT(error_of("event.1 = pause 0 after 5 for 6"), HasSubstr(":1: an event is `CLASS NODE at MS for MS`"));
  EXPECT_THAT(error_of("event.1 = sleep 0 at 5 for 6"), HasSubstr("no class of faults 'sleep'"));
  EXPECT_THAT(error_of("event.1 = pause 0 at 9..5 for 6"), HasSubstr("the range 9..5 is empty"));
  EXPECT_THAT(error_of("\n\nworkload: ring"), StartsWith("scenarios/some.scenario:3: 'workload: ring' is not `key"));
  EXPECT_THAT(error_of("workload = rong"), HasSubstr(":1: there is no workload 'rong'; there are: actor, bank, "));
  EXPECT_THAT(error_of("mode = safety"), HasSubstr("some.scenario: names no workload; write a line"));
  EXPECT_THAT(error_of("mode = lively"), HasSubstr("mode is safety or liveness, not 'lively'"));
  EXPECT_THAT(error_of("nodes = 3..x"), HasSubstr("'3..x' is neither a number nor a range; write 3 or 1..5"));
  EXPECT_THAT(error_of("nodes = 5..3"), HasSubstr("the range 5..3 is empty; put the smaller number first"));
  EXPECT_THAT(error_of("nodes = 0"), HasSubstr("nodes goes from 1 to 9"));
  EXPECT_THAT(error_of("weight = 1..2"), HasSubstr("weight is one number, not a range"));
  EXPECT_THAT(error_of("weight ="), HasSubstr("weight has no value"));
  EXPECT_THAT(error_of("weight = 1\nweight = 1"), HasSubstr(":2: weight stands here for the second time"));
  EXPECT_THAT(error_of("colour = 1"), HasSubstr("there is no key 'colour'; docs/internals/simulation.md lists them"));
  EXPECT_THAT(error_of("fault.flood = 1"), HasSubstr("no class of faults 'flood'; there are: conflict, "));
  EXPECT_THAT(error_of("knob.size = 1"), HasSubstr("put the line `workload = NAME` before its knobs"));
  EXPECT_THAT(error_of("workload = ring\nknob.siz = 1"),
              HasSubstr(":2: the workload ring has no knob 'siz'; it has: clients, think_ms, size"));
  EXPECT_THAT(error_of("catches = nothing"), HasSubstr("no seeded bug 'nothing'; src/base/seeded_bug.cc lists them"));
}

TEST(ScenarioFile, ThoseOfTheRepositoryAreRightAndClaimTheBugsOfTheStore) {
  auto scenarios = load_scenarios(PERDURE_SCENARIOS);
  ASSERT_TRUE(scenarios) << scenarios.error().message;
  for (const SeededBugInfo& bug : seeded_bugs()) {
    if (bug.bug >= SeededBug::kBelieveFromReceipt) break;
    bool claimed = std::ranges::any_of(
        *scenarios, [&](const Scenario& scenario) { return std::ranges::count(scenario.catches, bug.name) > 0; });
    EXPECT_TRUE(claimed) << bug.name;
  }
}

TEST(ScenarioFile, ADirectoryWithoutAnyIsAnError) {
  EXPECT_THAT(load_scenarios("/nowhere").error().message, HasSubstr("has no *.scenario files"));
}

}  // namespace
}  // namespace perdure::sim
