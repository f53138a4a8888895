#include "schedule/tick.h"

#include <algorithm>

#include "queue/emit.h"
#include "queue/worker_table.h"
#include "schedule/plan.h"
#include "store/change_notes.h"
#include "store/system_access.h"

namespace perdure::schedule {
namespace {

/// What a turn looks at, so that those that cannot be fired here leave room for others.
constexpr std::size_t kLookedAtOnce = 256;
constexpr std::size_t kEventsAtOnce = 256;
/// So that one that has thousands to catch up with does not keep others waiting.
constexpr std::size_t kEventsOfEach = 32;
constexpr std::size_t kBytesAtOnce = 2'000'000;
constexpr Duration kTryAgain = std::chrono::seconds(10);

/// What is left of a turn's bounds.
struct Budget {
  std::size_t events = kEventsAtOnce;
  std::size_t bytes = kBytesAtOnce;

  std::size_t for_one(std::size_t event_bytes) const {
    return std::min({events, kEventsOfEach, std::max<std::size_t>(bytes / (event_bytes + 1), 1)});
  }
  void spend(std::size_t count, std::size_t event_bytes) {
    events -= count;
    bytes -= std::min(bytes, count * event_bytes);
  }
  bool empty() const { return events == 0 || bytes == 0; }
};

std::string problem_of(const Error& error) {
  return to_string(error);
}

/// Whether the id is taken. It is only if something has gone wrong before, and then emitting it for another worker
/// would fail the whole turn, again and again.
bool was_emitted(Transaction& txn, std::string_view space, const Uuid& id) {
  return txn.get(queue::event_key(space, id)).has_value();
}

class Ticker {
 public:
  Ticker(Transaction& txn, Zones& zones, WallTime now) : txn_(txn), zones_(zones), now_(now) {
    // Half of it for values, the rest for what events take besides.
    budget_.bytes = std::min(kBytesAtOnce, SystemAccess(txn).room() / 2);
  }

  TickTurn run() {
    auto rows = txn_.get_range(tuple::extensions(timetable()), {.limit = kLookedAtOnce + 1});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto parts = tuple::unpack_after<std::int64_t, std::string, std::string>(timetable(), rows[i].key);
      if (!parts) {
        txn_.clear(rows[i].key);
        continue;
      }
      auto& [ns, space, name] = *parts;
      WallTime due{Duration(ns)};
      if (due > now_) {
        wake_at(due);
        break;
      }
      if (budget_.empty() || i == kLookedAtOnce) {
        // If none of them could be fired, it is no use to look at once.
        turn_.more = turn_.acted;
        break;
      }
      fire(space, name, due, rows[i].key);
    }
    return std::move(turn_);
  }

 private:
  void wake_at(WallTime time) { turn_.next = std::min(turn_.next.value_or(WallTime::max()), time); }

  void fire(const std::string& space, const std::string& name, WallTime due, BytesView tick) {
    auto value = txn_.get(schedule_key(space, name));
    auto row = value ? ScheduleRow::decode(*value) : Result<ScheduleRow>(fail(ErrorCode::kNotFound, "it is gone"));
    if (!row || row->next != due) {
      // They are written together, so this is damage. Nothing is lost that could be kept.
      turn_.notes.push_back({space, name, 0, row ? "its time is not that of the timetable" : problem_of(row.error())});
      return txn_.clear(tick);
    }
    auto timing = timing_of(*row, zones_);
    if (!timing) {
      // Others may have what this machine lacks.
      turn_.notes.push_back({space, name, 0, problem_of(timing.error())});
      return wake_at(now_ + kTryAgain);
    }
    std::size_t event_bytes = row->spec.value.encoded_size();
    Plan plan = plan_due(*timing, row->spec.missed, due, now_, budget_.for_one(event_bytes));
    for (WallTime nominal : plan.fire) {
      if (was_emitted(txn_, space, event_id(space, name, nominal))) continue;
      emit_event(txn_, space, name, row->spec, nominal, {}, now_);
    }
    if (!plan.fire.empty()) note_fired(txn_, space, name, plan.fire.size(), now_);
    budget_.spend(plan.fire.size(), event_bytes);
    ScheduleRow after = *row;
    if (!plan.fire.empty()) after.last = plan.fire.back();
    after.next = plan.next;
    after.missed_count += plan.missed;
    write_schedule(txn_, space, name, *row, after);
    if (plan.missed > 0) turn_.notes.push_back({space, name, plan.missed});
    turn_.acted = true;
    if (plan.next && *plan.next <= now_)
      turn_.more = true;
    else if (plan.next)
      wake_at(*plan.next);
  }

  Transaction& txn_;
  Zones& zones_;
  const WallTime now_;
  Budget budget_;
  TickTurn turn_;
};

}  // namespace

Result<Timing> timing_of(const ScheduleRow& row, Zones& zones) {
  if (!row.spec.every.empty()) {
    auto interval = Interval::parse(row.spec.every);
    if (!interval) return fail(ErrorCode::kCorrupt, std::move(interval.error().message));
    return Timing(std::move(*interval), row.first);
  }
  auto cron = Cron::parse(row.spec.cron);
  if (!cron) return fail(ErrorCode::kCorrupt, std::move(cron.error().message));
  auto zone = zones.find(row.spec.timezone);
  if (!zone) return std::unexpected(std::move(zone.error()));
  return Timing(*cron, std::move(*zone));
}

Emitted emit_event(Transaction& txn, std::string_view space, std::string_view name, const ScheduleSpec& spec,
                   std::optional<WallTime> nominal, const Uuid& fresh, WallTime now) {
  NewEvent event{.worker = spec.worker, .value = spec.value, .options = {}};
  event.options.id = nominal ? event_id(space, name, *nominal) : fresh;
  if (nominal && spec.jitter > Duration::zero())
    event.options.at = queue::due_at(*nominal + jitter_of(space, name, *nominal, spec.jitter));
  std::string_view timing = spec.every.empty() ? spec.cron : spec.every;
  auto prepared = queue::prepare(std::move(event), fresh, {.module = "CRON", .modifier = timing});
  // It was checked when the schedule was set.
  if (!prepared) SystemAccess(txn).refuse(std::move(prepared.error()));
  return queue::emit_in(txn, space, *prepared, now);
}

void note_fired(Transaction& txn, std::string_view space, std::string_view name, std::size_t times, WallTime now) {
  SystemAccess(txn).note({.type = ChangeType::kSchedule,
                          .state = ChangeState::kFired,
                          .space = space,
                          .name = name,
                          .id = {},
                          .at = now,
                          .count = times});
}

TickTurn tick(Transaction& txn, Zones& zones, WallTime now) {
  return Ticker(txn, zones, now).run();
}

}  // namespace perdure::schedule
