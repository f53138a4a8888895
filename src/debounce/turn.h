// What a node does for debouncers when the bell rings or a time has come: one transaction of bounded size.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "debounce/window.h"
#include "session/due_loop.h"

namespace perdure::debounce {

/// How a turn is to be taken.
struct TurnOptions {
  std::function<Uuid()> fresh_id;
  /// Rows that it sees to, of each kind.
  std::size_t most = 256;
  /// Rows that cannot be seen to: they are left as they are.
  std::set<Bytes> skipped = {};
  /// The row that it sees to just now, for whoever wants to know at which one it failed.
  Bytes* current = nullptr;
  /// Gets the windows that could not be read.
  std::vector<Place>* damaged = nullptr;
};

/// Sees to runs that have ended, to debouncers that were unpaused, and to windows that have come up. `txn` has system
/// access.
DueTurn take_turn(Transaction& txn, const TurnOptions& options, WallTime now);

}  // namespace perdure::debounce
