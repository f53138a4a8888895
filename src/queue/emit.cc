#include "queue/emit.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/seeded_bug.h"
#include "queue/worker_table.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

constexpr Duration kLongestRetry = std::chrono::hours(24 * 365 * 100);

std::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> check_key(const std::string& key, std::string_view what) {
  return session::check_name(key, what);
}

Result<void> check_options(const EmitOptions& options) {
  if (options.delay < Duration::zero()) return wrong("the delay of an event cannot be negative");
  if (options.at && options.delay > Duration::zero()) return wrong("an event has a delay or a time, not both");
  if (options.at && *options.at > kLastDueTime) return wrong("the time of an event must be before the year 10000");
  if (options.priority < kPriorityMin || options.priority > kPriorityMax)
    return wrong("the priority of an event must be from 0, which is first, to 9; it is " +
                 std::to_string(options.priority));
  if (options.retry) {
    if (auto good = check_policy(*options.retry); !good) return good;
  }
  if (options.unique) {
    if (auto good = check_key(options.unique->key, "the unique key"); !good) return good;
    if (options.unique->lasts && *options.unique->lasts <= Duration::zero())
      return wrong("a unique key must last for more than nothing");
  }
  if (!options.limit_key.empty()) {
    if (auto good = check_key(options.limit_key, "the limit key"); !good) return good;
  }
  return session::check_traceparent(options.traceparent);
}

/// What a unique key stands for, if it is taken.
struct Taken {
  Uuid id;
  std::optional<DueTime> until;
};

std::optional<Taken> read_unique(Reader& reader, BytesView key, WallTime now) {
  auto value = reader.get(key);
  if (!value || value->size() < sizeof(Uuid::bytes)) return std::nullopt;
  Taken taken{*decode_id(BytesView(*value).substr(0, sizeof(Uuid::bytes))), {}};
  if (value->size() > sizeof(Uuid::bytes)) {
    taken.until = DueTime(std::chrono::milliseconds(decode_counter(value->substr(sizeof(Uuid::bytes)))));
    if (is_due(*taken.until, now)) return std::nullopt;
  }
  return taken;
}

void take_unique(WorkerTable& table, const Prepared& event, const UniqueKey& unique) {
  Bytes key = unique_key(table.prefix(), unique.key);
  if (!unique.lasts) return table.txn().set(key, encode_id(event.id));
  DueTime until = due_after(table.now(), *unique.lasts);
  table.txn().set(key, encode_id(event.id) + encode_counter(until.time_since_epoch().count()));
  forget_at(table.txn(), until, Forget::kUnique, key);
}

/// The event that this would be a second of.
std::optional<Emitted> find_first(WorkerTable& table, const Prepared& event) {
  if (event.options.id) {
    std::string worker;
    if (auto stored = load(table.txn(), table.space(), event.id))
      worker = stored->row.names().worker;
    else if (auto ended = load_ended(table.txn(), table.space(), event.id);
             ended && !seeded(SeededBug::kEmitTheEndedAgain))
      worker = ended->worker;
    if (!worker.empty() && worker != event.worker)
      SystemAccess(table.txn())
          .refuse({ErrorCode::kInvalidArgument,
                   "the id " + to_string(event.id) + " is that of an event of the worker " + worker});
    if (!worker.empty()) return Emitted{event.id, true};
  }
  if (event.options.unique && !seeded(SeededBug::kIgnoreUniqueKey)) {
    auto taken = read_unique(table.txn(), unique_key(table.prefix(), event.options.unique->key), table.now());
    if (taken) return Emitted{taken->id, true};
  }
  return std::nullopt;
}

Emitted store(WorkerTable& table, const Prepared& event) {
  if (auto first = find_first(table, event)) return *first;
  const EmitOptions& options = event.options;
  Loaded made{event.id, event_key(table.space(), event.id), {}};
  made.row.priority = options.priority;
  made.row.enqueued_at = table.now();
  made.row.set_given(event.given);
  made.row.delay_until = options.at ? *options.at
                         : options.delay > Duration::zero()
                             ? due_after(table.now(), options.delay)
                             : std::chrono::floor<std::chrono::milliseconds>(table.now());
  for (std::size_t i = 0; event.value.size() > kInlineBytes && i * kChunkBytes < event.value.size(); ++i)
    table.txn().set(tuple::pack_onto(made.key, i), BytesView(event.value).substr(i * kChunkBytes, kChunkBytes));
  if (options.unique) take_unique(table, event, *options.unique);
  bool due = is_due(made.row.delay_until, table.now());
  if (due && options.at) table.act_on_time();
  if (due)
    table.enter_ready(made, table.now());
  else
    table.enter_scheduled(made, made.row.delay_until);
  return {event.id, false};
}

}  // namespace

