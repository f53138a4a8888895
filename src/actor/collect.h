#pragma once

#include "actor/rows.h"

namespace perdure::actor {

/// The index of waiting callers has one row for all callers of an actor in such a span of time.
inline constexpr std::int64_t kBucketSeconds = 600;
inline Bytes waiting_bucket_key(const ActorId& actor, std::int64_t seconds) {
  return tuple::pack_onto(waiting_index(), seconds / kBucketSeconds, actor.space, actor.kind, actor.id);
}

struct Collected {
  std::uint64_t callers = 0;
  Bytes last;  ///< Goes on after this one.
  bool more = false;
};
/// Clears the rows of callers from before `before_seconds` whose sessions are over: a part of the index, after `after`.
Collected collect_some(Transaction& txn, const Bytes& after, std::int64_t before_seconds);

}  // namespace perdure::actor
