// Scenario files: which workload, on how many nodes, for how long, under which faults. See
// docs/internals/simulation.md for the keys.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"
#include "sim/faults.h"

namespace perdure::sim {

/// A number that each run draws anew; both ends are included.
struct NumberRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool operator==(const NumberRange&) const = default;
};

/// A fault that every run of a scenario has: for what takes faults in a row, which chance alone seldom brings about.
struct ScriptedFault {
  FaultClass kind;
  int node;
  /// From the beginning of the run, or from the end of the one before it in the script.
  enum class From { kStart, kPrevious } from;
  NumberRange at_ms;
  NumberRange for_ms;
};

struct Scenario {
  enum class Mode {
    kSafety,   ///< Any faults to the end; only what must never happen is looked for.
    kLiveness  ///< Faults, then none: everything must come to rest within `drain_s`.
  };

  std::string name;
  std::string workload;
  Mode mode = Mode::kSafety;
  NumberRange nodes{1, 3};
  NumberRange duration_s{10, 30};
  std::int64_t drain_s = 60;
  /// Of all runs over all scenarios, how many are of this one.
  std::int64_t weight = 1;
  /// How many faults of each class a run has.
  std::array<NumberRange, kFaultClasses> faults{};
  std::vector<ScriptedFault> script;
  std::map<std::string, NumberRange, std::less<>> knobs;
  /// Names of seeded bugs that runs of this scenario must find.
  std::vector<std::string> catches;

  // What the store is like: see StoreTraits.
  NumberRange remote{0, 1};
  NumberRange replicas{0, 1};
  NumberRange unknown_commits{0, 1};
  NumberRange knows_deaths{0, 1};
  NumberRange request_us{100, 3000};
  NumberRange sync_us{100, 8000};
  NumberRange bell_us{100, 8000};
};

/// `file` is named in errors, which say the line and what to do. The name of the scenario is that of the file.
Result<Scenario> parse_scenario(std::string_view text, std::string_view file);
/// Every *.scenario of a directory, by name.
Result<std::vector<Scenario>> load_scenarios(const std::string& directory);

}  // namespace perdure::sim
