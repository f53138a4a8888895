#pragma once

#include "sim/scenario.h"
#include "sim/sim_store.h"

namespace perdure::sim {

/// What a run is like, as drawn from its seed.
struct RunShape {
  int nodes;
  Duration duration;
  StoreTraits traits;
  FaultPlan plan;
};

RunShape draw_shape(const Scenario& scenario, std::uint64_t seed);

/// Between the ends of the range.
std::int64_t draw(Random& random, const NumberRange& range);

}  // namespace perdure::sim
