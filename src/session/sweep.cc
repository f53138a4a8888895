#include "session/sweep.h"

#include "base/seeded_bug.h"
#include "session/rows.h"

namespace perdure::session {
namespace {

/// What one transaction sweeps: few enough for it to stay short.
constexpr std::size_t kSweepRows = 100;
/// A row that says more than a token may stand for many things, and two of them for the same one, which a transaction
/// could not look at a second time. So there is one of them in each.
constexpr std::size_t kTokenBytes = Stamp::kSize;

void sweep_lease(Transaction& txn, SessionId dead, BytesView rest) {
  auto parts = tuple::unpack_as<std::string>(rest);
  if (!parts) return;
  const std::string& name = std::get<0>(*parts);
  auto lease = read_lease(txn, name);
  if (lease && (lease->session == dead || seeded(SeededBug::kSweepBlindly))) txn.clear(lease_key(name));
}

}  // namespace

Swept sweep_some(Transaction& txn, SessionId dead, const Sweepers& sweepers) {
  const Bytes prefix = held_prefix(dead);
  KeyRange range = tuple::extensions(prefix);
  bool rest_stays = false;
  std::size_t swept = 0;
  // Each turn sweeps rows, or steps over a whole kind, of which there are but a few.
  while (swept < kSweepRows) {
    auto rows = txn.snapshot().get_range(range, {.limit = kSweepRows - swept});
    const bool to_the_end = rows.size() < kSweepRows - swept;
    bool stepped_over = false;
    for (const Row& row : rows) {
      if (swept >= kSweepRows) return Swept::kMore;
      tuple::Reader reader(BytesView(row.key).substr(prefix.size()));
      std::string_view kind = reader.next_text();
      auto sweeper = sweepers.find(kind);
      // What has no kind is damage, for which nobody will ever have a sweeper.
      bool known = !reader.ok() || kind == kLeaseKind || sweeper != sweepers.end();
      Bytes of_kind = tuple::pack_onto(prefix, kind);
      if (!known) {
        rest_stays = stepped_over = true;
        range.begin = tuple::extensions(of_kind).end;
        break;
      }
      swept += row.value.size() > kTokenBytes ? kSweepRows : 1;
      range.begin = next_key(row.key);
      txn.clear(row.key);
      if (!reader.ok()) continue;
      BytesView rest = BytesView(row.key).substr(of_kind.size());
      if (kind == kLeaseKind)
        sweep_lease(txn, dead, rest);
      else
        sweeper->second(txn, dead, rest, row.value);
    }
    if (stepped_over || !to_the_end) continue;
    if (rest_stays) return Swept::kRest;
    txn.clear(ended_key(dead));
    return Swept::kAll;
  }
  return Swept::kMore;
}

}  // namespace perdure::session
