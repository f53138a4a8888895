// The simulation runner, behind ./dev sim. See docs/internals/simulation.md.
#include <algorithm>
#include <cstdio>

#include "base/seeded_bug.h"
#include "commands.h"

namespace perdure::sim {

int list(const std::vector<Scenario>& scenarios) {
  std::printf("scenarios\n");
  for (const Scenario& scenario : scenarios)
    std::printf("  %-20s%s, %s, weight %lld\n", scenario.name.c_str(), scenario.workload.c_str(),
                scenario.mode == Scenario::Mode::kSafety ? "safety" : "liveness",
                static_cast<long long>(scenario.weight));
  std::printf("\nworkloads: %s\n\nseeded bugs\n", workload_names().c_str());
  for (const SeededBugInfo& bug : seeded_bugs())
    std::printf("  %-24s%s\n", std::string(bug.name).c_str(), std::string(bug.what).c_str());
  return 0;
}

namespace {

int wrong(const Error& error) {
  std::fprintf(stderr, "sim: %s\n\n%s", error.message.c_str(), usage().c_str());
  return 2;
}

Result<void> narrow(std::vector<Scenario>& scenarios, const std::string& name) {
  if (name.empty()) return {};
  auto rest = std::ranges::remove_if(scenarios, [&](const Scenario& scenario) { return scenario.name != name; });
  scenarios.erase(rest.begin(), rest.end());
  if (scenarios.empty()) return fail(ErrorCode::kInvalidArgument, "there is no scenario '" + name + "'; see --list");
  return {};
}

Result<void> seed_the_bug(const std::string& name) {
  if (name.empty()) return {};
  auto found = std::ranges::find(seeded_bugs(), name, &SeededBugInfo::name);
  if (found == seeded_bugs().end())
    return fail(ErrorCode::kInvalidArgument, "there is no seeded bug '" + name + "'; see --list");
#ifdef PERDURE_SEEDED_BUGS
  seed_bug(found->bug);
  return {};
#else
  return fail(ErrorCode::kInvalidArgument, "this build has no seeded bugs; configure it with PERDURE_SEEDED_BUGS=ON");
#endif
}

int run(int count, char** arguments) {
  auto options = parse_options(count, arguments);
  if (!options) return wrong(options.error());
  if (options->command == Options::Command::kHelp) {
    std::fputs(usage().c_str(), stdout);
    return 0;
  }
  auto scenarios = load_scenarios(PERDURE_SCENARIOS);
  if (!scenarios) return wrong(scenarios.error());
  if (auto done = narrow(*scenarios, options->scenario); !done) return wrong(done.error());
  if (options->command == Options::Command::kBugs) return run_bugs(*scenarios, *options);
  if (auto done = seed_the_bug(options->bug); !done) return wrong(done.error());
  switch (options->command) {
    case Options::Command::kSeeds:
      return run_seeds(*scenarios, *options);
    case Options::Command::kOneSeed:
      return run_one_seed(*scenarios, *options);
    default:
      return list(*scenarios);
  }
}

}  // namespace
}  // namespace perdure::sim

int main(int count, char** arguments) {
  return perdure::sim::run(count, arguments);
}
