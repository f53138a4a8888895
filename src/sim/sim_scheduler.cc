#include "sim/sim_scheduler.h"

namespace perdure::sim {

bool SimScheduler::run(std::uint64_t steps_max) {
  for (std::uint64_t i = 0; i < steps_max; ++i)
    if (!step()) return true;
  return false;
}

}  // namespace perdure::sim
