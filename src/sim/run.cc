#include "sim/run.h"

#include <algorithm>

namespace perdure::sim {

RunOutcome run_once(const Scenario& scenario, std::uint64_t seed, Trace::Keep keep) {
  return World(scenario, seed, draw_shape(scenario, seed), keep).run();
}

RunOutcome run_with(const Scenario& scenario, std::uint64_t seed, FaultPlan plan, Trace::Keep keep) {
  RunShape shape = draw_shape(scenario, seed);
  shape.plan = std::move(plan);
  return World(scenario, seed, std::move(shape), keep).run();
}

Shrunk shrink(FaultPlan plan, const std::function<bool(const FaultPlan&)>& fails, std::uint64_t runs_max) {
  Shrunk shrunk{std::move(plan)};
  std::size_t part = std::max<std::size_t>(shrunk.plan.size(), 1);
  while (shrunk.runs < runs_max) {
    bool smaller = false;
    for (std::size_t at = 0; at < shrunk.plan.size() && shrunk.runs < runs_max;) {
      FaultPlan rest = shrunk.plan;
      auto first = rest.begin() + static_cast<std::ptrdiff_t>(at);
      rest.erase(first, rest.begin() + static_cast<std::ptrdiff_t>(std::min(at + part, rest.size())));
      ++shrunk.runs;
      if (fails(rest)) {
        shrunk.plan = std::move(rest);
        smaller = true;
      } else {
        at += part;
      }
    }
    if (part == 1 && !smaller) break;
    part = std::max<std::size_t>(part / 2, 1);
  }
  return shrunk;
}

}  // namespace perdure::sim
