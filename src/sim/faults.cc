#include "sim/faults.h"

#include <algorithm>

#include "base/assert.h"
#include "sim/trace.h"

namespace perdure::sim {
namespace {

using enum FaultClass;
using enum FaultInfo::Shape;
using enum FaultInfo::Reach;
using enum FaultInfo::Delays;

constexpr FaultInfo kFaults[] = {
    {kConflict, "conflict", kWindow, kAnyNodes, kLittle},
    {kUnknownApplied, "unknown_applied", kWindow, kAnyNodes, kLittle},
    {kUnknownLost, "unknown_lost", kWindow, kAnyNodes, kLittle},
    {kUnknownLate, "unknown_late", kWindow, kAnyNodes, kLittle},
    {kUnavailable, "unavailable", kWindow, kAnyNodes, kMuch},
    {kOutage, "outage", kWindow, kAllNodes, kMuch},
    {kLateBell, "late_bell", kWindow, kAnyNodes, kLittle},
    {kLostBell, "lost_bell", kWindow, kAnyNodes, kLittle},
    {kSlowDisk, "slow_disk", kWindow, kAllNodes, kMuch},
    {kFullDisk, "full_disk", kWindow, kAllNodes, kMuch},
    {kRetired, "retired", kWindow, kAnyNodes, kLittle},
    {kPause, "pause", kWindow, kOneNode, kMuch},
    {kWallJump, "wall_jump", kInstant, kOneNode, kLittle},
    {kCrash, "crash", kInstant, kOneNode, kMuch},
    {kPowerCut, "power_cut", kInstant, kAllNodes, kMuch},
};
static_assert(std::size(kFaults) == kFaultClasses);

std::string degree_of(const FaultEvent& event) {
  std::string number = std::to_string(event.degree);
  switch (event.kind) {
    case kUnavailable:
    case kOutage:
    case kPause:
      return "";
    case kLateBell:
      return " by up to " + number + " ms";
    case kWallJump:
      return " by " + number + " ms";
    case kSlowDisk:
      return ", " + number + " times slower";
    case kFullDisk:
      return event.degree == 0 ? ", but for the reserve" : ", to the last byte";
    case kCrash:
    case kPowerCut:
      return ", back after " + number + " ms";
    default:
      return " of " + number + " in 1000";
  }
}

}  // namespace

std::span<const FaultInfo> fault_table() {
  return kFaults;
}

const FaultInfo& info(FaultClass kind) {
  const FaultInfo& found = kFaults[static_cast<std::size_t>(kind)];
  check(found.kind == kind, "the table of faults is out of order");
  return found;
}

std::optional<FaultClass> fault_by_name(std::string_view name) {
  auto found = std::ranges::find(kFaults, name, &FaultInfo::name);
  return found == std::end(kFaults) ? std::nullopt : std::optional(found->kind);
}

std::string to_string(const FaultEvent& event) {
  std::string text = show_time(event.start) + " s: " + std::string(info(event.kind).name);
  text += event.node == kEveryNode ? " everywhere" : " of node " + std::to_string(event.node);
  text += degree_of(event);
  if (event.duration > Duration{}) text += ", for " + show_time(event.duration) + " s";
  if (event.moment == FaultEvent::Moment::kBeforeApply) text += ", before its next commit is applied";
  if (event.moment == FaultEvent::Moment::kBeforeAnswer)
    text += event.kind == kPowerCut ? ", soon after the next commit" : ", before its next commit is answered";
  return text;
}

}  // namespace perdure::sim
