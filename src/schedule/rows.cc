#include "schedule/rows.h"

#include "base/hash.h"
#include "store/system_access.h"

namespace perdure::schedule {
namespace {

constexpr int kFormat = 1;

std::unexpected<Error> damaged() {
  return fail(ErrorCode::kCorrupt, "the row of a schedule cannot be read; run verify");
}

std::int64_t ns_of(WallTime time) {
  return time.time_since_epoch().count();
}

void put_time(Bytes& out, const std::optional<WallTime>& time) {
  if (time)
    tuple::append(out, true, ns_of(*time));
  else
    tuple::append(out, false);
}

WallTime next_time(tuple::Reader& reader) {
  return WallTime(Duration(reader.next<std::int64_t>()));
}

std::optional<WallTime> next_optional_time(tuple::Reader& reader) {
  if (!reader.next<bool>()) return std::nullopt;
  return next_time(reader);
}

/// What a schedule and a nominal time have in common with no others.
Bytes name_of_tick(std::string_view space, std::string_view name, WallTime nominal) {
  return tuple::pack(space, name, ns_of(nominal));
}

}  // namespace

Bytes ScheduleRow::encode() const {
  Bytes out = tuple::pack(kFormat, spec.every, spec.cron, spec.timezone, spec.worker, static_cast<int>(spec.missed),
                          static_cast<std::int64_t>(spec.jitter.count()), ns_of(created), ns_of(first));
  put_time(out, last);
  put_time(out, next);
  tuple::append(out, missed_count, paused.has_value());
  if (paused) tuple::append(out, paused->by, paused->reason, ns_of(paused->since));
  // As it is: packed, its zero bytes would be doubled.
  spec.value.encode_onto(out);
  return out;
}

Result<ScheduleRow> ScheduleRow::decode(BytesView value) {
  tuple::Reader reader(value);
  ScheduleRow row;
  int format = reader.next<int>();
  row.spec.every = reader.next_text();
  row.spec.cron = reader.next_text();
  row.spec.timezone = reader.next_text();
  row.spec.worker = reader.next_text();
  int missed = reader.next<int>();
  row.spec.missed = static_cast<Missed>(missed);
  row.spec.jitter = Duration(reader.next<std::int64_t>());
  row.created = next_time(reader);
  row.first = next_time(reader);
  row.last = next_optional_time(reader);
  row.next = next_optional_time(reader);
  row.missed_count = reader.next<std::uint64_t>();
  if (reader.next<bool>()) {
    row.paused.emplace();
    row.paused->by = reader.next_text();
    row.paused->reason = reader.next_text();
    row.paused->since = next_time(reader);
  }
  bool good = reader.ok() && format == kFormat && missed >= 0 && missed <= static_cast<int>(Missed::kSkip);
  if (!good) return damaged();
  auto decoded = Value::decode(reader.rest());
  if (!decoded) return damaged();
  row.spec.value = std::move(*decoded);
  return row;
}

ScheduleInfo ScheduleRow::info(std::string_view space, std::string_view name) const {
  return {std::string(space), std::string(name), spec, created, last, next, missed_count, paused};
}

std::optional<ScheduleRow> read_schedule(Reader& reader, std::string_view space, std::string_view name) {
  auto value = reader.get(schedule_key(space, name));
  if (!value) return std::nullopt;
  auto row = ScheduleRow::decode(*value);
  if (!row) SystemAccess(reader).refuse(std::move(row.error()));
  return std::move(*row);
}

void write_schedule(Transaction& txn, std::string_view space, std::string_view name,
                    const std::optional<ScheduleRow>& before, const ScheduleRow& after) {
  std::optional<WallTime> old_next = before ? before->next : std::nullopt;
  if (old_next != after.next) {
    if (old_next) txn.clear(tick_key(*old_next, space, name));
    if (after.next) txn.set(tick_key(*after.next, space, name), {});
  }
  txn.set(schedule_key(space, name), after.encode());
}

Uuid event_id(std::string_view space, std::string_view name, WallTime nominal) {
  Bytes tick = name_of_tick(space, name, nominal);
  Uuid id;
  for (std::uint64_t half = 0; half < 2; ++half) {
    std::uint64_t hash = hash64(tick, half);
    for (std::size_t i = 0; i < 8; ++i) id.bytes[half * 8 + i] = static_cast<std::uint8_t>(hash >> (8 * (7 - i)));
  }
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x80);
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return id;
}

Duration jitter_of(std::string_view space, std::string_view name, WallTime nominal, Duration jitter) {
  if (jitter <= Duration::zero()) return Duration::zero();
  constexpr std::uint64_t kOtherThanIds = 2;
  std::uint64_t hash = hash64(name_of_tick(space, name, nominal), kOtherThanIds);
  return Duration(static_cast<Duration::rep>(hash % static_cast<std::uint64_t>(jitter.count())));
}

}  // namespace perdure::schedule
