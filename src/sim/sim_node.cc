#include "sim/sim_node.h"

#include "base/assert.h"
#include "sim/world.h"
#include "store/store_access.h"

namespace perdure::sim {
namespace {

/// Far more than the calls of a node can need to be answered.
constexpr std::uint64_t kDrainStepsMax = 1'000'000;

std::string name_of(int index, int life) {
  return "n" + std::to_string(index) + "." + std::to_string(life);
}

}  // namespace

SimNode::SimNode(World& world, int index, int life)
    : world_(world),
      index_(index),
      life_(life),
      started_(world.now()),
      scheduler_(world.timeline_, name_of(index, life), world.seed()),
      random_(stream(world.seed(), "workload/" + scheduler_.name())),
      engine_(new SimEngine(world.store_, scheduler_, index, world.seed(), [&world, index] { world.has_died(index); })),
      top_(world.stack(std::unique_ptr<Engine>(engine_), scheduler_).release()),
      store_(Store::on_engine(std::unique_ptr<Engine>(top_), scheduler_,
                              {.on_fatal =
                                   [this](const Error& error) {
                                     if (alive()) world_.violation("the store failed: " + error.message);
                                   },
                               .when_failed = WhenFailed::kRefuseCalls})
                 .value()) {}

SimNode::~SimNode() = default;

void SimNode::finish() {
  StoreImpl& store = StoreAccess::impl(store_);
  bool quiet = scheduler_.drain([&] { return store.calls_inside() == 0 && !engine_->busy(); }, kDrainStepsMax);
  check(quiet, "the calls of a dead node do not end: its workload goes on, or a call is lost");
  store_.close();
  scheduler_.drop_everything();
}

}  // namespace perdure::sim
