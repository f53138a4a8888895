#include "queue/claim.h"

#include <algorithm>
#include <utility>

#include "base/seeded_bug.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

/// What a rate lets through at once: this long's worth, and one event at least.
constexpr Duration kBurst = std::chrono::milliseconds(100);
/// Entries that one transaction moves out of the way.
constexpr std::size_t kPassedOverMax = 256;

/// A rate is a clock of its own that each claim moves on by one interval, and that may run ahead of time by nothing and
/// lag behind it by a burst.
class RateLimit {
 public:
  RateLimit(WorkerTable& table, const Rate& rate)
      : key_(rate_key(table.prefix())), interval_(std::max(Duration(1), rate.per / std::max(1U, rate.count))) {
    Duration burst = std::max(interval_, std::min(kBurst, rate.per / 10));
    used_up_to_ = table.now() - burst;
    if (auto stored = table.txn().get(key_)) used_up_to_ = std::max(used_up_to_, wall_time(decode_counter(stored)));
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

/// The ready entries, page by page.
class Entries {
 public:
  /// Skips so many; if there are not that many more than `max`, only what is more.
  Entries(WorkerTable& table, std::size_t max, std::size_t skip)
      : table_(table), range_(tuple::extensions(ready_key(table.prefix()))), max_(max), skip_(skip) {}

  std::vector<Row> next_page() {
    // A snapshot: who consumes an event conflicts on its row.
    auto order = seeded(SeededBug::kClaimNewestFirst) ? Direction::kReverse : Direction::kForward;
    std::size_t limit = max_ + std::exchange(skip_, 0);
    auto rows = table_.txn().snapshot().get_range(range_, {.limit = limit, .direction = order});
    more_ = rows.size() == limit && order == Direction::kForward;
    if (more_) range_.begin = next_key(rows.back().key);
    if (rows.size() > max_) {
      rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(max_));
      left_out_ = true;
    }
    return rows;
  }
  /// Whether there may be a next page.
  bool more() const { return more_; }
  /// Whether some were skipped.
  bool left_out() const { return left_out_; }

 private:
  WorkerTable& table_;
  KeyRange range_;
  const std::size_t max_;
  std::size_t skip_;
  bool more_ = true;
  bool left_out_ = false;
};

/// What a claim writes at most, and what its transaction writes besides: counts, held claims, an answer that is kept.
constexpr std::size_t kClaimRoom = 256 << 10;

enum class Claiming { kClaimed, kPassedOver, kTooLarge };

Claiming claim_one(WorkerTable& table, const Row& entry, const ClaimRequest& request, std::size_t& bytes,
                   ClaimResult& result) {
  auto event = table.load_ready(entry);
  if (!event) return Claiming::kPassedOver;
  const auto names = event->row.names();
  if (!names.limit_key.empty() && !table.has_slot(names.limit_key)) {
    table.wait_for_slot(entry, *event, names.limit_key);
    return Claiming::kPassedOver;
  }
  bytes += names.apart_bytes + event->row.given().size();
  bool full = bytes > request.bytes_max || SystemAccess(table.txn()).room() < kClaimRoom;
  if (full && !result.events.empty()) return Claiming::kTooLarge;
  table.leave(*event);
  std::uint32_t order = table.enter_running(*event, request.claimant);
  result.events.push_back({std::move(*event), order, 0});
  return Claiming::kClaimed;
}

/// Claims up to `max`. Those that only wait for a slot of their limit key do not count, up to a bound, so that a
/// backlog of one key does not hold up the others behind it.
void claim_entries(WorkerTable& table, std::size_t max, const ClaimRequest& request, ClaimResult& result) {
  Entries entries(table, max, request.skip);
  std::size_t bytes = 0, passed_over = 0;
  while (entries.more() && result.events.size() < max && passed_over < kPassedOverMax) {
    for (const Row& entry : entries.next_page()) {
      auto claiming =
          result.events.size() < max ? claim_one(table, entry, request, bytes, result) : Claiming::kTooLarge;
      if (claiming == Claiming::kPassedOver) ++passed_over;
      if (claiming != Claiming::kTooLarge) continue;
      result.more = true;
      return;
    }
  }
  result.more = entries.more() || entries.left_out();
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
  std::size_t max = request.leave_all ? 0 : request.max;
  std::optional<RateLimit> rate;
  if (table.settings().rate && !seeded(SeededBug::kIgnoreRate)) {
    rate.emplace(table, *table.settings().rate);
    max = std::min(max, rate->allowed());
  }
  if (max > 0) claim_entries(table, max, request, result);
  if (rate) {
    if (!result.events.empty()) rate->use(table, result.events.size());
    // Only if it was the rate that set the bound: otherwise there is nothing to wait for.
    if (!request.leave_all && max < request.max && result.events.size() == max) result.again_at = rate->next();
  }
  note_held(table, request, result);
  return result;
}

}  // namespace perdure::queue
