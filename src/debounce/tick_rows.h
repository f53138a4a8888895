// The row by which the runs of the tick debouncer are fenced, among perdure's own keys; see
// docs/internals/key_layout.md.
//
//     ("tick-run", name, key) -> stamp of the run that began last, its state (1), instance id
//
// The stamp is that of the commit which wrote the row, and so larger than those of all runs before: that is the token.
// Who ends a run or writes in its name reads the row in the same transaction, and conflicts with whoever begins the
// next one. An ended run leaves the row for a moment, so that an end of unknown outcome can be told from none.
#pragma once

#include <optional>
#include <string>

#include "perdure/transaction.h"
#include "perdure/tuple.h"
#include "store/ranges.h"
#include "store/system_access.h"

namespace perdure::debounce {

enum class RunRowState : char { kBegun = 'b', kEnded = 'e' };

struct RunRow {
  Stamp stamp;
  RunRowState state;
};

inline Bytes run_key(std::string_view name, std::string_view key) {
  return tuple::pack_onto(kSystemKeys, "tick-run", name, key);
}

/// These need SystemAccess. A damaged row leaves the body.
std::optional<RunRow> read_run(Reader& reader, const Bytes& key);
void begin_run(Transaction& txn, const Bytes& key, std::string_view instance);
/// Keeps the stamp.
void end_run(Transaction& txn, const Bytes& key, Stamp stamp);
/// Forgets the run if it is still the last: whoever writes in its name is refused from then on.
void forget_run(Transaction& txn, const Bytes& key, Stamp stamp);
/// Leaves the body with kStaleToken unless the run is the last, and has not ended.
void fence_run(Transaction& txn, const Bytes& row, std::string_view key, Stamp stamp);

}  // namespace perdure::debounce
