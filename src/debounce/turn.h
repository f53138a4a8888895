// What a node does for debouncers when the bell rings or a time has come: one transaction of bounded size.
#pragma once

#include <functional>

#include "debounce/window.h"
#include "session/due_loop.h"

namespace perdure::debounce {

struct TurnTools {
  std::function<Uuid()> fresh_id;
  std::function<MergeBytes(const Place&)> merge_of;
};

/// Sees to runs that have ended, to debouncers that were unpaused, and to windows that have come up. `txn` has system
/// access.
DueTurn take_turn(Transaction& txn, const TurnTools& tools, WallTime now);

}  // namespace perdure::debounce
