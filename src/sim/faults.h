// What can go wrong in a simulated world, as data.
//
// A run's faults are a list, made from the seed before the run begins: so they can be printed, left out one by one to
// find those that a failure needs, and given to the run again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/time.h"

namespace perdure::sim {

enum class FaultClass : std::uint8_t {
  kConflict,        ///< The engine starts a commit over: its job is applied once more.
  kUnknownApplied,  ///< A commit is applied, and its answer lost.
  kUnknownLost,     ///< A commit is lost before it arrives.
  kUnknownLate,     ///< A commit arrives after its sender has been told that nobody knows.
  kUnavailable,     ///< The store cannot be reached.
  kOutage,          ///< The store cannot be reached by anybody, for longer than most sessions live.
  kLateBell,        ///< Other nodes hear of changes late.
  kLostBell,        ///< Other nodes do not hear of changes, until they ask.
  kSlowDisk,        ///< Commits and their syncs take long.
  kFullDisk,        ///< There is no room, but perhaps the reserve.
  kRetired,         ///< The engine takes snapshots back while they are read.
  kPause,           ///< A node stands still while time goes on.
  kWallJump,        ///< A node's wall clock jumps.
  kCrash,           ///< A node dies, and another life of it begins later.
  kPowerCut,        ///< All nodes die, and with them what was not synced.
};
inline constexpr std::size_t kFaultClasses = 15;

struct FaultInfo {
  FaultClass kind;
  std::string_view name;  ///< As scenario files and reports call it.
  /// Whether it happens at an instant or lasts for a while.
  enum class Shape { kInstant, kWindow } shape;
  /// Whether it may concern one node alone.
  enum class Reach { kOneNode, kAnyNodes, kAllNodes } reach;
  /// Whether a fair deadline must not count the time in which it is there.
  enum class Delays { kLittle, kMuch } delays;
};

/// In the order of the enum.
std::span<const FaultInfo> fault_table();
const FaultInfo& info(FaultClass kind);
std::optional<FaultClass> fault_by_name(std::string_view name);

/// How often each class occurred.
using FaultCounts = std::array<std::uint64_t, kFaultClasses>;

inline constexpr int kEveryNode = -1;

struct FaultEvent {
  FaultClass kind;
  int node;           ///< Or kEveryNode.
  Duration start;     ///< Since the beginning of the run.
  Duration duration;  ///< 0 for what happens at an instant.
  /// How bad it is, by class: how many commits, bells or reads in a thousand are hit (conflict, unknown_*, lost_bell,
  /// retired); milliseconds (late_bell, wall_jump with its sign, restart delay of crash and power_cut); a factor
  /// (slow_disk); 0 only the reserve is left, 1 nothing is (full_disk).
  std::int64_t degree;
  /// When exactly a crash or a power cut comes.
  enum class Moment : std::uint8_t {
    kAtOnce,
    kBeforeApply,  ///< When the node's next commit reaches the store, before it is applied.
    kBeforeAnswer  ///< When it has been applied, before it is answered. A power cut: soon after anybody's next commit.
  } moment = Moment::kAtOnce;

  Duration end() const { return start + duration; }
  bool operator==(const FaultEvent&) const = default;
};

/// Ordered by start.
using FaultPlan = std::vector<FaultEvent>;

/// "12.340000 s: pause of node 1 for 3.200000 s", what `--trace` and failures print.
std::string to_string(const FaultEvent& event);

}  // namespace perdure::sim
