#include "queue/turn.h"

#include "base/seeded_bug.h"

namespace perdure::queue {
namespace {

Standing settle_in(WorkerTable& table, const Settlement& settlement) {
  const JobState& job = *settlement.job;
  auto found = find_claim(table.txn(), table.space(), {job.loaded.id, job.token.stamp});
  if (found.standing != Standing::kHeld) return found.standing;
  if (const auto* completed = std::get_if<Settlement::Completed>(&settlement.how))
    complete(table, *found.event, completed->result);
  else if (const auto* failing = std::get_if<Failing>(&settlement.how))
    fail(table, *found.event, *failing);
  else
    release(table, *found.event);
  return Standing::kHeld;
}

}  // namespace

std::vector<Watch> watch_worker(Transaction& txn, BytesView prefix) {
  std::vector<Watch> watches;
  watches.push_back(txn.watch(counter_key(prefix, Counter::kIn)));
  return watches;
}

TurnResult take_turn(Transaction& txn, const Turn& turn, WallTime now) {
  WorkerTable table(txn, turn.space, turn.worker, now);
  TurnResult result;
  // Claims first: what settling puts back into the index cannot be read before the commit has stamped it.
  if (turn.claim) result.claimed = claim_some(table, *turn.claim);
  table.expect_records(turn.settlements.size());
  for (std::size_t i = 0; i < turn.settlements.size(); ++i)
    if (settle_in(table, turn.settlements[i]) == Standing::kStale) result.stale.push_back(i);
  for (const Bytes& key : turn.emptied) txn.clear(key);
  // A watch does not tell of what its own transaction wrote.
  if (turn.claim && table.rang()) result.claimed.more = true;
  table.finish();
  if (turn.claim && !result.claimed.more) result.watches = watch_worker(txn, table.prefix());
  return result;
}

Standing settle(Transaction& txn, std::string_view space, const Settlement& settlement, WallTime now) {
  SystemAccess access(txn);
  WorkerTable table(txn, space, settlement.job->loaded.row.names().worker, now);
  Standing standing = settle_in(table, settlement);
  table.finish();
  return standing;
}

}  // namespace perdure::queue
