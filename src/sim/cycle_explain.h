#pragma once

#include <string>
#include <vector>

#include "sim/cycles.h"
#include "sim/version_order.h"

namespace perdure::sim {

/// The steps of a cycle in plain words, then the records of the transactions on it.
std::string explain_cycle(const VersionOrder& order, const std::vector<CycleStep>& cycle);

/// One line for each transaction, "\n  T12: ok 3 1000 2000 a 7 3", as it stands in a history file.
std::string show_records(const History& history, std::vector<std::uint32_t> txns);

}  // namespace perdure::sim
