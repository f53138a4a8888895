// Lists of items, and what keeps them in order.
//
// A list whose items are maps with distinct texts "id" is stored as one row for each item, under its id. The order is
// not in those keys, so each item's row holds an *order key*: items sort by it, and between any two order keys there is
// room for another, so that moving or inserting an item writes that item alone. An order key is a fraction below 1 in
// base 256 without its "0.": bytes that compare as the fractions do, and that do not end in a zero byte, which would
// leave no room before it.
//
// All functions here are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "perdure/bytes.h"
#include "perdure/value.h"

namespace perdure::actor {

/// The id of `item`: the text "id" of a map. Null if it has none.
const std::string* item_id(const Value& item);

/// Whether `value` is a list in which every item has an id and no two the same. An empty list is one.
bool is_item_list(const Value& value);

/// Order keys never grow longer: a list in which one would is given new ones.
inline constexpr std::size_t kOrderKeyBytesMax = 64;

/// Whether `key` can be the order key of a stored item.
bool is_order_key(BytesView key);

/// An order key after `low` and before `high`. An empty `low` is before and an empty `high` after all of them.
/// Otherwise both are order keys, `low` before `high`.
Bytes order_between(BytesView low, BytesView high);

/// Order keys for a list, ascending and no longer than kOrderKeyBytesMax. `had` is, for each item in its new place, the
/// order key that it has already, or null. As many items as possible keep theirs: those of the longest subsequence that
/// ascends; all the others get new ones, unless one would be too long: then all items do.
std::vector<Bytes> arrange(std::span<const Bytes* const> had);

}  // namespace perdure::actor
