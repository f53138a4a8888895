#include "perdure/testing.h"

#include "base/assert.h"
#include "sim/testing_node.h"
#include "sim/testing_options.h"

namespace perdure::testing {
namespace {

using sim::FaultClass;
using sim::FaultEvent;

constexpr int kNodesMax = 9;

FaultEvent::Moment moment_of(Crash when) {
  switch (when) {
    case Crash::kBeforeApply:
      return FaultEvent::Moment::kBeforeApply;
    case Crash::kAfterApply:
      return FaultEvent::Moment::kBeforeAnswer;
    case Crash::kAtOnce:
      break;
  }
  return FaultEvent::Moment::kAtOnce;
}

std::int64_t in_ms(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

SimulationOptions checked(const SimulationOptions& options) {
  check(options.nodes >= 1 && options.nodes <= kNodesMax, "a simulation has between 1 and 9 nodes");
  return options;
}

}  // namespace

/// The world, led from outside, and what the user gave for it to do.
class Simulation::Impl {
 public:
  explicit Impl(const SimulationOptions& options)
      : options_(checked(options)),
        scenario_(sim::scenario_of(options_)),
        random_(sim::stream(options_.seed, "testing")),
        world_(
            scenario_, options_.seed, sim::draw_shape(scenario_, options_.seed),
            [this](sim::World&) { return std::make_unique<Handlers>(*this); },
            options_.keep_trace ? sim::Trace::Keep::kLines : sim::Trace::Keep::kHash) {}

  bool has(int node) const { return node >= 0 && node < options_.nodes; }
  sim::World& started() {
    if (started_) return world_;
    started_ = true;
    world_.start();
    return world_;
  }

  void inject(FaultClass kind, int node, Duration duration, std::int64_t degree = 0, Crash when = Crash::kAtOnce) {
    check(kind == FaultClass::kPowerCut || has(node), "a fault of a node that does not exist");
    started().inject(
        {.kind = kind, .node = node, .start = {}, .duration = duration, .degree = degree, .moment = moment_of(when)});
  }

 private:
  friend class Simulation;

  /// What the world tells of its nodes.
  class Handlers final : public sim::Workload {
   public:
    explicit Handlers(Impl& simulation) : simulation_(simulation) {}
    void setup(sim::Setup& setup) override {
      for (auto& body : simulation_.setups_) setup.transact(body);
    }
    void start(sim::SimNode& node) override { simulation_.start(node); }
    void node_stopped(sim::SimNode& node) override { simulation_.present(node).impl_->silence(); }
    void node_gone(sim::SimNode& node) override { simulation_.present(node).impl_->gone(); }
    void check(Store&) override {}

   private:
    Impl& simulation_;
  };

  void start(sim::SimNode& node) {
    auto& lives = lives_[static_cast<std::size_t>(node.index())];
    lives.push_back(std::unique_ptr<Node>(new Node(std::make_unique<Node::Impl>(world_, node))));
    if (!on_start_) return;
    // As a task of the node: what it calls is then refused if it blocks, and takes its time as anything else there.
    node.scheduler().post([this, &life = *lives.back()] { life.impl_->run([&] { on_start_(life); }, "on_start"); });
  }
  Node& present(const sim::SimNode& node) { return *lives_[static_cast<std::size_t>(node.index())].back(); }

  const SimulationOptions options_;
  const sim::Scenario scenario_;
  Random random_;
  std::vector<std::function<void(Transaction&)>> setups_;
  std::function<void(Node&)> on_start_;
  /// All lives of each node. They outlive the world, whose end is their death.
  std::vector<std::unique_ptr<Node>> lives_[kNodesMax];
  sim::World world_;
  bool started_ = false;
};

Simulation::Simulation(const SimulationOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Simulation::~Simulation() = default;

void Simulation::setup(const std::function<void(Transaction&)>& body) {
  check(!impl_->started_, "Simulation::setup comes before the nodes start");
  impl_->setups_.push_back(body);
}

void Simulation::on_start(std::function<void(Node&)> handler) {
  check(!impl_->started_, "Simulation::on_start comes before the nodes start");
  impl_->on_start_ = std::move(handler);
}

Node* Simulation::node(int index) {
  check(impl_->has(index), "there is no such node in the simulation");
  sim::SimNode* there = impl_->started().node(index);
  return there && there->alive() ? &impl_->present(*there) : nullptr;
}

void Simulation::run_for(Duration virtual_time) {
  run_until({}, virtual_time);
}

bool Simulation::run_until(const std::function<bool()>& enough, Duration at_most) {
  sim::World& world = impl_->started();
  return world.run_until(world.now() + at_most, enough);
}

void Simulation::crash(int node, Crash when, Duration back_after) {
  impl_->inject(FaultClass::kCrash, node, {}, in_ms(back_after), when);
}

void Simulation::pause(int node, Duration duration) {
  impl_->inject(FaultClass::kPause, node, duration);
}

void Simulation::jump_wall_clock(int node, Duration by) {
  impl_->inject(FaultClass::kWallJump, node, {}, in_ms(by));
}

void Simulation::cut_off(int node, Duration duration) {
  impl_->inject(FaultClass::kUnavailable, node, duration);
}

void Simulation::power_cut(Duration back_after) {
  impl_->inject(FaultClass::kPowerCut, sim::kEveryNode, {}, in_ms(back_after));
}

void Simulation::heal() {
  sim::World& world = impl_->started();
  world.heal();
  for (int index = 0; index < world.nodes(); ++index)
    if (sim::SimNode* there = world.node(index)) there->scheduler().wake();
}

bool Simulation::expect(bool holds, std::string_view what) {
  if (!holds) impl_->world_.violation(std::string(what));
  return holds;
}

const std::vector<std::string>& Simulation::failures() const {
  return impl_->world_.violations();
}

const SimulationOptions& Simulation::options() const {
  return impl_->options_;
}

Duration Simulation::elapsed() const {
  return impl_->world_.now() - sim::kBeginning;
}

std::uint64_t Simulation::random() {
  return impl_->random_();
}

std::uint64_t Simulation::trace_hash() const {
  return impl_->world_.trace().hash();
}

const std::vector<std::string>& Simulation::trace() const {
  return impl_->world_.trace().lines();
}

void Simulation::observe(const std::function<void(Store&)>& look) {
  impl_->started().observe(look);
}

}  // namespace perdure::testing
