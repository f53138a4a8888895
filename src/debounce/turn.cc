#include "debounce/turn.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/worker_table.h"

namespace perdure::debounce {
namespace {

constexpr std::size_t kEndsAtOnce = 128;
constexpr std::size_t kHeldAtOnce = 128;
constexpr std::size_t kWindowsAtOnce = 256;
/// Of events, well below what a transaction may hold.
constexpr std::size_t kBytesAtOnce = 2'000'000;

/// Beyond what a WallTime can say, the end of it will do: the loop looks again long before.
WallTime wake_at(DueTime time) {
  constexpr auto kFar = std::chrono::floor<std::chrono::milliseconds>(WallTime::max());
  return time >= kFar ? WallTime::max() : WallTime(time);
}

/// What a redrive gives back.
Touches touches_of(const Value& run) {
  Touches touches;
  const Value* count = run.find("count");
  if (count != nullptr && count->is_integer() && *count->as_integer() > 0)
    touches.count = static_cast<std::uint64_t>(*count->as_integer());
  if (const Value* payload = run.find("payload")) touches.payloads.push_back(payload->encode());
  const Value* payloads = run.find("payloads");
  if (payloads != nullptr && payloads->is_list())
    for (const Value& payload : *payloads->as_list()) touches.payloads.push_back(payload.encode());
  return touches;
}

class Turn {
 public:
  Turn(Transaction& txn, const TurnTools& tools, WallTime now) : txn_(txn), tools_(tools), now_(now) {}

  DueTurn take() {
    see_to_ended_runs();
    see_to_unpaused();
    see_to_due_windows();
    return std::move(turn_);
  }

 private:
  bool is_full() const { return bytes_ >= kBytesAtOnce; }

  void come_up(const Place& place, const std::optional<DueTime>& filed) {
    Outcome outcome = debounce::come_up(txn_, place, filed, tools_.fresh_id(), now_);
    if (outcome.what != CameUp::kNothing) turn_.acted = true;
    bytes_ += outcome.bytes;
    if (outcome.next) turn_.next = std::min(turn_.next.value_or(WallTime::max()), wake_at(*outcome.next));
  }

  void see_to_ended_runs() {
    Bytes prefix = queue::told_prefix(kModule);
    auto rows = txn_.get_range(tuple::extensions(prefix), {.limit = kEndsAtOnce});
    turn_.more = rows.size() == kEndsAtOnce;
    for (const Row& row : rows) {
      if (is_full()) {
        turn_.more = true;
        return;
      }
      txn_.clear(row.key);
      auto parts = tuple::unpack_after<std::string, std::string, Uuid>(prefix, row.key);
      if (!parts) continue;
      auto& [space, modifier, id] = *parts;
      std::size_t slash = modifier.find('/');
      if (slash == std::string::npos) continue;
      run_ended({space, modifier.substr(0, slash), modifier.substr(slash + 1)}, id, row.value);
    }
  }

  void run_ended(const Place& place, const Uuid& id, BytesView given_back) {
    Bytes key = run_key(place.prefix());
    auto run = txn_.get(key);
    if (run && *run == queue::encode_id(id)) txn_.clear(key);
    if (!given_back.empty() && read_debouncer(txn_, place.space, place.name)) {
      Value value = queue::readable(txn_, Value::decode(given_back));
      touch(txn_, place, touches_of(value), tools_.merge_of(place), now_);
      turn_.more = true;
      return;
    }
    if (seeded(SeededBug::kClearTheNewer)) cancel(txn_, place);
    if (!seeded(SeededBug::kForgetTheWindowBehind)) come_up(place, std::nullopt);
  }

  void see_to_unpaused() {
    Bytes prefix = unpaused_prefix();
    for (const Row& row : txn_.get_range(tuple::extensions(prefix), {.limit = 1})) {
      auto parts = tuple::unpack_after<std::string, std::string>(prefix, row.key);
      auto debouncer = parts ? read_debouncer(txn_, std::get<0>(*parts), std::get<1>(*parts)) : std::nullopt;
      // Paused again, or gone.
      if (!debouncer || debouncer->paused) {
        txn_.clear(row.key);
        turn_.more = true;
        continue;
      }
      auto& [space, name] = *parts;
      Bytes held = held_prefix(space, name);
      auto windows = txn_.get_range(tuple::extensions(held), {.limit = kHeldAtOnce});
      for (const Row& window : windows) {
        if (is_full()) break;
        txn_.clear(window.key);
        if (auto key = tuple::unpack_after<std::string>(held, window.key))
          come_up({space, name, std::get<0>(*key)}, std::nullopt);
      }
      if (windows.empty()) txn_.clear(row.key);
      turn_.more = true;
    }
  }

  void see_to_due_windows() {
    Bytes prefix = timetable();
    // Those that are filed anew by this very turn are behind it, or they were not due.
    auto rows = txn_.get_range(tuple::extensions(prefix), {.limit = kWindowsAtOnce + 1});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto parts = tuple::unpack_after<std::int64_t, std::string, std::string, std::string>(prefix, rows[i].key);
      if (!parts) {
        txn_.clear(rows[i].key);
        continue;
      }
      auto& [ms, space, name, key] = *parts;
      DueTime due{std::chrono::milliseconds(ms)};
      bool early = seeded(SeededBug::kFireEarly);
      if (!queue::is_due(due, early ? now_ + std::chrono::seconds(1) : now_)) {
        turn_.next = std::min(turn_.next.value_or(WallTime::max()), wake_at(due));
        return;
      }
      if (i == kWindowsAtOnce || is_full()) {
        turn_.more = true;
        return;
      }
      come_up({space, name, key}, due);
    }
  }

  Transaction& txn_;
  const TurnTools& tools_;
  const WallTime now_;
  DueTurn turn_;
  std::size_t bytes_ = 0;
};

}  // namespace

DueTurn take_turn(Transaction& txn, const TurnTools& tools, WallTime now) {
  return Turn(txn, tools, now).take();
}

}  // namespace perdure::debounce
