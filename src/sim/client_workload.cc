#include "sim/client_workload.h"

#include <algorithm>

namespace perdure::sim {
namespace {

constexpr Duration kHurry = std::chrono::milliseconds(3);

}  // namespace

ClientWorkload::ClientWorkload(World& world)
    : world_(world),
      clients_(static_cast<std::uint64_t>(world.knob("clients"))),
      think_max_(std::chrono::milliseconds(world.knob("think_ms"))),
      under_way_(static_cast<std::size_t>(world.nodes())) {}

void ClientWorkload::start(SimNode& node) {
  for (std::uint64_t client = 0; client < clients_; ++client) loop(node, client);
}

void ClientWorkload::node_stopped(SimNode& node) {
  under_way_[static_cast<std::size_t>(node.index())] = 0;
}

bool ClientWorkload::idle() const {
  return quiescing_ && std::ranges::all_of(under_way_, [](std::uint64_t count) { return count == 0; });
}

void ClientWorkload::loop(SimNode& node, std::uint64_t client) {
  if (!node.alive() || quiescing_) return;
  // Every other time hardly any, so that clients get into each other's way, and then the store comes to rest.
  Duration think = draw_delay(node.random(), chance(node.random(), 500) ? kHurry : think_max_);
  node.scheduler().at(node.scheduler().now() + think, [this, &node, client] {
    if (!node.alive() || quiescing_) return;
    ++under_way_[static_cast<std::size_t>(node.index())];
    operate(node, client, [this, &node, client] {
      world_.count_operation();
      if (!node.alive()) return;
      --under_way_[static_cast<std::size_t>(node.index())];
      loop(node, client);
    });
  });
}

TransactOptions ClientWorkload::draw_options(SimNode& node) {
  TransactOptions options;
  if (chance(node.random(), 300)) options.body = Body::kShort;
  if (chance(node.random(), 100)) options.timeout = draw_delay(node.random(), std::chrono::milliseconds(50));
  if (chance(node.random(), 100)) options.reserve = Reserve::kMayUse;
  return options;
}

}  // namespace perdure::sim
