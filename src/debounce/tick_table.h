// The state diagram of the tick debouncer, as data.
//
// Every edge is one row: in this state, on this event, go there and do that. A follower that has been cancelled takes
// the second half of the row instead, so that cancellation beats every other event: it gives a key that it owns back,
// waits for a run that it has begun, and starts nothing. What has no row is ignored: it is late, or of no concern.
//
// The other region of the seed's diagram, the keep-alive, has no states of its own: it goes on from kWon until the key
// is given back or lost, whatever the leader does meanwhile, and speaks up by kLost.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "perdure/tick.h"

namespace perdure::debounce {

enum class TickEvent {
  kGone,         ///< The watch: the key was deleted, or has aged out.
  kAbsent,       ///< The missing-key check found no key.
  kWon,          ///< The key was created, and is ours.
  kLostRace,     ///< Another was first.
  kWindowOver,   ///< One window has passed.
  kNothing,      ///< Nothing is pending.
  kWork,         ///< Something is.
  kClosed,       ///< Nothing is, nor will be.
  kCheckFailed,  ///< `pending` failed.
  kRunningSet,   ///< The status is "running", and the run has its token.
  kSetFailed,    ///< The status could not be written.
  kNoToken,      ///< It was, but the store gave no token.
  kRunEnded,     ///< The run's end is committed.
  kRunFailed,    ///< It failed, or was given up.
  kReleased,     ///< The key was given back.
  kNotReleased,  ///< It was not ours any more, or cannot be reached.
  kLost,         ///< A keep-alive failed or is overdue, or somebody else wrote the key.
  kFault,        ///< Something failed that has no edge of its own.
  kBackOffOver,  ///< The pause after that is over.
  kCancel,       ///< Follow it no more.
};

enum class TickAction {
  kNone,
  kWatch,        ///< Watch the key, and see whether it is there at all.
  kAcquire,      ///< Create it if it is absent.
  kBeginWindow,  ///< Set the timer of the window.
  kAskPending,   ///< Ask the handler `pending`.
  kSetRunning,   ///< Write the status "running" and take a token.
  kRun,          ///< Begin the handler `run`.
  kRelease,      ///< Delete the key if it is still ours.
  kLeave,        ///< The same, and be as if cancelled.
  kForget,       ///< Forget the leadership without a write; tell the handler; watch again.
  kForgetRun,    ///< Forget the leadership without a write; tell the handler, and wait for it.
  kBackOff,      ///< Set the timer of the pause.
  kStop,         ///< The end. Forgets the leadership, if there is one, without a write.
};

struct TickEdge {
  TickState from;
  TickEvent on;
  TickState to;
  TickAction action;
  /// Once it has been cancelled.
  TickState leaving_to;
  TickAction leaving_action;
};

// clang-format off
inline constexpr auto kTickTable = [] {
  using enum TickState;
  using E = TickEvent;
  using A = TickAction;
  return std::to_array<TickEdge>({
    // in              on               go to             and do             if cancelled      and do
    {kWaiting,         E::kGone,        kAttempting,      A::kAcquire,       kStopped,         A::kStop},
    {kWaiting,         E::kAbsent,      kAttempting,      A::kAcquire,       kStopped,         A::kStop},
    {kWaiting,         E::kFault,       kRestarting,      A::kBackOff,       kStopped,         A::kStop},
    {kWaiting,         E::kCancel,      kStopped,         A::kStop,          kStopped,         A::kStop},
    {kAttempting,      E::kWon,         kLeaderWaiting,   A::kBeginWindow,   kDeleting,        A::kRelease},
    {kAttempting,      E::kLostRace,    kWaiting,         A::kWatch,         kStopped,         A::kStop},
    {kAttempting,      E::kFault,       kRestarting,      A::kBackOff,       kStopped,         A::kStop},
    {kAttempting,      E::kCancel,      kAttempting,      A::kNone,          kAttempting,      A::kNone},
    {kLeaderWaiting,   E::kWindowOver,  kCheckingPending, A::kAskPending,    kDeleting,        A::kRelease},
    {kLeaderWaiting,   E::kLost,        kWaiting,         A::kForget,        kStopped,         A::kStop},
    {kLeaderWaiting,   E::kCancel,      kDeleting,        A::kRelease,       kDeleting,        A::kRelease},
    {kCheckingPending, E::kNothing,     kLeaderWaiting,   A::kBeginWindow,   kDeleting,        A::kRelease},
    {kCheckingPending, E::kWork,        kSettingRunning,  A::kSetRunning,    kDeleting,        A::kRelease},
    {kCheckingPending, E::kClosed,      kDeleting,        A::kLeave,         kDeleting,        A::kRelease},
    {kCheckingPending, E::kCheckFailed, kLeaderWaiting,   A::kBeginWindow,   kDeleting,        A::kRelease},
    {kCheckingPending, E::kLost,        kWaiting,         A::kForget,        kStopped,         A::kStop},
    {kCheckingPending, E::kCancel,      kDeleting,        A::kRelease,       kDeleting,        A::kRelease},
    {kSettingRunning,  E::kRunningSet,  kRunning,         A::kRun,           kDeleting,        A::kRelease},
    {kSettingRunning,  E::kSetFailed,   kWaiting,         A::kForget,        kStopped,         A::kStop},
    {kSettingRunning,  E::kNoToken,     kDeleting,        A::kRelease,       kDeleting,        A::kRelease},
    {kSettingRunning,  E::kLost,        kWaiting,         A::kForget,        kStopped,         A::kStop},
    {kSettingRunning,  E::kCancel,      kSettingRunning,  A::kNone,          kSettingRunning,  A::kNone},
    {kRunning,         E::kRunEnded,    kDeleting,        A::kRelease,       kDeleting,        A::kRelease},
    {kRunning,         E::kRunFailed,   kDeleting,        A::kRelease,       kDeleting,        A::kRelease},
    {kRunning,         E::kLost,        kDraining,        A::kForgetRun,     kDraining,        A::kForgetRun},
    {kRunning,         E::kCancel,      kRunning,         A::kNone,          kRunning,         A::kNone},
    {kDraining,        E::kRunEnded,    kWaiting,         A::kWatch,         kStopped,         A::kStop},
    {kDraining,        E::kRunFailed,   kWaiting,         A::kWatch,         kStopped,         A::kStop},
    {kDraining,        E::kCancel,      kDraining,        A::kNone,          kDraining,        A::kNone},
    {kDeleting,        E::kReleased,    kWaiting,         A::kWatch,         kStopped,         A::kStop},
    {kDeleting,        E::kNotReleased, kWaiting,         A::kForget,        kStopped,         A::kStop},
    {kDeleting,        E::kLost,        kWaiting,         A::kForget,        kStopped,         A::kStop},
    {kDeleting,        E::kCancel,      kDeleting,        A::kNone,          kDeleting,        A::kNone},
    {kRestarting,      E::kBackOffOver, kWaiting,         A::kWatch,         kStopped,         A::kStop},
    {kRestarting,      E::kCancel,      kStopped,         A::kStop,          kStopped,         A::kStop},
  });
}();
// clang-format on

/// The edge of `event` in `state`; nothing if it is to be ignored there.
constexpr std::optional<TickEdge> tick_edge(TickState state, TickEvent event) {
  for (const TickEdge& edge : kTickTable)
    if (edge.from == state && edge.on == event) return edge;
  return std::nullopt;
}

constexpr bool leads(TickState state) {
  using enum TickState;
  return state == kLeaderWaiting || state == kCheckingPending || state == kSettingRunning || state == kRunning ||
         state == kDeleting;
}

// What must hold of the table itself.
consteval bool tick_table_is_sound() {
  for (const TickEdge& edge : kTickTable) {
    int same = 0;
    for (const TickEdge& other : kTickTable) same += other.from == edge.from && other.on == edge.on ? 1 : 0;
    if (same != 1) return false;
    // Nothing is begun once it has been cancelled, and every way out of it ends.
    if (edge.leaving_to == TickState::kWaiting || edge.leaving_action == TickAction::kAcquire ||
        edge.leaving_action == TickAction::kRun || edge.leaving_action == TickAction::kAskPending)
      return false;
    // Whoever loses the key forgets it without a write.
    if (edge.on == TickEvent::kLost && (leads(edge.to) || edge.action == TickAction::kRelease)) return false;
  }
  // Every state but the last can be left by a cancel.
  for (int state = 0; state < static_cast<int>(TickState::kStopped); ++state)
    if (!tick_edge(static_cast<TickState>(state), TickEvent::kCancel)) return false;
  return true;
}
static_assert(tick_table_is_sound());

}  // namespace perdure::debounce
