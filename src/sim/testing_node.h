#pragma once

#include <string>
#include <vector>

#include "perdure/testing.h"
#include "sim/world.h"

namespace perdure::testing {

/// Stays when its SimNode is gone, so that a user's reference never dangles.
class Node::Impl {
 public:
  Impl(sim::World& world, sim::SimNode& node)
      : world_(world),
        node_(&node),
        index_(node.index()),
        life_(node.life()),
        name_(node.name()),
        store_(node.store()) {}

  /// Runs `task`, user's code, unless the node is dead. What it throws is a failure of the test.
  void run(std::move_only_function<void()> task, std::string_view what);
  bool alive() const { return node_ && node_->alive(); }
  /// The node has died: none of its code is run from now on.
  void silence();
  /// The last moment of its SimNode.
  void gone();

 private:
  friend class Node;

  sim::World& world_;
  sim::SimNode* node_;
  const int index_;
  const int life_;
  const std::string name_;
  Store store_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace perdure::testing
