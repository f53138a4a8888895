// The ring: a tiny invariant for brutal tests, after the Cycle workload of FoundationDB.
//
// n keys, each of which holds the number of its successor. A step takes a node a and the three after it, a b c d, and
// makes them a c b d. Any lost, torn or stale step breaks the ring into pieces or makes two nodes point to one, so that
// the check at the end, or in the middle by one transaction that reads all keys, sees it.
//
// Binding to a store, inside one transaction: `ring_step(node, n, get)` reads three keys through `get` and returns the
// three writes to make.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "perdure/error.h"

namespace perdure::sim {

using RingNode = std::uint32_t;

/// With fewer nodes there is nothing to swap.
inline constexpr RingNode kRingNodesMin = 3;

struct RingWrite {
  RingNode node;
  RingNode successor;
  bool operator==(const RingWrite&) const = default;
};

/// The successor of each node at the beginning.
inline std::vector<RingNode> ring_initial(RingNode n) {
  std::vector<RingNode> successors(n);
  for (RingNode i = 0; i < n; ++i) successors[i] = (i + 1) % n;
  return successors;
}

/// The node where a step begins, from any random number.
inline RingNode ring_draw(RingNode n, std::uint64_t random) {
  return static_cast<RingNode>(random % n);
}

/// Reads a, b and c through `get`, a function from RingNode to Result<RingNode>, and returns what to write. Its errors
/// are returned as they are; a successor outside of the ring is kCorrupt, and so is a ring already broken around a.
template <class Get>
Result<std::array<RingWrite, 3>> ring_step(RingNode a, RingNode n, Get&& get) {
  std::array<RingNode, 4> nodes{a};
  for (std::size_t i = 0; i < 3; ++i) {
    Result<RingNode> next = get(nodes[i]);
    if (!next) return std::unexpected(std::move(next.error()));
    if (*next >= n)
      return fail(ErrorCode::kCorrupt, "node " + std::to_string(nodes[i]) + " points to " + std::to_string(*next) +
                                           ", outside of a ring of " + std::to_string(n));
    nodes[i + 1] = *next;
  }
  auto [_, b, c, d] = nodes;
  if (a == b || b == c || a == c)
    return fail(ErrorCode::kCorrupt, "the ring closes too early: " + std::to_string(a) + " -> " + std::to_string(b) +
                                         " -> " + std::to_string(c));
  return std::array{RingWrite{a, c}, RingWrite{c, b}, RingWrite{b, d}};
}

/// Whether following successors from 0 visits every node exactly once and comes back to 0; kCorrupt says where not.
inline Result<void> check_ring(std::span<const RingNode> successors) {
  std::vector<char> visited(successors.size(), false);
  RingNode node = 0;
  for (std::size_t count = 0; count < successors.size(); ++count) {
    if (visited[node])
      return fail(ErrorCode::kCorrupt, "from 0, node " + std::to_string(node) + " comes again after " +
                                           std::to_string(count) + " of " + std::to_string(successors.size()) +
                                           " nodes");
    visited[node] = true;
    RingNode next = successors[node];
    if (next >= successors.size())
      return fail(ErrorCode::kCorrupt, "node " + std::to_string(node) + " points to " + std::to_string(next) +
                                           ", outside of a ring of " + std::to_string(successors.size()));
    node = next;
  }
  if (node != 0)
    return fail(ErrorCode::kCorrupt, "after all nodes, the last points to " + std::to_string(node) + " and not to 0");
  return {};
}

}  // namespace perdure::sim
