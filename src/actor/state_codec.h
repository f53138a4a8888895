// How the state of an actor lies in the store.
//
// A state is a Value, and a handler gives back a whole new one; but writing all of it for each message would make a
// large state as slow as it is large. So it is stored as a tree of rows, and what a message changed is found by
// comparing the states before and after:
//
// - a map is a marker row at its key, and each entry a node at that key extended by the entry's name;
// - a list of items with ids (list_order.h) is a marker row, and each item a node at that key extended by its id; the
//   row of an item holds its order key, and the item's entry "id" is not stored again;
// - anything else is a leaf: its encoding in the row, or in chunks at the key extended by 0, 1, ... if it is large.
//
// A map or a list with a child whose key would be too long is a leaf as well. Which of the three a value is follows
// from the value and its key alone, so a state has one set of rows, but for the order keys. The bytes are a contract:
// docs/internals/state_format.md.
//
// All functions here are pure but for apply(), which only writes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/error.h"
#include "perdure/key_range.h"
#include "perdure/transaction.h"
#include "perdure/value.h"

namespace perdure::actor {

/// What a state may be at most: its rows, and their keys and values together without order keys. Written whole it so
/// fits into one transaction, and all of it can be cleared as one range.
inline constexpr std::size_t kStateBytesMax = 8 << 20;
inline constexpr std::size_t kStateRowsMax = 8'000;
/// What one row of a leaf holds at most.
inline constexpr std::size_t kChunkBytes = 100'000;

/// The order keys of the items of each list that has them, in the order of the list. The lists are named by the key of
/// their node without the prefix. Shared, because most messages leave most lists as they are.
using ListOrders = std::map<Bytes, std::shared_ptr<const std::vector<Bytes>>, std::less<>>;

/// A state as it is stored: the value, and what its rows say beyond it.
struct StoredState {
  Value value;
  ListOrders orders;
};

struct RowWrite {
  Bytes key;
  Bytes value;
  bool operator==(const RowWrite&) const = default;
};

/// What makes the rows of one state those of the next. The ranges are cleared first, for some rows set lie inside.
struct StateChanges {
  std::vector<KeyRange> clear_ranges;
  std::vector<Bytes> clears;
  std::vector<RowWrite> sets;
  StoredState after;

  bool empty() const { return clear_ranges.empty() && clears.empty() && sets.empty(); }
};

/// The key of the root and all its extensions, and no other key. `prefix` is a packed tuple.
KeyRange state_range(BytesView prefix);

/// What has to be written so that the rows of `before` become those of `after`: nothing at all if the values are equal,
/// one row if one leaf of up to kChunkBytes differs. `before` is null if no state is stored.
/// Errors: invalid_argument if `after` fails Value::check(); too_large if it would be over the limits above.
Result<StateChanges> changes(BytesView prefix, const StoredState* before, Value after);

/// The state whose rows are `rows`: all of state_range(prefix), in the order of their keys.
/// Errors: not_found if there are none; corrupt, with the key, if they are not the rows of a state.
Result<StoredState> read_state(BytesView prefix, std::span<const Row> rows);

/// Writes `changes`.
/// Crash: as all writes of a transaction, all or none.
void apply(Transaction& txn, const StateChanges& changes);

}  // namespace perdure::actor
