#include "queue/due.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/settle.h"

namespace perdure::queue {
namespace {

constexpr std::size_t kWorkersAtOnce = 8;
constexpr std::size_t kEventsOfEach = 64;
constexpr std::size_t kClaimsAtOnce = 256;
/// Rows, and the events that they name.
constexpr std::size_t kForgottenRows = 256;
constexpr std::size_t kForgottenAtOnce = 1'000;
constexpr Duration kForgetEvery = std::chrono::minutes(1);

std::int64_t ms_of(DueTime time) {
  return static_cast<std::int64_t>(time.time_since_epoch().count());
}

/// Beyond what a WallTime can say, the end of it will do: the loop looks again long before.
WallTime wake_at(DueTime time) {
  constexpr auto kFar = std::chrono::floor<std::chrono::milliseconds>(WallTime::max());
  return time >= kFar ? WallTime::max() : WallTime(time);
}

/// The first rows of a table whose keys begin with a time, and whether they are due.
struct FirstRows {
  std::vector<Row> due;
  std::optional<DueTime> next;
  bool more = false;
};

FirstRows read_due(Transaction& txn, BytesView table, std::size_t limit, WallTime now) {
  FirstRows first;
  for (Row& row : txn.get_range(tuple::extensions(table), {.limit = limit + 1})) {
    tuple::Reader reader(BytesView(row.key).substr(table.size()));
    DueTime time{std::chrono::milliseconds(reader.next_int())};
    if (!is_due(time, now)) {
      first.next = time;
      break;
    }
    first.more = first.due.size() == limit;
    if (!first.more) first.due.push_back(std::move(row));
  }
  return first;
}

DueTurn turn_of(const FirstRows& first) {
  DueTurn turn{.next = {}, .more = first.more, .acted = !first.due.empty()};
  if (first.next) turn.next = wake_at(*first.next);
  return turn;
}

/// Makes the entry of a worker in the timetable that of its first scheduled event, which is behind those that were just
/// promoted.
void refile(Transaction& txn, WorkerTable& table, BytesView entry, std::optional<DueTime> next, DueTurn& turn) {
  txn.clear(entry);
  if (!next) return txn.clear(head_key(table.prefix()));
  // One that has more comes behind all others that have something due now.
  bool due = is_due(*next, table.now());
  if (due) next = std::chrono::floor<std::chrono::milliseconds>(table.now());
  txn.set(head_key(table.prefix()), encode_counter(ms_of(*next)));
  txn.set(tuple::pack_onto(timetable(), ms_of(*next), table.space(), table.worker()), {});
  if (due)
    turn.more = true;
  else
    turn.next = std::min(turn.next.value_or(WallTime::max()), wake_at(*next));
}

void promote_some(Transaction& txn, std::string_view space, std::string_view worker, BytesView entry, WallTime now,
                  DueTurn& turn) {
  WorkerTable table(txn, space, worker, now);
  Bytes scheduled = scheduled_key(table.prefix());
  std::optional<DueTime> next;
  std::vector<Loaded> events;
  auto rows = txn.get_range(tuple::extensions(scheduled), {.limit = kEventsOfEach + 1});
  for (const Row& row : rows) {
    auto parts = tuple::unpack_after<std::int64_t, Stamp>(scheduled, row.key);
    auto id = decode_id(row.value);
    if (!parts || !id) {
      txn.clear(row.key);
      continue;
    }
    DueTime time{std::chrono::milliseconds(std::get<0>(*parts))};
    if (!is_due(time, now) || events.size() == kEventsOfEach) {
      next = time;
      break;
    }
    auto event = load(txn, space, *id);
    if (event && event->row.state == Stored::kScheduled && event->row.stamp == std::get<1>(*parts))
      events.push_back(std::move(*event));
    else
      txn.clear(row.key);  // Damage: they are written together.
  }
  if (!next && rows.size() > kEventsOfEach) next = due_at(now);
  for (Loaded& event : events) {
    table.leave(event);
    table.enter_ready(event, wake_at(event.row.delay_until));
  }
  refile(txn, table, entry, next, turn);
  table.finish();
}

void forget_unique(Transaction& txn, BytesView key, WallTime now) {
  auto taken = txn.get(key);
  // The key may have been taken anew since.
  bool over = taken && taken->size() > sizeof(Uuid::bytes) &&
              is_due(DueTime(std::chrono::milliseconds(decode_counter(taken->substr(sizeof(Uuid::bytes))))), now);
  if (over) txn.clear(key);
}

std::size_t forget_ended(Transaction& txn, BytesView ids) {
  auto ended = HeldClaims::decode(ids);
  if (!ended) return 0;
  for (const Uuid& id : ended->ids) {
    Bytes key = event_key(ended->space, id);
    // An own id may have been used again after it was forgotten once.
    auto value = txn.get(key);
    if (value && state_of(*value) == Stored::kEnded) txn.clear(key);
  }
  return ended->ids.size();
}

}  // namespace

DueTurn promote(Transaction& txn, WallTime now) {
  if (seeded(SeededBug::kPromoteEarly)) now += std::chrono::seconds(2);
  Bytes entries = timetable();
  FirstRows first = read_due(txn, entries, kWorkersAtOnce, now);
  DueTurn turn = turn_of(first);
  for (const Row& row : first.due) {
    auto parts = tuple::unpack_after<std::int64_t, std::string, std::string>(entries, row.key);
    if (parts)
      promote_some(txn, std::get<1>(*parts), std::get<2>(*parts), row.key, now, turn);
    else
      txn.clear(row.key);
  }
  return turn;
}

DueTurn expire(Transaction& txn, WallTime now) {
  if (seeded(SeededBug::kClaimForEver)) return {};
  Bytes table_key = deadlines();
  FirstRows first = read_due(txn, table_key, kClaimsAtOnce, now);
  for (const Row& row : first.due) {
    txn.clear(row.key);
    auto parts = tuple::unpack_after<std::int64_t, std::string, Uuid>(table_key, row.key);
    if (!parts) continue;
    auto& [ms, space, id] = *parts;
    auto event = load(txn, space, id);
    if (!event || event->row.state != Stored::kRunning || !event->row.locked_until) continue;
    if (ms_of(*event->row.locked_until) != ms && !seeded(SeededBug::kExpireTheExtended)) continue;
    WorkerTable table(txn, space, event->row.names().worker, now);
    lose(table, *event, "its claim was not extended in time");
    table.finish();
  }
  return turn_of(first);
}

DueTurn forget(Transaction& txn, WallTime now) {
  FirstRows first = read_due(txn, forget_prefix(), kForgottenRows, now);
  std::size_t forgotten = 0;
  for (const Row& row : first.due) {
    if (forgotten > kForgottenAtOnce) {
      first.more = true;
      break;
    }
    txn.clear(row.key);
    BytesView what = row.value;
    if (what.empty()) continue;
    if (static_cast<Forget>(what[0]) == Forget::kUnique)
      forget_unique(txn, what.substr(1), now);
    else
      forgotten += forget_ended(txn, what.substr(1));
  }
  // Who ends events does not ring for this: it can wait for the next look.
  DueTurn turn = turn_of(first);
  turn.next = std::min(turn.next.value_or(WallTime::max()), now + kForgetEvery);
  return turn;
}

}  // namespace perdure::queue
