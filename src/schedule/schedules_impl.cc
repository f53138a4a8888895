#include "schedule/schedules_impl.h"

#include <memory>
#include <vector>

#include "queue/emit.h"
#include "session/rows.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure {

Result<Schedules> SchedulesImpl::open(Store store, SchedulesOptions options) {
  if (auto good = session::check_short_name(options.space, "the space"); !good)
    return std::unexpected(std::move(good.error()));
  if (auto use = StoreAccess::impl(store).use(); !use) return std::unexpected(std::move(use.error()));
  auto impl = std::make_shared<SchedulesImpl>(store, options);
  if (options.trigger) impl->release();
  // Handles share an owner of their own, as callbacks may keep the object for a moment longer. They keep the store open
  // as well, so that it is closed where the last of them is dropped.
  SchedulesImpl* raw = impl.get();
  std::shared_ptr<SchedulesImpl> handle(
      raw, [impl = std::move(impl), store = std::move(store)](SchedulesImpl* node) { node->abandon(); });
  return Schedules(std::move(handle), std::move(options.space));
}

SchedulesImpl::SchedulesImpl(Store& store, const SchedulesOptions& options)
    : StorePart(store, "the schedules of this node"),
      clock_(store_),
      zones_(options.zoneinfo),
      held_(true),
      // A turn may count and walk through many times, and read files; and its events take room, so that a full disk
      // stops it as it stops all who emit.
      loop_(*this, schedule::timetable_bell(), [this](Transaction& txn, WallTime now) { return turn(txn, now); }, {}) {}

SchedulesImpl::Loop::Turn SchedulesImpl::turn(Transaction& txn, WallTime now) {
  if (held_) return {};
  schedule::TickTurn done = schedule::tick(txn, zones_, now);
  Loop::Turn turn{.next = done.next, .more = done.more, .acted = done.acted, .committed = {}};
  if (!done.notes.empty())
    turn.committed = [this, notes = std::move(done.notes)] {
      for (const schedule::TickNote& note : notes) tell(note);
    };
  return turn;
}

void SchedulesImpl::tell(const schedule::TickNote& note) {
  const StoreOptions& options = StoreAccess::impl(store_).options();
  if (!note.problem.empty())
    return log(options, LogLevel::kWarning, "schedule", "a schedule cannot be fired: " + note.problem,
               {{"space", note.space}, {"schedule", note.name}});
  count(options, Metric::kScheduleMissed, note.missed);
  log(options, LogLevel::kWarning, "schedule", "times of a schedule were missed",
      {{"space", note.space}, {"schedule", note.name}, {"missed", std::to_string(note.missed)}});
}

void SchedulesImpl::release() {
  if (held_.exchange(false)) loop_.wake();
}

std::optional<WallTime> SchedulesImpl::next_due(Reader& reader) {
  if (held_) return std::nullopt;
  Bytes table = schedule::timetable();
  auto rows = reader.get_range(tuple::extensions(table), {.limit = 1});
  if (rows.empty()) return std::nullopt;
  tuple::Reader key(BytesView(rows[0].key).substr(table.size()));
  return WallTime(Duration(key.next_int()));
}

WallTime SchedulesImpl::now(Transaction& txn) {
  Reader snapshot = txn.snapshot();
  clock_.learn(StoreClock::read(snapshot));
  return clock_.now();
}

Uuid SchedulesImpl::fresh_id() {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(clock_.now()).time_since_epoch().count();
  return queue::uuid_v7(ms, scheduler_.random(), scheduler_.random());
}

}  // namespace perdure
