// Two changes of one state made one.
//
// A handler that holds the lock of an actor works on a copy of the state, and priority messages change the state
// meanwhile. Writing the copy back would lose their changes (DGEN-B4), so the two are merged with what they both began
// with: entry by entry of maps and item by item of lists of items, as deep as both sides have them.
#pragma once

#include "perdure/error.h"
#include "perdure/value.h"

namespace perdure::actor {

/// `base` with the changes of both sides. What only one side changed, added or removed is as on that side; what both
/// changed alike is as on both; maps and lists of items (list_order.h) that both changed are merged inside, also if
/// both added them. The items of a list are in the order of the side that reordered those it had, with the new ones of
/// the other side behind the items that they are behind there; if both reordered them differently, in the order of
/// `mine` with the new ones of `theirs` at the end. Pure. Errors: conflict, with the place, if both sides changed the
/// same thing differently, or one changed what the other removed.
Result<Value> merge(const Value& base, const Value& mine, const Value& theirs);

}  // namespace perdure::actor
