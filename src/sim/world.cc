#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "sim/engine_server.h"
#include "store/memory/memory_engine.h"
#include "store/remote/remote_engine.h"

namespace perdure::sim {
namespace {

/// More than any run needs: beyond it something spins.
constexpr std::uint64_t kStepsMax = 3'000'000;
constexpr std::size_t kViolationsMax = 10;

}  // namespace

World::World(const Scenario& scenario, std::uint64_t seed, RunShape shape, Trace::Keep keep)
    : World(scenario, seed, std::move(shape), [](World& world) { return world.make_named_workload(); }, keep) {}

World::World(const Scenario& scenario, std::uint64_t seed, RunShape shape, const MakeWorkload& make_workload,
             Trace::Keep keep)
    : scenario_(scenario),
      seed_(seed),
      shape_(std::move(shape)),
      timeline_(seed, keep),
      faults_(seed),
      world_scheduler_(timeline_, "world", seed),
      store_(world_scheduler_, shape_.traits, faults_, timeline_.trace(), seed),
      nodes_(static_cast<std::size_t>(shape_.nodes)),
      lives_(nodes_.size()),
      wall_offsets_(nodes_.size()),
      back_after_(nodes_.size()),
      last_disturbed_(kBeginning - Duration(1)) {
  Random random = stream(seed, "wall clocks");
  for (Duration& offset : wall_offsets_) offset = std::chrono::milliseconds(draw(random, {-10'000, 10'000}));
  workload_ = make_workload(*this);
}

std::unique_ptr<Workload> World::make_named_workload() {
  const WorkloadInfo* info = find_workload(scenario_.workload);
  check(info, "a scenario whose workload does not exist");
  for (const KnobInfo& knob : info->knobs) {
    auto given = scenario_.knobs.find(knob.name);
    Random random = stream(seed_, "knob/" + std::string(knob.name));
    knobs_.emplace(knob.name, draw(random, given == scenario_.knobs.end() ? knob.range : given->second));
  }
  return info->make(*this);
}

World::~World() {
  for (int index = 0; index < nodes(); ++index) take_down(index);
  world_scheduler_.drop_everything();
}

std::int64_t World::knob(std::string_view name) const {
  auto found = knobs_.find(name);
  check(found != knobs_.end(), "a workload asks for a knob that it has not registered");
  return found->second;
}

void World::violation(std::string text) {
  note("VIOLATION: " + text);
  if (outcome_.violations.size() < kViolationsMax) outcome_.violations.push_back(std::move(text));
}

bool World::reachable(int index) {
  SimNode* there = node(index);
  return there && there->alive() && store_.reachable(index) && !faults_.degree(FaultClass::kPause, index);
}

void World::start() {
  set_up();
  for (int index = 0; index < nodes(); ++index) start_node(index);
  for (const FaultEvent& event : shape_.plan)
    world_scheduler_.at(kBeginning + event.start, [this, &event] {
      if (!plan_is_over_) begin(event);
    });
}

RunOutcome World::run() {
  start();
  SteadyTime end = kBeginning + shape_.duration;
  run_until(end);
  if (scenario_.mode == Scenario::Mode::kLiveness && outcome_.violations.empty()) {
    heal();
    workload_->quiesce();
    bool rests = run_until(end + std::chrono::seconds(scenario_.drain_s), [this] { return workload_->idle(); });
    if (!rests && outcome_.violations.empty())
      violation("not at rest " + std::to_string(scenario_.drain_s) + " s after the last fault");
  }
  check_at_the_end();
  outcome_.virtual_time = now() - kBeginning;
  outcome_.steps = timeline_.steps();
  outcome_.faults = faults_.counts();
  outcome_.trace_hash = timeline_.trace().hash();
  outcome_.trace = timeline_.trace().lines();
  return std::move(outcome_);
}

bool World::run_until(SteadyTime when, const std::function<bool()>& enough) {
  std::uint64_t steps_before = timeline_.steps();
  while (outcome_.violations.empty()) {
    if (enough && enough()) return true;
    if (!timeline_.step(when)) return false;
    take_down_the_dead();
    if (timeline_.steps() - steps_before > kStepsMax)
      violation("the run does not end: " + std::to_string(kStepsMax) + " tasks have run");
  }
  return false;
}

void World::set_up() {
  Setup setup(*this);
  workload_->setup(setup);
  store_.settle();
}

void Setup::transact(std::function<void(Transaction&)> body) {
  NodeScheduler scheduler(world_.timeline_, "setup", world_.seed());
  auto store = Store::on_engine(
      world_.stack(std::make_unique<memory::MemoryEngine>(scheduler, world_.store_.rows()), scheduler), scheduler);
  bool done = false;
  store->transact_async([&body](Transaction& txn) { body(txn); },
                        [&done](Result<void> result) {
                          check(result.has_value(), "a setup that does not commit");
                          done = true;
                        });
  while (!done) check(world_.timeline_.step(), "a setup that is not answered");
  store->close();
}

void World::start_node(int index) {
  auto at = static_cast<std::size_t>(index);
  if (nodes_[at]) return;
  nodes_[at] = std::make_unique<SimNode>(*this, index, ++lives_[at]);
  nodes_[at]->scheduler().jump_wall_clock(wall_offsets_[at]);
  note(nodes_[at]->name(), "starts");
  workload_->start(*nodes_[at]);
}

void World::crash(int index, Duration back_after) {
  SimNode* there = node(index);
  if (!there || !there->alive()) return;
  back_after_[static_cast<std::size_t>(index)] = back_after;
  there->engine_->sever();
  has_died(index);
}

void World::has_died(int index) {
  faults_.count(FaultClass::kCrash);
  disturb();
  dead_.push_back(index);
}

void World::take_down_the_dead() {
  while (!dead_.empty()) {
    int index = dead_.back();
    dead_.pop_back();
    take_down(index);
    if (healed_) {
      calm();
      start_node(index);
      continue;
    }
    auto at = static_cast<std::size_t>(index);
    world_scheduler_.at(now() + back_after_[at], [this, index, at, died = lives_[at]] {
      if (lives_[at] != died) return;
      calm();
      start_node(index);
    });
  }
}

void World::take_down(int index) {
  auto& there = nodes_[static_cast<std::size_t>(index)];
  if (!there) return;
  note(there->name(), "dies");
  there->engine_->sever();
  workload_->node_stopped(*there);
  there->finish();
  workload_->node_gone(*there);
  there.reset();
}

void World::power_cut(Duration back_after) {
  faults_.count(FaultClass::kPowerCut);
  for (int index = 0; index < nodes(); ++index) crash(index, back_after);
  // At once, not when they are taken down: nothing may sync in between.
  store_.power_cut();
}

void World::inject(FaultEvent event) {
  // Whoever asks for a fault after healing means it: a node that dies of it stays down for as long as it says.
  healed_ = false;
  event.start = now() - kBeginning;
  begin(event);
  if (!timeline_.in_task()) take_down_the_dead();
}

void World::begin(const FaultEvent& event) {
  note("fault " + to_string(event));
  const FaultInfo& fault = info(event.kind);
  SimNode* there = event.node == kEveryNode ? nullptr : node(event.node);
  switch (event.kind) {
    case FaultClass::kPause:
      if (there) there->scheduler().pause_until(kBeginning + event.end());
      faults_.count(event.kind);
      break;
    case FaultClass::kWallJump: {
      Duration by = std::chrono::milliseconds(event.degree);
      wall_offsets_[static_cast<std::size_t>(event.node)] += by;
      if (there) there->scheduler().jump_wall_clock(by);
      faults_.count(event.kind);
      break;
    }
    case FaultClass::kCrash:
      back_after_[static_cast<std::size_t>(event.node)] = std::chrono::milliseconds(event.degree);
      if (event.moment == FaultEvent::Moment::kAtOnce)
        crash(event.node, std::chrono::milliseconds(event.degree));
      else if (there && there->alive())
        there->engine_->arm(event.moment);
      break;
    case FaultClass::kPowerCut:
      if (event.moment == FaultEvent::Moment::kAtOnce)
        power_cut(std::chrono::milliseconds(event.degree));
      else
        store_.after_next_commit([this, event] {
          if (!healed_) power_cut(std::chrono::milliseconds(event.degree));
        });
      break;
    case FaultClass::kUnavailable:
    case FaultClass::kOutage:
    case FaultClass::kSlowDisk:
    case FaultClass::kFullDisk:
      faults_.count(event.kind);
      break;
    default:
      break;
  }
  if (fault.shape == FaultInfo::Shape::kInstant) return;
  faults_.begin(event);
  active_.push_back(event);
  if (fault.delays == FaultInfo::Delays::kMuch) disturb();
  world_scheduler_.at(kBeginning + event.end(), [this, event] { end(event); });
}

void World::end(const FaultEvent& event) {
  auto found = std::ranges::find(active_, event);
  if (found == active_.end()) return;
  active_.erase(found);
  faults_.end(event);
  if (info(event.kind).delays == FaultInfo::Delays::kMuch) calm();
}

void World::heal() {
  note("the faults are over");
  healed_ = true;
  plan_is_over_ = true;
  store_.after_next_commit({});
  while (!active_.empty()) end(FaultEvent(active_.back()));
  for (int index = 0; index < nodes(); ++index) {
    if (SimNode* there = node(index)) {
      there->engine_->arm({});
    } else {
      calm();
      start_node(index);
    }
  }
}

void World::check_at_the_end() {
  for (int index = 0; index < nodes(); ++index) take_down(index);
  store_.settle();
  if (outcome_.violations.empty()) observe([this](Store& store) { workload_->check(store); });
}

std::unique_ptr<Engine> World::stack(std::unique_ptr<Engine> engine, Scheduler& scheduler) {
  if (!shape_.traits.replicas) return engine;
  // So little that rows are folded, forgotten and asked for again all the time.
  return std::make_unique<remote::RemoteEngine>(
      std::make_unique<EngineServer>(std::move(engine)), scheduler, StoreOptions{.cache_bytes = 30'000},
      remote::RemoteOptions{.fold_bytes = 20'000, .unfolded_bytes_max = 60'000});
}

std::shared_ptr<memory::MemoryRows> World::rows(Scheduler& scheduler) {
  if (!shape_.traits.replicas) return store_.rows();
  remote::Replica replica(
      std::make_unique<EngineServer>(std::make_unique<memory::MemoryEngine>(scheduler, store_.rows())), SIZE_MAX);
  auto rows = std::make_shared<memory::MemoryRows>();
  auto copy = rows->begin();
  check(replica.follow().has_value(), "a log that cannot be read");
  Version at = replica.open_view();
  auto scanned = replica.scan(at, {}, {}, [&](BytesView key, const Versioned& row) {
    return copy->put(key, row.value, row.version).has_value();
  });
  check(scanned.has_value(), "rows that cannot be read");
  copy->raise_version(at);
  rows->install(*copy);
  return rows;
}

void World::observe(const std::function<void(Store&)>& look) {
  NodeScheduler scheduler(timeline_, "check", seed_);
  auto store = Store::on_engine(std::make_unique<memory::MemoryEngine>(scheduler, rows(scheduler)), scheduler);
  look(*store);
  store->close();
}

}  // namespace perdure::sim
