#include "sim/testing_options.h"

#include <algorithm>

#include "sim/streams.h"

namespace perdure::sim {
namespace {

using enum FaultClass;
using testing::Faults;
using testing::StoreKind;

struct Often {
  FaultClass kind;
  NumberRange some;
  NumberRange many;
};

constexpr Often kOften[] = {
    {kConflict, {0, 2}, {0, 4}},    {kUnknownApplied, {0, 1}, {0, 3}}, {kUnknownLost, {0, 1}, {0, 3}},
    {kUnknownLate, {0, 1}, {0, 3}}, {kUnavailable, {0, 1}, {0, 3}},    {kOutage, {0, 0}, {0, 1}},
    {kLateBell, {0, 0}, {0, 2}},    {kLostBell, {0, 0}, {0, 2}},       {kSlowDisk, {0, 0}, {0, 2}},
    {kFullDisk, {0, 0}, {0, 1}},    {kRetired, {0, 0}, {0, 2}},        {kPause, {0, 2}, {0, 3}},
    {kWallJump, {0, 1}, {0, 3}},    {kCrash, {0, 2}, {0, 4}},          {kPowerCut, {0, 0}, {0, 2}},
};

bool is_remote(const testing::SimulationOptions& options) {
  if (options.store != StoreKind::kDrawn) return options.store == StoreKind::kRemote;
  Random random = stream(options.seed, "testing/store");
  return chance(random, 500);
}

}  // namespace

Scenario scenario_of(const testing::SimulationOptions& options) {
  Scenario scenario;
  scenario.nodes = {options.nodes, options.nodes};
  std::int64_t seconds = std::max<std::int64_t>(options.faults_last / std::chrono::seconds(1), 1);
  scenario.duration_s = {seconds, seconds};
  std::int64_t remote = is_remote(options) ? 1 : 0;
  scenario.remote = scenario.unknown_commits = {remote, remote};
  scenario.knows_deaths = {1 - remote, 1 - remote};
  if (options.faults == Faults::kNone) return scenario;
  for (const Often& often : kOften)
    scenario.faults[static_cast<std::size_t>(often.kind)] = options.faults == Faults::kSome ? often.some : often.many;
  return scenario;
}

}  // namespace perdure::sim
