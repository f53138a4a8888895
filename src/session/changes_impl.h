// One process's part in the feed of changes: what the public calls need, and the clearing of what is old.
#pragma once

#include <memory>
#include <string>

#include "perdure/changes.h"
#include "session/due_loop.h"
#include "session/store_clock.h"
#include "store/store_part.h"

namespace perdure {

class ChangesImpl : public StorePart<ChangesImpl> {
 public:
  static Result<Changes> open(Store store, ChangesOptions options);
  /// `store` is kept open by the handles.
  ChangesImpl(Store& store, const ChangesOptions& options);

  // For the loop.
  StoreClock& clock() { return clock_; }

 private:
  using Loop = DueLoop<ChangesImpl>;
  /// Writes where the feed begins, unless that was done; where nothing may block, a moment later.
  Result<void> begin();
  /// Clears a bounded number of rows, of a bounded number of spaces.
  Loop::Turn turn(Transaction& txn, WallTime now);
  /// Those of one space; answers how many.
  std::size_t trim(Transaction& txn, const std::string& space, std::uint64_t written, std::size_t most, WallTime now);

  const Duration kept_;
  const std::uint64_t rows_max_;
  StoreClock clock_;
  /// The space that the next turn begins behind: there may be more of them than one turn looks at. Only the loop uses
  /// it.
  std::string after_;
  Loop loop_;
};

}  // namespace perdure
