// Whether the simulation would find what it is there to find: every bug is seeded in turn, and a scenario that claims
// to catch it must do so within a bounded number of seeds.
#include <algorithm>
#include <cstdio>

#include "base/seeded_bug.h"
#include "commands.h"
#include "workers.h"

namespace perdure::sim {
namespace {

constexpr std::uint64_t kSeedsMax = 2000;

struct Hunt {
  SeededBugInfo bug;
  std::vector<const Scenario*> scenarios;
  std::string seed;  ///< That caught it; empty as long as none has.
  std::string scenario;
  std::string how;
  std::uint64_t runs = 0;
};

/// Bugs of parts that this build does not have cannot be made.
bool is_built(SeededBug bug) {
#ifdef PERDURE_HAS_SESSION
  (void)bug;
  return true;
#else
  return bug < SeededBug::kBelieveFromReceipt;
#endif
}

#ifdef PERDURE_SEEDED_BUGS
void hunt(const Hunt& hunt, std::uint64_t from, const Tell& tell) {
  seed_bug(hunt.bug.bug);
  for (std::uint64_t i = 0; i < kSeedsMax; ++i) {
    const Scenario& scenario = *hunt.scenarios[i % hunt.scenarios.size()];
    std::string seed = std::to_string(from + i);
    tell("try " + seed + " " + scenario.name);
    RunOutcome outcome = run_once(scenario, from + i);
    if (!outcome.violations.empty()) return tell("caught " + escaped(outcome.violations.front()));
  }
}
#endif

void hear_of(Hunt& hunt, const std::string& line) {
  if (line.starts_with("try ")) {
    ++hunt.runs;
    auto blank = line.find(' ', 4);
    hunt.seed = line.substr(4, blank - 4);
    hunt.scenario = line.substr(blank + 1);
  } else {
    hunt.how = unescaped(line.substr(line.find(' ') + 1));
    hunt.how = hunt.how.substr(0, hunt.how.find('\n'));
  }
}

std::string row_of(const Hunt& hunt) {
  char text[400];
  bool caught = !hunt.how.empty();
  std::snprintf(text, sizeof text, "  %-24s%-10s%-10llu%-18s%.120s\n", std::string(hunt.bug.name).c_str(),
                caught ? hunt.seed.c_str() : "-", static_cast<unsigned long long>(hunt.runs),
                caught ? hunt.scenario.c_str() : "-", caught ? hunt.how.c_str() : "NOT CAUGHT");
  return text;
}

}  // namespace

int run_bugs(const std::vector<Scenario>& scenarios, const Options& options) {
#ifndef PERDURE_SEEDED_BUGS
  (void)scenarios, (void)options;
  std::fprintf(stderr, "this build has no seeded bugs; configure it with PERDURE_SEEDED_BUGS=ON\n");
  return 2;
#else
  std::vector<Hunt> hunts;
  for (const SeededBugInfo& bug : seeded_bugs()) {
    if (!is_built(bug.bug) || (!options.bug.empty() && bug.name != options.bug)) continue;
    Hunt next{.bug = bug, .scenarios = {}, .seed = {}, .scenario = {}, .how = {}};
    for (const Scenario& scenario : scenarios)
      if (std::ranges::count(scenario.catches, bug.name) > 0) next.scenarios.push_back(&scenario);
    if (next.scenarios.empty()) {
      std::fprintf(stderr, "no scenario claims to catch %s; add it to the line `catches =` of one\n",
                   std::string(bug.name).c_str());
      return 1;
    }
    hunts.push_back(std::move(next));
  }
  Workers(options.jobs > 0 ? options.jobs : cores())
      .run(
          hunts.size(), [&](std::size_t job, const Tell& tell) { hunt(hunts[job], options.from, tell); },
          [&](std::size_t job, const std::string& line) { hear_of(hunts[job], line); },
          // A run that aborts has noticed too.
          [&](std::size_t job, const std::string& how) {
            if (!how.empty()) hunts[job].how = how;
          },
          [] {});
  auto caught = std::ranges::count_if(hunts, [](const Hunt& hunt) { return !hunt.how.empty(); });
  std::string report = "seeded bugs: " + std::to_string(caught) + " of " + std::to_string(hunts.size()) + " caught\n";
  report += "  bug                     seed      runs      scenario          what was seen\n";
  for (const Hunt& hunt : hunts) report += row_of(hunt);
  give_report(report, options);
  return static_cast<std::size_t>(caught) == hunts.size() ? 0 : 1;
#endif
}

}  // namespace perdure::sim
