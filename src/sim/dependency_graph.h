// Which transaction must come before which.
//
// The first nodes are the transactions. Where each of many must precede each of many others, a helper node stands
// between them, so that the edges stay linear in the history: one for each key with appends that nobody read (all who
// read the whole list precede all of those), and barriers in time (all that completed before it precede all that were
// invoked after it). An edge into a helper has the kind of the dependency, an edge out of it has kind kVia.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/version_order.h"

namespace perdure::sim {

enum class EdgeKind : std::uint8_t {
  kWriteWrite,  ///< Appended to a list right before the other did.
  kWriteRead,   ///< Appended the last element that the other read.
  kReadWrite,   ///< Read a list without what the other appended next.
  kRealTime,    ///< Completed before the other was invoked.
  kVia,         ///< Out of a helper node.
};

/// A set of edge kinds, as bits.
using EdgeKinds = std::uint32_t;
constexpr EdgeKinds bit(EdgeKind kind) {
  return EdgeKinds{1} << static_cast<unsigned>(kind);
}

class DependencyGraph {
 public:
  /// The node at the end of an edge and the kind of the edge, in one word.
  class Target {
   public:
    Target() = default;
    Target(std::uint32_t node, EdgeKind kind) : word_(node << 3 | static_cast<std::uint32_t>(kind)) {}
    std::uint32_t node() const { return word_ >> 3; }
    EdgeKind kind() const { return static_cast<EdgeKind>(word_ & 7); }

   private:
    std::uint32_t word_ = 0;
  };

  /// From a history whose order has been inferred without a finding.
  explicit DependencyGraph(const VersionOrder& order);

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  bool is_txn(std::uint32_t node) const { return node < txn_count_; }
  std::size_t edge_count() const { return targets_.size(); }
  std::span<const Target> edges(std::uint32_t node) const {
    return {targets_.data() + first_[node], targets_.data() + first_[node + 1]};
  }

 private:
  struct Edge {
    std::uint32_t from;
    Target target;
  };
  /// What is known of the appends to a key that nobody read.
  struct Unread {
    std::uint32_t helper = kNone;   ///< The node before those who did not read the whole list themselves.
    std::uint32_t updater = kNone;  ///< One who read the whole list and then appended.
  };

  void add_edge(std::uint32_t from, std::uint32_t to, EdgeKind kind);
  void add_list_edges(const VersionOrder& order);
  void add_unread_edges(const VersionOrder& order);
  std::uint32_t unread_head(const VersionOrder& order, const VersionOrder::Read& read) const;
  void add_time_edges(const VersionOrder& order);
  void pack();

  std::uint32_t txn_count_;
  std::uint32_t next_node_;
  std::vector<Edge> unpacked_;
  std::vector<std::uint32_t> first_;  ///< Where the edges of each node begin in targets_.
  std::vector<Target> targets_;
};

}  // namespace perdure::sim
