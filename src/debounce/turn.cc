#include "debounce/turn.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/worker_table.h"

namespace perdure::debounce {
namespace {

/// They may have values of a megabyte.
constexpr std::size_t kEndsAtOnce = 32;
constexpr std::size_t kHeldAtOnce = 128;
/// Of events.
constexpr std::size_t kBytesAtOnce = 2'000'000;

/// Beyond what a WallTime can say, the end of it will do: the loop looks again long before.
WallTime wake_at(DueTime time) {
  constexpr auto kFar = std::chrono::floor<std::chrono::milliseconds>(WallTime::max());
  return time >= kFar ? WallTime::max() : WallTime(time);
}

class Turn {
 public:
  Turn(Transaction& txn, const TurnOptions& options, WallTime now) : txn_(txn), options_(options), now_(now) {}

  DueTurn take() {
    see_to_ended_runs();
    see_to_unpaused();
    see_to_due_windows();
    return std::move(turn_);
  }

 private:
  bool is_full() const { return bytes_ >= kBytesAtOnce || SystemAccess(txn_).is_full(); }

  /// The first rows of a table, without those that are skipped: one more than will be seen to.
  std::vector<Row> rows_of(const Bytes& prefix, std::size_t most) {
    most = std::min(most, options_.most);
    auto rows = txn_.get_range(tuple::extensions(prefix), {.limit = most + 1 + options_.skipped.size()});
    std::erase_if(rows, [this](const Row& row) { return options_.skipped.contains(row.key); });
    if (rows.size() > most + 1) rows.resize(most + 1);
    return rows;
  }
  /// Whether the turn has seen to enough; then there is more.
  bool enough(std::size_t seen_to, std::size_t most) {
    if (seen_to < std::min(most, options_.most) && !is_full()) return false;
    turn_.more = true;
    return true;
  }
  void begin(const Row& row) {
    if (options_.current) *options_.current = row.key;
  }

  void note(const Place& place, const Outcome& outcome) {
    if (outcome.what != CameUp::kNothing) turn_.acted = true;
    if (outcome.what == CameUp::kDamaged && options_.damaged) options_.damaged->push_back(place);
    bytes_ += outcome.bytes;
    if (outcome.next) turn_.next = std::min(turn_.next.value_or(WallTime::max()), wake_at(*outcome.next));
  }

  void see_to_ended_runs() {
    Bytes prefix = queue::told_prefix(kModule);
    std::size_t seen_to = 0;
    for (const Row& row : rows_of(prefix, kEndsAtOnce)) {
      if (enough(seen_to++, kEndsAtOnce)) return;
      begin(row);
      txn_.clear(row.key);
      auto parts = tuple::unpack_after<std::string, std::string, Uuid>(prefix, row.key);
      std::size_t slash = parts ? std::get<1>(*parts).find('/') : std::string::npos;
      if (slash == std::string::npos) continue;
      auto& [space, modifier, id] = *parts;
      Place place{space, modifier.substr(0, slash), modifier.substr(slash + 1)};
      if (seeded(SeededBug::kClearTheNewer)) cancel(txn_, place, now_);
      note(place, row.value.empty() ? run_ended(txn_, place, id, options_.fresh_id(), now_)
                                    : run_again(txn_, place, id, row.value, options_.fresh_id(), now_));
    }
  }

  void see_to_unpaused() {
    Bytes prefix = unpaused_prefix();
    for (const Row& row : rows_of(prefix, 1)) {
      begin(row);
      auto parts = tuple::unpack_after<std::string, std::string>(prefix, row.key);
      auto debouncer = parts ? read_debouncer(txn_, std::get<0>(*parts), std::get<1>(*parts)) : std::nullopt;
      turn_.more = true;
      // Paused again meanwhile: what is held stays so.
      if (!parts || (debouncer && debouncer->paused) || !bring_back(std::get<0>(*parts), std::get<1>(*parts)))
        txn_.clear(row.key);
      return;
    }
  }

  /// What is held of the debouncer comes up again, and is closed if the debouncer is gone. Whether there was anything.
  bool bring_back(const std::string& space, const std::string& name) {
    Bytes held = held_prefix(space, name);
    auto windows = txn_.get_range(tuple::extensions(held), {.limit = std::min(kHeldAtOnce, options_.most)});
    for (const Row& window : windows) {
      if (is_full()) break;
      txn_.clear(window.key);
      auto key = tuple::unpack_after<std::string>(held, window.key);
      if (!key) continue;
      Place place{space, name, std::get<0>(*key)};
      note(place, come_up(txn_, place, std::nullopt, options_.fresh_id(), now_));
    }
    return !windows.empty();
  }

  void see_to_due_windows() {
    Bytes prefix = timetable();
    std::size_t seen_to = 0;
    for (const Row& row : rows_of(prefix, options_.most)) {
      auto parts = tuple::unpack_after<std::int64_t, std::string, std::string, std::string>(prefix, row.key);
      if (!parts) {
        txn_.clear(row.key);
        continue;
      }
      auto& [ms, space, name, key] = *parts;
      DueTime due{std::chrono::milliseconds(ms)};
      if (!queue::is_due(due, seeded(SeededBug::kFireEarly) ? now_ + std::chrono::seconds(1) : now_)) {
        turn_.next = std::min(turn_.next.value_or(WallTime::max()), wake_at(due));
        return;
      }
      if (enough(seen_to++, options_.most)) return;
      begin(row);
      Place place{space, name, key};
      note(place, come_up(txn_, place, due, options_.fresh_id(), now_));
    }
  }

  Transaction& txn_;
  const TurnOptions& options_;
  const WallTime now_;
  DueTurn turn_;
  std::size_t bytes_ = 0;
};

}  // namespace

DueTurn take_turn(Transaction& txn, const TurnOptions& options, WallTime now) {
  return Turn(txn, options, now).take();
}

}  // namespace perdure::debounce
