#pragma once

#include "sim_options.h"
#include "tally.h"

namespace perdure::sim {

/// The scenario that a seed runs, by the weights.
const Scenario& scenario_of(const std::vector<Scenario>& scenarios, std::uint64_t seed);

/// Runs one seed, and if it is a twentieth, again to compare. A failure is made smaller and described in the tally.
/// Answers whether all was well.
bool run_seed(const Scenario& scenario, std::uint64_t seed, const Options& options, Tally& tally);

/// What the seed's list of faults is without those that are not named.
FaultPlan kept_faults(const FaultPlan& plan, const Options& options);

/// A failure, for a person, with the faults that it needs and the command that replays it.
std::string describe_failure(const Scenario& scenario, std::uint64_t seed, const Options& options,
                             const RunOutcome& outcome);

}  // namespace perdure::sim
