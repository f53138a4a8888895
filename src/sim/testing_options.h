#pragma once

#include "perdure/testing.h"
#include "sim/fault_plan.h"

namespace perdure::sim {

/// What a user's options mean in the simulator's own terms.
Scenario scenario_of(const testing::SimulationOptions& options);

}  // namespace perdure::sim
