#pragma once

#include "perdure/bytes.h"
#include "perdure/export.h"

namespace perdure {

/// The keys from `begin` on, up to but not including `end`. An empty `end` means that there is no upper bound, since
/// no key sorts before the empty one: KeyRange{} is every key there is.
struct KeyRange {
  Bytes begin;
  Bytes end;
  bool operator==(const KeyRange&) const = default;

  bool contains(BytesView key) const { return key >= begin && (end.empty() || key < end); }
  /// Whether no key can be in it.
  bool empty() const { return !end.empty() && end <= begin; }
};

/// Every key that starts with `prefix`, the prefix itself included. The end is the smallest key that sorts after all of
/// them; a prefix that is empty or consists of 0xff only has none, so its range has no upper bound.
///
/// For the keys that extend a packed tuple use tuple::range(): a prefix cannot tell ("a") from ("a\0").
PERDURE_EXPORT KeyRange prefix_range(BytesView prefix);

/// `key` and nothing else.
PERDURE_EXPORT KeyRange single_key(BytesView key);

}  // namespace perdure
