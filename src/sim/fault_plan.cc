#include "sim/fault_plan.h"

#include <algorithm>
#include <utility>

namespace perdure::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using enum FaultClass;

struct Severity {
  NumberRange degree;
  NumberRange duration_ms;
};

/// How bad and how long the faults of a class are.
Severity severity_of(FaultClass kind) {
  switch (kind) {
    case kConflict:
      return {{50, 900}, {500, 8000}};
    case kUnknownApplied:
    case kUnknownLost:
    case kUnknownLate:
      return {{20, 600}, {500, 8000}};
    case kUnavailable:
      return {{0, 0}, {10, 7000}};
    case kOutage:
      return {{0, 0}, {8000, 16000}};
    case kLateBell:
      return {{10, 4000}, {500, 10000}};
    case kLostBell:
      return {{100, 1000}, {500, 10000}};
    case kSlowDisk:
      return {{2, 200}, {200, 5000}};
    case kFullDisk:
      return {{0, 1}, {100, 6000}};
    case kRetired:
      return {{5, 300}, {500, 10000}};
    case kPause:
      return {{0, 0}, {10, 12000}};
    case kWallJump:
      return {{-3'600'000, 3'600'000}, {0, 0}};
    case kCrash:
      return {{1, 8000}, {0, 0}};
    case kPowerCut:
      return {{1, 3000}, {0, 0}};
  }
  return {};
}

bool possible(FaultClass kind, const StoreTraits& traits) {
  bool unknown = kind == kUnknownApplied || kind == kUnknownLost || kind == kUnknownLate;
  return !unknown || traits.unknown_commits;
}

int draw_node(Random& random, FaultInfo::Reach reach, int nodes) {
  int one = static_cast<int>(random() % static_cast<std::uint64_t>(nodes));
  if (reach == FaultInfo::Reach::kOneNode) return one;
  return reach == FaultInfo::Reach::kAllNodes || random() % 2 == 0 ? kEveryNode : one;
}

FaultEvent draw_event(FaultClass kind, const RunShape& shape, Random& random) {
  Severity severity = severity_of(kind);
  FaultEvent event{.kind = kind,
                   .node = draw_node(random, info(kind).reach, shape.nodes),
                   .start = microseconds(draw(random, {0, shape.duration / microseconds(1)})),
                   .duration = milliseconds(draw(random, severity.duration_ms)),
                   .degree = draw(random, severity.degree)};
  // Short ones are as likely as long ones, and everything ends with the run.
  if (random() % 2 == 0) event.duration /= 8;
  if (kind == kCrash || kind == kPowerCut)
    event.degree = random() % 2 == 0 ? event.degree : std::max<std::int64_t>(event.degree / 16, 1);
  event.duration = std::min(event.duration, shape.duration - event.start);
  if (kind == kCrash) event.moment = static_cast<FaultEvent::Moment>(random() % 3);
  if (kind == kPowerCut && random() % 3 > 0) event.moment = FaultEvent::Moment::kBeforeAnswer;
  return event;
}

void draw_script(const Scenario& scenario, std::uint64_t seed, RunShape& shape) {
  Random random = stream(seed, "script");
  Duration previous_end = {};
  for (const ScriptedFault& fault : scenario.script) {
    FaultEvent event = draw_event(fault.kind, shape, random);
    event.node = std::min(fault.node, shape.nodes - 1);
    event.start = milliseconds(draw(random, fault.at_ms));
    if (fault.from == ScriptedFault::From::kPrevious) event.start += previous_end;
    event.start = std::min(event.start, shape.duration);
    event.duration = std::min<Duration>(milliseconds(draw(random, fault.for_ms)), shape.duration - event.start);
    if (info(fault.kind).shape == FaultInfo::Shape::kInstant) event.duration = {};
    previous_end = event.end();
    shape.plan.push_back(event);
  }
}

StoreTraits draw_traits(const Scenario& scenario, Random& random) {
  StoreTraits traits;
  traits.remote = draw(random, scenario.remote) != 0;
  traits.unknown_commits = draw(random, scenario.unknown_commits) != 0;
  traits.knows_deaths = draw(random, scenario.knows_deaths) != 0;
  traits.request_max = microseconds(draw(random, scenario.request_us));
  traits.sync_max = microseconds(draw(random, scenario.sync_us));
  traits.bell_max = microseconds(draw(random, scenario.bell_us));
  return traits;
}

}  // namespace

std::int64_t draw(Random& random, const NumberRange& range) {
  return range.low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(range.high - range.low + 1));
}

RunShape draw_shape(const Scenario& scenario, std::uint64_t seed) {
  Random random = stream(seed, "shape");
  RunShape shape;
  shape.nodes = static_cast<int>(draw(random, scenario.nodes));
  shape.duration = seconds(draw(random, scenario.duration_s));
  shape.traits = draw_traits(scenario, random);
  for (const FaultInfo& fault : fault_table()) {
    Random own = stream(seed, "plan/" + std::string(fault.name));
    const NumberRange& often = scenario.faults[static_cast<std::size_t>(fault.kind)];
    // A third of the runs do without a class: what one kind of fault hides, another run shows.
    std::int64_t count = chance(own, 333) ? often.low : draw(own, often);
    if (!possible(fault.kind, shape.traits)) continue;
    for (std::int64_t i = 0; i < count; ++i) shape.plan.push_back(draw_event(fault.kind, shape, own));
  }
  // From a stream of its own, so that seeds of before go as they went.
  Random engine = stream(seed, "replicas");
  shape.traits.replicas = shape.traits.remote && draw(engine, scenario.replicas) != 0;
  draw_script(scenario, seed, shape);
  std::ranges::sort(shape.plan, {}, [](const FaultEvent& event) { return std::pair(event.start, event.kind); });
  return shape;
}

}  // namespace perdure::sim
