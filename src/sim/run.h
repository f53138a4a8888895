#pragma once

#include "sim/world.h"

namespace perdure::sim {

/// One run of a scenario, as its seed has it.
RunOutcome run_once(const Scenario& scenario, std::uint64_t seed, Trace::Keep keep = Trace::Keep::kHash);
/// The same under other faults than the seed has drawn.
RunOutcome run_with(const Scenario& scenario, std::uint64_t seed, FaultPlan plan,
                    Trace::Keep keep = Trace::Keep::kHash);

/// Makes a fault plan that fails smaller, as long as it still fails.
///
/// Removes ever smaller parts of the list, as delta debugging does (Zeller, Hildebrandt: "Simplifying and Isolating
/// Failure-Inducing Input"), in at most `runs_max` runs.
struct Shrunk {
  FaultPlan plan;
  std::uint64_t runs = 0;
};
Shrunk shrink(FaultPlan plan, const std::function<bool(const FaultPlan&)>& fails, std::uint64_t runs_max);

}  // namespace perdure::sim
