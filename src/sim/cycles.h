// Finds cycles of dependencies: sets of transactions that no order can satisfy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/dependency_graph.h"

namespace perdure::sim {

/// Those nodes of the smallest knot of two or more, all of which reach one another over edges of the given kinds (and
/// of kind kVia). Empty if there is none, which is to say that there is no cycle. Linear, and needs no deep stack.
std::vector<std::uint32_t> find_knot(const DependencyGraph& graph, EdgeKinds kinds);

/// One step of a cycle from transaction to transaction, with helper nodes left out.
struct CycleStep {
  std::uint32_t from;
  EdgeKind kind;
  std::uint32_t to;
};

enum class ReadWrites { kAtMostOne, kAny };

/// The shortest cycle inside of a knot, as long as its search stays within a budget of steps, and then the shortest
/// that was found. Empty only if `read_writes` forbids each of them.
std::vector<CycleStep> find_short_cycle(const DependencyGraph& graph, const History& history,
                                        std::span<const std::uint32_t> knot, EdgeKinds kinds, ReadWrites read_writes);

}  // namespace perdure::sim
