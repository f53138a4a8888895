#include "queue/claim.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

/// What a rate lets through at once: this long's worth, and one event at least.
constexpr Duration kBurst = std::chrono::milliseconds(100);

/// A rate is a clock of its own that each claim moves on by one interval, and that may run ahead of time by nothing and
/// lag behind it by a burst.
class RateLimit {
 public:
  RateLimit(WorkerTable& table, const Rate& rate)
      : key_(rate_key(table.prefix())), interval_(std::max(Duration(1), rate.per / std::max(1U, rate.count))) {
    Duration burst = std::max(interval_, std::min(kBurst, rate.per));
    WallTime stored = wall_time(decode_counter(table.txn().get(key_)));
    used_up_to_ = std::max(stored, table.now() - burst);
    allowed_ = table.now() < used_up_to_ ? 0 : static_cast<std::size_t>((table.now() - used_up_to_) / interval_);
  }
  std::size_t allowed() const { return allowed_; }
  WallTime next() const { return used_up_to_ + interval_; }
  void use(WorkerTable& table, std::size_t count) {
    used_up_to_ += interval_ * static_cast<std::int64_t>(count);
    table.txn().set(key_, encode_counter(ns_of(used_up_to_)));
  }

 private:
  const Bytes key_;
  const Duration interval_;
  WallTime used_up_to_;
  std::size_t allowed_ = 0;
};

/// When the last of the rules ends by itself; nothing if one does not.
std::optional<WallTime> end_of(const std::vector<Rule>& rules) {
  WallTime last;
  for (const Rule& rule : rules) {
    // What is due after the last WallTime is as good as never.
    if (!rule.until || rule.until->time_since_epoch() > std::chrono::hours(24 * 365 * 200)) return std::nullopt;
    last = std::max(last, WallTime(*rule.until));
  }
  return last;
}

void note_held(WorkerTable& table, const ClaimRequest& request, ClaimResult& result) {
  if (request.claimant.until) return;
  for (std::size_t i = 0; i < result.events.size(); i += kClaimsPerRow) {
    HeldClaims held{table.space(), {}};
    std::size_t end = std::min(i + kClaimsPerRow, result.events.size());
    std::uint64_t number = request.held_from + i / kClaimsPerRow;
    for (std::size_t j = i; j < end; ++j) {
      held.ids.push_back(result.events[j].event.id);
      result.events[j].held_number = number;
    }
    table.txn().set(session::held_key(request.claimant.session, kHeldClaims, number), held.encode());
  }
}

/// The entries to try: `max` of them behind those that are skipped, or the last ones if there are not so many.
std::vector<Row> read_entries(WorkerTable& table, std::size_t max, std::size_t skip, bool& more) {
  // A snapshot: who consumes an event conflicts on its row.
  auto order = seeded(SeededBug::kClaimNewestFirst) ? Direction::kReverse : Direction::kForward;
  auto rows = table.txn().snapshot().get_range(tuple::extensions(ready_key(table.prefix())),
                                               {.limit = max + skip, .direction = order});
  more = rows.size() == max + skip;
  std::size_t first = std::min(skip, rows.size() - std::min(rows.size(), max));
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first));
  if (rows.size() > max) rows.resize(max);
  more = more || first > 0;
  return rows;
}

}  // namespace

ClaimResult claim_some(WorkerTable& table, const ClaimRequest& request) {
  ClaimResult result;
  const Claimant& claimant = request.claimant;
  if (!claimant.until && !session::is_open(table.txn(), claimant.session))
    SystemAccess(table.txn()).refuse({ErrorCode::kStaleToken, "the session that claims is over"});
  if (auto rules = table.rules(); !rules.empty() && !seeded(SeededBug::kClaimPastRules)) {
    result.again_at = end_of(rules);
    return result;
  }
  std::size_t max = request.max;
  std::optional<RateLimit> rate;
  if (table.settings().rate && !seeded(SeededBug::kIgnoreRate)) {
    rate.emplace(table, *table.settings().rate);
    if (rate->allowed() < max) result.again_at = rate->next();
    max = std::min(max, rate->allowed());
  }
  if (max == 0) return result;
  std::size_t bytes = 0;
  for (const Row& entry : read_entries(table, max, request.skip, result.more)) {
    auto event = table.load_ready(entry);
    if (!event) continue;
    const auto names = event->row.names();
    bytes += names.chunks * kChunkBytes + event->row.given().size();
    if (bytes > request.bytes_max && !result.events.empty()) {
      result.more = true;
      break;
    }
    auto limit_key = names.limit_key;
    if (!limit_key.empty() && !table.has_slot(limit_key)) {
      table.wait_for_slot(entry, *event, limit_key);
      continue;
    }
    table.leave(*event);
    std::uint32_t order = table.enter_running(*event, claimant);
    result.events.push_back({std::move(*event), order, 0});
  }
  if (rate && !result.events.empty()) rate->use(table, result.events.size());
  note_held(table, request, result);
  return result;
}

}  // namespace perdure::queue
