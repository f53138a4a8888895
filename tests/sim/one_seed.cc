#include "one_seed.h"

#include <algorithm>

namespace perdure::sim {
namespace {

constexpr std::uint64_t kRepeatOneIn = 20;
constexpr std::uint64_t kShrinkRunsMax = 120;

std::string numbers_of(const FaultPlan& kept, const FaultPlan& all) {
  std::string numbers;
  std::size_t at = 0;
  for (const FaultEvent& event : kept) {
    while (all[at] != event) ++at;
    numbers += (numbers.empty() ? "" : ",") + std::to_string(at++);
  }
  return numbers.empty() ? "none" : numbers;
}

}  // namespace

const Scenario& scenario_of(const std::vector<Scenario>& scenarios, std::uint64_t seed) {
  std::int64_t total = 0;
  for (const Scenario& scenario : scenarios) total += scenario.weight;
  Random random = stream(seed, "scenario");
  std::int64_t pick = draw(random, NumberRange{0, total - 1});
  for (const Scenario& scenario : scenarios)
    if ((pick -= scenario.weight) < 0) return scenario;
  return scenarios.back();
}

FaultPlan kept_faults(const FaultPlan& plan, const Options& options) {
  if (!options.faults) return plan;
  FaultPlan kept;
  for (std::size_t number : *options.faults)
    if (number < plan.size()) kept.push_back(plan[number]);
  return kept;
}

bool run_seed(const Scenario& scenario, std::uint64_t seed, const Options& options, Tally& tally) {
  RunOutcome outcome = run_once(scenario, seed);
  tally.add(scenario, outcome);
  if (!outcome.violations.empty()) {
    tally.failures.push_back(describe_failure(scenario, seed, options, outcome));
    return false;
  }
  if (seed % kRepeatOneIn != 0) return true;
  if (run_once(scenario, seed).trace_hash == outcome.trace_hash) {
    ++tally.repeated;
    return true;
  }
  outcome.violations.push_back("the same seed has taken another way when it was run again: something is not simulated");
  Options unshrunk = options;
  unshrunk.shrink = false;
  tally.failures.push_back(describe_failure(scenario, seed, unshrunk, outcome));
  return false;
}

std::string describe_failure(const Scenario& scenario, std::uint64_t seed, const Options& options,
                             const RunOutcome& outcome) {
  FaultPlan all = draw_shape(scenario, seed).plan;
  Shrunk shrunk{kept_faults(all, options)};
  if (options.shrink)
    shrunk = shrink(
        std::move(shrunk.plan),
        [&](const FaultPlan& plan) { return !run_with(scenario, seed, plan).violations.empty(); }, kShrinkRunsMax);
  std::string text = "FAILED: seed " + std::to_string(seed) + ", scenario " + scenario.name + "\n";
  for (const std::string& violation : outcome.violations) text += "  " + violation + "\n";
  text += "  with " + std::to_string(shrunk.plan.size()) + " of its " + std::to_string(all.size()) + " faults";
  if (options.shrink) text += " (after " + std::to_string(shrunk.runs) + " runs to leave out what is not needed)";
  text += ":\n";
  for (const FaultEvent& event : shrunk.plan) text += "    " + to_string(event) + "\n";
  text += "  replay: ./dev sim --seed " + std::to_string(seed) + " --scenario " + scenario.name;
  if (shrunk.plan.size() < all.size()) text += " --faults " + numbers_of(shrunk.plan, all);
  if (!options.bug.empty()) text += " --bug " + options.bug;
  return text + " --trace\n";
}

}  // namespace perdure::sim