Uuid uuid_v7(std::int64_t ms, std::uint64_t random_high, std::uint64_t random_low) {
  Uuid id;
  for (int i = 0; i < 6; ++i) id.bytes[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
  for (int i = 0; i < 2; ++i) id.bytes[6 + i] = static_cast<std::uint8_t>(random_high >> (8 * (1 - i)));
  for (int i = 0; i < 8; ++i) id.bytes[8 + i] = static_cast<std::uint8_t>(random_low >> (8 * (7 - i)));
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x70);
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return id;
}

Result<void> check_worker(std::string_view worker) {
  return session::check_short_name(worker, "the worker");
}

Result<void> check_policy(const RetryPolicy& policy) {
  if (policy.delay < Duration::zero()) return wrong("the delay of a retry cannot be negative");
  if (policy.jitter < Duration::zero()) return wrong("the jitter of a retry cannot be negative");
  if (policy.max_delay > kLongestRetry || policy.jitter > kLongestRetry)
    return wrong("max_delay and jitter of a retry policy cannot be more than a hundred years");
  if (policy.max_delay < policy.delay) return wrong("max_delay of a retry policy cannot be less than its delay");
  if (!std::isfinite(policy.factor) || policy.factor < 1 || policy.factor > 1000)
    return wrong("the factor of a retry policy must be from 1 to 1000");
  if (policy.max < 0 || policy.max > 1'000'000) return wrong("retry.max must be from 0 to 1000000");
  return {};
}

Result<Prepared> prepare(NewEvent event, const Uuid& fresh, const Origin& origin) {
  if (auto good = check_worker(event.worker); !good) return std::unexpected(std::move(good.error()));
  if (auto good = check_options(event.options); !good) return std::unexpected(std::move(good.error()));
  if (auto good = event.value.check("the value"); !good) return std::unexpected(std::move(good.error()));
  std::size_t size = event.value.encoded_size();
  if (size > kEventBytesMax + origin.wrapping_bytes)
    return fail(ErrorCode::kTooLarge, "the value of the event has " + std::to_string(size) +
                                          " bytes when encoded; at most " + std::to_string(kEventBytesMax) +
                                          " are allowed");
  Prepared prepared;
  prepared.id = event.options.id.value_or(fresh);
  prepared.value = event.value.encode();
  Given given{.worker = event.worker,
              .module = std::string(origin.module),
              .modifier = std::string(origin.modifier),
              .limit_key = event.options.limit_key,
              .unique_key = event.options.unique ? event.options.unique->key : std::string(),
              .traceparent = event.options.traceparent,
              .retry = event.options.retry,
              .apart_bytes = size > kInlineBytes ? size : 0,
              .told = origin.told,
              .value = prepared.value};
  prepared.given = given.encode();
  if (given.apart_bytes == 0) prepared.value.clear();
  prepared.worker = std::move(event.worker);
  prepared.options = std::move(event.options);
  return prepared;
}

bool is_timed(std::span<const Prepared> events) {
  return std::ranges::any_of(events, [](const Prepared& event) {
    const EmitOptions& options = event.options;
    return options.at || options.delay > Duration::zero() || (options.unique && options.unique->lasts);
  });
}

Emitted emit_in(Transaction& txn, std::string_view space, const Prepared& event, WallTime now) {
  return emit_all(txn, space, {&event, 1}, now)[0];
}

std::vector<Emitted> emit_all(Transaction& txn, std::string_view space, std::span<const Prepared> events,
                              WallTime now) {
  SystemAccess access(txn);
  std::vector<Emitted> emitted;
  emitted.reserve(events.size());
  std::unique_ptr<WorkerTable> table;
  for (const Prepared& event : events) {
    // Neighbours mostly go to one worker.
    if (!table || table->worker() != event.worker) {
      if (table) table->finish();
      table = std::make_unique<WorkerTable>(txn, space, event.worker, now);
    }
    emitted.push_back(store(*table, event));
  }
  if (table) table->finish();
  return emitted;
}

}  // namespace perdure::queue
