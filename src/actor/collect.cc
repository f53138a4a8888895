#include "actor/collect.h"

#include <algorithm>

#include "session/rows.h"

namespace perdure::actor {
namespace {

/// Rows of the index in one transaction, and rows of callers for each of them.
constexpr std::size_t kBucketsAtOnce = 50;
constexpr std::size_t kRowsAtOnce = 500;

struct Looked {
  std::uint64_t cleared = 0;
  bool nothing_left = false;
};

Looked clear_abandoned(Transaction& txn, const ActorId& actor, std::int64_t bucket, std::int64_t before_seconds) {
  Bytes waiting = waiting_key(prefix_of(actor));
  std::int64_t begin = bucket * kBucketSeconds;
  KeyRange range{tuple::pack_onto(waiting, begin), tuple::pack_onto(waiting, begin + kBucketSeconds)};
  auto rows = txn.get_range(range, {.limit = kRowsAtOnce});
  Looked looked;
  looked.nothing_left = rows.size() < kRowsAtOnce;
  for (const Row& row : rows) {
    auto parts = tuple::unpack_after<std::int64_t, Stamp, std::uint64_t, std::uint64_t>(waiting, row.key);
    bool abandoned =
        parts && std::get<0>(*parts) < before_seconds && !session::is_open(txn, SessionId{std::get<1>(*parts)});
    if (!abandoned) {
      looked.nothing_left = false;
      continue;
    }
    txn.clear(row.key);
    if (std::get<3>(*parts) == 0) ++looked.cleared;
  }
  return looked;
}

}  // namespace

Collected collect_some(Transaction& txn, const Bytes& after, std::int64_t before_seconds) {
  SystemAccess access(txn);
  KeyRange range = tuple::extensions(waiting_index());
  if (!after.empty()) range.begin = next_key(after);
  // Buckets that begin later have nobody who is old enough.
  range.end = tuple::pack_onto(waiting_index(), before_seconds / kBucketSeconds + 1);
  if (range.empty()) return {};
  auto rows = txn.get_range(range, {.limit = kBucketsAtOnce});
  Collected collected;
  collected.more = rows.size() == kBucketsAtOnce;
  for (const Row& row : rows) {
    collected.last = row.key;
    auto parts = tuple::unpack_after<std::int64_t, std::string, std::string, std::string>(waiting_index(), row.key);
    if (!parts) continue;
    auto& [bucket, space, kind, id] = *parts;
    Looked looked = clear_abandoned(txn, {space, kind, id}, bucket, before_seconds);
    collected.callers += looked.cleared;
    // Nobody can join a bucket that is over.
    bool over = (bucket + 1) * kBucketSeconds <= before_seconds;
    if (looked.nothing_left && over) txn.clear(row.key);
  }
  return collected;
}

}  // namespace perdure::actor
