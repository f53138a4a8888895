#include "queue/inspect.h"

#include <algorithm>
#include <functional>
#include <ranges>

#include "queue/list.h"
#include "queue/rules.h"
#include "queue/worker_table.h"
#include "session/rows.h"

namespace perdure {

std::string_view name_of(EventState state) {
  constexpr std::string_view kNames[] = {"scheduled", "ready", "running", "paused", "blocked", "dead"};
  return kNames[static_cast<int>(state)];
}

std::string_view name_of(EndedEvent::How how) {
  constexpr std::string_view kNames[] = {"completed", "dropped", "cancelled"};
  return kNames[static_cast<int>(how)];
}

std::string_view name_of(AttemptRecord::Outcome outcome) {
  constexpr std::string_view kNames[] = {"completed", "failed", "released", "lost"};
  return kNames[static_cast<int>(outcome)];
}

std::string_view name_of(WorkerState state) {
  constexpr std::string_view kNames[] = {"run", "pause", "block"};
  return kNames[static_cast<int>(state)];
}

namespace queue {
namespace {

EventState shown(Stored stored, WorkerState worker) {
  switch (stored) {
    case Stored::kScheduled:
      return EventState::kScheduled;
    case Stored::kRunning:
      return EventState::kRunning;
    case Stored::kDead:
      return EventState::kDead;
    case Stored::kReady:
    case Stored::kEnded:
      break;
  }
  return worker == WorkerState::kBlock   ? EventState::kBlocked
         : worker == WorkerState::kPause ? EventState::kPaused
                                         : EventState::kReady;
}

std::unexpected<Error> no_event(const Uuid& id) {
  return fail(ErrorCode::kNotFound, "there is no event " + to_string(id) + ", or it has ended");
}

std::optional<WallTime> oldest_ready(Reader& reader, BytesView prefix) {
  std::optional<WallTime> oldest;
  Bytes ready = ready_key(prefix);
  for (int priority = kPriorityMin; priority <= kPriorityMax; ++priority) {
    auto rows = reader.get_range(tuple::extensions(tuple::pack_onto(ready, priority)), {.limit = 1});
    auto entry = rows.empty() ? std::nullopt : ReadyEntry::decode(rows[0].value);
    if (entry) oldest = std::min(oldest.value_or(WallTime::max()), entry->since);
  }
  return oldest;
}

}  // namespace

std::uint64_t store_number(Reader& reader) {
  return session::read_store_number(reader);
}

Event describe(std::string_view space, const Uuid& id, const EventRow& row, const Given& given, WorkerState worker,
               std::uint64_t store) {
  Event event;
  event.id = id;
  event.space = space;
  event.worker = given.worker;
  event.module = given.module;
  event.modifier = given.modifier;
  event.state = shown(row.state, worker);
  event.priority = row.priority;
  event.retries = static_cast<int>(row.retries);
  event.attempts = static_cast<int>(row.attempts);
  event.losses = static_cast<int>(row.losses);
  event.enqueued_at = row.enqueued_at;
  event.delay_until = row.delay_until;
  event.locked_at = row.locked_at;
  event.locked_until = row.locked_until;
  if (row.state == Stored::kRunning) {
    event.token = Token{row.stamp, store};
    if (!row.locked_until) event.owner = row.session;
  }
  event.failures = row.failures;
  if (!row.failures.empty()) event.last_error = row.failures.back().error;
  event.limit_key = given.limit_key;
  event.unique_key = given.unique_key;
  event.traceparent = given.traceparent;
  event.retry = given.retry;
  return event;
}

Result<Event> get_event(Reader& reader, std::string_view space, const Uuid& id, WallTime now) {
  SystemAccess access(reader);
  auto found = load(reader, space, id);
  if (!found) return no_event(id);
  auto given = Given::decode(found->row.given());
  if (!given) return std::unexpected(std::move(given.error()));
  auto value = read_value(reader, found->key, *given);
  if (!value) return std::unexpected(std::move(value.error()));
  auto rules = read_rules(reader, worker_prefix(space, given->worker), now);
  Event event = describe(space, id, found->row, *given, state_by(rules), store_number(reader));
  event.value = std::move(*value);
  return event;
}

Result<EndedEvent> get_ended(Reader& reader, std::string_view space, const Uuid& id) {
  SystemAccess access(reader);
  auto row = load_ended(reader, space, id);
  if (!row)
    return fail(ErrorCode::kNotFound,
                "nothing is known of an end of event " + to_string(id) + ": it has not ended, or that is forgotten");
  auto result = row->result.empty() ? Result<Value>(Value()) : Value::decode(row->result);
  if (!result) return std::unexpected(std::move(result.error()));
  return EndedEvent{.id = id,
                    .worker = row->worker,
                    .how = row->how,
                    .result = std::move(*result),
                    .attempts = static_cast<int>(row->attempts),
                    .finished_at = row->finished_at,
                    .last_error = row->last_error};
}

WorkerInfo worker_info(Reader& reader, std::string_view space, std::string_view worker, WallTime now) {
  SystemAccess access(reader);
  Bytes prefix = worker_prefix(space, worker);
  auto count = [&](Counter counter) {
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(decode_counter(reader.get(counter_key(prefix, counter))), 0));
  };
  WorkerInfo info;
  info.space = space;
  info.worker = worker;
  info.rules = read_rules(reader, prefix, now);
  info.state = state_by(info.rules);
  std::uint64_t in = count(Counter::kIn), out = count(Counter::kOut);
  info.ready = in > out ? in - out : 0;
  info.scheduled = count(Counter::kScheduled);
  info.running = count(Counter::kRunning);
  info.dead = count(Counter::kDead);
  info.total = info.ready + info.scheduled + info.running;
  info.oldest = oldest_ready(reader, prefix);
  info.completed = count(Counter::kCompleted);
  info.failed = count(Counter::kFailed);
  info.dropped = count(Counter::kDropped);
  info.cancelled = count(Counter::kCancelled);
  info.lost = count(Counter::kLost);
  info.served_by = reader.get_range(tuple::extensions(servers_key(prefix))).size();
  info.settings = read_settings(reader, prefix);
  return info;
}

std::vector<std::string> list_workers(Reader& reader, std::string_view space, const PageOptions& page) {
  SystemAccess access(reader);
  Bytes all = tuple::pack_onto(kSystemKeys, "queue", space);
  KeyRange range = tuple::extensions(all);
  if (!page.after.empty()) range.begin = tuple::extensions(tuple::pack_onto(all, page.after)).end;
  std::vector<std::string> names;
  while (names.size() < page.limit) {
    auto rows = reader.get_range(range, {.limit = 1});
    if (rows.empty()) break;
    tuple::Reader parts(BytesView(rows[0].key).substr(all.size()));
    names.emplace_back(parts.next_text());
    if (!parts.ok()) break;
    // From one worker to the next by a seek, however much the one has.
    range.begin = tuple::extensions(tuple::pack_onto(all, names.back())).end;
  }
  return names;
}

std::vector<AttemptRecord> list_attempts(Reader& reader, std::string_view space, std::string_view worker) {
  SystemAccess access(reader);
  Bytes prefix = worker_prefix(space, worker);
  std::vector<RecordBlock> blocks;
  for (const Row& row : reader.get_range(tuple::extensions(ring_key(prefix))))
    if (auto block = RecordBlock::decode(row.value)) blocks.push_back(std::move(*block));
  std::ranges::sort(blocks, std::greater(), &RecordBlock::number);
  std::vector<AttemptRecord> records;
  for (const RecordBlock& block : blocks) {
    auto those = block.records();
    std::ranges::move(std::views::reverse(those), std::back_inserter(records));
  }
  if (records.size() > kRingSize) records.resize(kRingSize);
  return records;
}

}  // namespace queue
}  // namespace perdure
