#include <algorithm>
#include <exception>

#include "perdure/testing.h"

namespace perdure::testing {
namespace {

constexpr std::size_t kLinesShown = 20;

struct Run {
  std::uint64_t trace_hash;
  std::vector<std::string> failures;
  std::vector<std::string> trace;
};

Run run_seed(const SimulationOptions& options, const std::function<void(Simulation&)>& test) {
  Simulation simulation(options);
  try {
    test(simulation);
  } catch (const std::exception& thrown) {
    simulation.expect(false, std::string("the test threw: ") + thrown.what());
  }
  return {simulation.trace_hash(), simulation.failures(), simulation.trace()};
}

}  // namespace

Report for_each_seed(const SeedRange& seeds, const SimulationOptions& options,
                     const std::function<void(Simulation&)>& test) {
  Report report;
  SimulationOptions one = options;
  for (one.seed = seeds.first; one.seed - seeds.first < seeds.count; ++one.seed) {
    one.keep_trace = false;
    Run run = run_seed(one, test);
    if (run.failures.empty()) {
      ++report.passed;
      continue;
    }
    one.keep_trace = true;
    Run again = run_seed(one, test);
    std::string what = run.failures.front();
    if (again.trace_hash != run.trace_hash)
      what += " (and it does not replay: a second run of the seed went otherwise)";
    report.failure = {one.seed, std::move(what), std::move(again.trace)};
    break;
  }
  return report;
}

std::string Report::to_string() const {
  if (!failure) return std::to_string(passed) + " seeds passed";
  std::string seed = std::to_string(failure->seed);
  std::string text = "seed " + seed + " failed: " + failure->what + "\n" + "replay: for_each_seed({.first = " + seed +
                     ", .count = 1}, ...)";
  std::size_t shown = std::min(failure->trace.size(), kLinesShown);
  for (std::size_t i = failure->trace.size() - shown; i < failure->trace.size(); ++i) text += "\n" + failure->trace[i];
  return text;
}

}  // namespace perdure::testing
