#include "queue/rows.h"

#include <algorithm>
#include <cstring>

#include "base/endian.h"

namespace perdure::queue {
namespace {

constexpr char kFormat = 1;
/// Of the part with fixed places at the front of a row: format, state, stamp.
constexpr std::size_t kStampAt = 2;
constexpr std::size_t kFieldsAt = kStampAt + Stamp::kSize;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, std::string(what) + " of the queue cannot be read; run verify");
}

Value value_or_null(BytesView encoded) {
  return encoded.empty() ? Value() : Value::decode(encoded).value_or(Value());
}

/// Writes fields of fixed width, one after the other.
class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) {}
  template <std::unsigned_integral T>
  Writer& put(T value) {
    char bytes[sizeof value];
    store_little(bytes, value);
    out_.append(bytes, sizeof value);
    return *this;
  }
  Writer& put(std::int64_t value) { return put(static_cast<std::uint64_t>(value)); }
  Writer& put(Stamp stamp) {
    auto bytes = stamp.encode();
    out_.append(bytes.data(), bytes.size());
    return *this;
  }
  Writer& put_sized(BytesView bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    out_.append(bytes);
    return *this;
  }

 private:
  Bytes& out_;
};

/// Reads them back. What is not there reads as zeros, and ok() is false from then on.
class Fields {
 public:
  explicit Fields(BytesView bytes) : rest_(bytes) {}
  template <std::unsigned_integral T>
  T next() {
    BytesView bytes = take(sizeof(T));
    return bytes.size() == sizeof(T) ? load_little<T>(bytes.data()) : T{};
  }
  std::int64_t next_signed() { return static_cast<std::int64_t>(next<std::uint64_t>()); }
  Stamp next_stamp() { return Stamp::decode(take(Stamp::kSize)).value_or(Stamp{}); }
  BytesView next_sized() { return take(next<std::uint32_t>()); }
  BytesView take(std::size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    BytesView taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  BytesView rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  BytesView rest_;
  bool ok_ = true;
};

// Durations and times that may be missing: the smallest number stands for none.
constexpr std::int64_t kNone = INT64_MIN;

std::int64_t ms_or_none(const std::optional<DueTime>& time) {
  return time ? time->time_since_epoch().count() : kNone;
}

std::optional<DueTime> due_or_none(std::int64_t ms) {
  return ms == kNone ? std::nullopt : std::optional(DueTime(std::chrono::milliseconds(ms)));
}

void put_policy(Bytes& out, const RetryPolicy& policy) {
  tuple::append(out, policy.delay.count(), policy.factor, policy.max_delay.count(), policy.jitter.count(), policy.max,
                policy.then == RetryPolicy::Then::kDrop);
}

RetryPolicy next_policy(tuple::Reader& reader) {
  RetryPolicy policy;
  policy.delay = Duration(reader.next_int());
  policy.factor = reader.next_double();
  policy.max_delay = Duration(reader.next_int());
  policy.jitter = Duration(reader.next_int());
  policy.max = static_cast<int>(reader.next_int());
  policy.then = reader.next_bool() ? RetryPolicy::Then::kDrop : RetryPolicy::Then::kDead;
  return policy;
}

Bytes encode_failures(const std::vector<Failure>& failures) {
  Bytes out;
  for (const Failure& failure : failures)
    Writer(out).put(static_cast<std::uint32_t>(failure.attempt)).put(ns_of(failure.at)).put_sized(failure.error);
  return out;
}

bool decode_failures(BytesView bytes, std::vector<Failure>& failures) {
  Fields fields(bytes);
  while (fields.ok() && !fields.rest().empty()) {
    Failure failure;
    failure.attempt = static_cast<int>(fields.next<std::uint32_t>());
    failure.at = wall_time(fields.next_signed());
    failure.error = Bytes(fields.next_sized());
    if (fields.ok()) failures.push_back(std::move(failure));
  }
  return fields.ok();
}

}  // namespace

Bytes encode_id(const Uuid& id) {
  return Bytes(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

std::optional<Uuid> decode_id(BytesView value) {
  Uuid id;
  if (value.size() != id.bytes.size()) return std::nullopt;
  std::memcpy(id.bytes.data(), value.data(), value.size());
  return id;
}

Bytes HeldClaims::encode() const {
  // A text must not be the last element before bytes of another kind: a zero before 0xff would not end it.
  Bytes out = tuple::pack(space, ids.size());
  for (const Uuid& id : ids) out.append(encode_id(id));
  return out;
}

std::optional<HeldClaims> HeldClaims::decode(BytesView value) {
  tuple::Reader reader(value);
  HeldClaims held;
  held.space = reader.next_text();
  reader.next_int();
  if (!reader.ok()) return std::nullopt;
  BytesView rest = reader.rest();
  for (; rest.size() >= sizeof(Uuid::bytes); rest.remove_prefix(sizeof(Uuid::bytes)))
    held.ids.push_back(*decode_id(rest.substr(0, sizeof(Uuid::bytes))));
  return held;
}

/// First what names other rows, at places that are found without reading the rest.
Bytes Given::encode() const {
  Bytes out;
  out.reserve(64 + value.size());
  Writer(out)
      .put(static_cast<std::uint8_t>(worker.size()))
      .put(static_cast<std::uint8_t>(limit_key.size()))
      .put(static_cast<std::uint8_t>(unique_key.size()))
      .put(static_cast<std::uint32_t>(apart_bytes))
      .put(static_cast<std::uint8_t>(told));
  out.append(worker).append(limit_key).append(unique_key);
  tuple::append(out, module, modifier, traceparent, retry.has_value());
  if (retry) put_policy(out, *retry);
  if (apart_bytes == 0) out.append(value);
  return out;
}

namespace {

struct SplitGiven {
  GivenNames names;
  BytesView rest;
  bool whole = false;
};

SplitGiven split(BytesView given) {
  Fields fields(given);
  std::size_t worker = fields.next<std::uint8_t>();
  std::size_t limit_key = fields.next<std::uint8_t>();
  std::size_t unique_key = fields.next<std::uint8_t>();
  SplitGiven split;
  split.names.apart_bytes = fields.next<std::uint32_t>();
  split.names.told = fields.next<std::uint8_t>() != 0;
  split.names.worker = fields.take(worker);
  split.names.limit_key = fields.take(limit_key);
  split.names.unique_key = fields.take(unique_key);
  split.rest = fields.rest();
  split.whole = fields.ok();
  return split;
}

}  // namespace

Result<Given> Given::decode(BytesView bytes) {
  SplitGiven parts = split(bytes);
  tuple::Reader reader(parts.rest);
  Given given;
  given.worker = parts.names.worker;
  given.limit_key = parts.names.limit_key;
  given.unique_key = parts.names.unique_key;
  given.apart_bytes = parts.names.apart_bytes;
  given.told = parts.names.told;
  given.module = reader.next_text();
  given.modifier = reader.next_text();
  given.traceparent = reader.next_text();
  if (reader.next_bool()) given.retry = next_policy(reader);
  if (!parts.whole || !reader.ok()) return damaged("an event");
  given.value = Bytes(reader.rest());
  return given;
}

Stored state_of(BytesView row) {
  return row.size() > 1 ? static_cast<Stored>(row[1]) : Stored{};
}

Stamped EventRow::encode(std::uint32_t order) const {
  Stamped row;
  row.order = order;
  row.before = {kFormat, static_cast<char>(state)};
  Bytes failed = encode_failures(failures);
  row.after.reserve(80 + failed.size() + given().size());
  Writer(row.after)
      .put(static_cast<std::uint8_t>(priority))
      .put(retries)
      .put(attempts)
      .put(losses)
      .put(ns_of(enqueued_at))
      .put(static_cast<std::int64_t>(delay_until.time_since_epoch().count()))
      .put(locked_at ? ns_of(*locked_at) : kNone)
      .put(session.stamp)
      .put(ms_or_none(locked_until))
      .put_sized(failed);
  row.after.append(given());
  return row;
}

Bytes EventRow::encode_as_it_is() const {
  Stamped row = encode(0);
  Bytes out = std::move(row.before);
  Writer(out).put(stamp);
  return out.append(row.after);
}

Result<EventRow> EventRow::decode(Bytes value) {
  if (value.size() < kFieldsAt || value[0] != kFormat || state_of(value) == Stored::kEnded) return damaged("an event");
  EventRow row;
  row.state = state_of(value);
  Fields fields(BytesView(value).substr(kStampAt));
  row.stamp = fields.next_stamp();
  row.priority = fields.next<std::uint8_t>();
  row.retries = fields.next<std::uint32_t>();
  row.attempts = fields.next<std::uint32_t>();
  row.losses = fields.next<std::uint32_t>();
  row.enqueued_at = wall_time(fields.next_signed());
  row.delay_until = DueTime(std::chrono::milliseconds(fields.next_signed()));
  if (auto locked = fields.next_signed(); locked != kNone) row.locked_at = wall_time(locked);
  row.session = {fields.next_stamp()};
  row.locked_until = due_or_none(fields.next_signed());
  if (!decode_failures(fields.next_sized(), row.failures) || !fields.ok()) return damaged("an event");
  row.given_at = value.size() - fields.rest().size();
  row.bytes = std::move(value);
  return row;
}

GivenNames EventRow::names() const {
  return split(given()).names;
}

Bytes EndedRow::encode() const {
  Bytes out{kFormat, static_cast<char>(Stored::kEnded)};
  Writer(out)
      .put(token)
      .put(static_cast<std::uint8_t>(how))
      .put(attempts)
      .put(ns_of(finished_at))
      .put_sized(worker)
      .put_sized(last_error);
  return out.append(result);
}

Result<EndedRow> EndedRow::decode(BytesView value) {
  if (value.size() < kFieldsAt || value[0] != kFormat || state_of(value) != Stored::kEnded)
    return damaged("the end of an event");
  EndedRow row;
  Fields fields(value.substr(kStampAt));
  row.token = fields.next_stamp();
  row.how = static_cast<EndedEvent::How>(fields.next<std::uint8_t>());
  row.attempts = fields.next<std::uint32_t>();
  row.finished_at = wall_time(fields.next_signed());
  row.worker = Bytes(fields.next_sized());
  row.last_error = Bytes(fields.next_sized());
  if (!fields.ok()) return damaged("the end of an event");
  row.result = Bytes(fields.rest());
  return row;
}

Bytes ReadyEntry::encode() const {
  Bytes out = encode_id(id);
  Writer(out).put(ns_of(since));
  return out;
}

std::optional<ReadyEntry> ReadyEntry::decode(BytesView value) {
  if (value.size() != sizeof(Uuid::bytes) + sizeof(std::int64_t)) return std::nullopt;
  ReadyEntry entry;
  entry.id = *decode_id(value.substr(0, sizeof(Uuid::bytes)));
  entry.since = wall_time(Fields(value.substr(sizeof(Uuid::bytes))).next_signed());
  return entry;
}

Bytes encode_rules(const std::vector<Rule>& rules) {
  Bytes out;
  for (const Rule& rule : rules)
    tuple::append(out, rule.id, static_cast<int>(rule.type), rule.reason, rule.by, ns_of(rule.since),
                  ms_or_none(rule.until));
  return out;
}

Result<std::vector<Rule>> decode_rules(BytesView value) {
  std::vector<Rule> rules;
  tuple::Reader reader(value);
  while (reader.ok() && !reader.rest().empty()) {
    Rule rule;
    rule.id = reader.next_int();
    rule.type = static_cast<Rule::Type>(reader.next_int());
    rule.reason = reader.next_text();
    rule.by = reader.next_text();
    rule.since = wall_time(reader.next_int());
    rule.until = due_or_none(reader.next_int());
    if (reader.ok()) rules.push_back(std::move(rule));
  }
  if (!reader.ok()) return damaged("a rule");
  return rules;
}

Bytes encode_settings(const WorkerSettings& settings) {
  Bytes out = tuple::pack(settings.rate ? settings.rate->count : 0U, settings.rate ? settings.rate->per.count() : 0,
                          settings.limit_per_key, settings.retention.count(), settings.losses_max);
  put_policy(out, settings.retry);
  return out;
}

Result<WorkerSettings> decode_settings(BytesView value) {
  tuple::Reader reader(value);
  WorkerSettings settings;
  Rate rate;
  rate.count = static_cast<std::uint32_t>(reader.next_int());
  rate.per = Duration(reader.next_int());
  if (rate.count > 0) settings.rate = rate;
  settings.limit_per_key = static_cast<std::uint32_t>(reader.next_int());
  settings.retention = Duration(reader.next_int());
  settings.losses_max = static_cast<int>(reader.next_int());
  settings.retry = next_policy(reader);
  if (!reader.ok()) return damaged("the settings of a worker");
  return settings;
}

void RecordBlock::add(const AttemptRecord& record, BytesView value, BytesView result) {
  Bytes head = tuple::pack(record.event, tuple::BlobView(record.error), record.attempt,
                           static_cast<int>(record.outcome), ns_of(record.started), ns_of(record.ended));
  Writer(bytes).put_sized(head).put_sized(value).put_sized(result);
}

Bytes RecordBlock::encode() const {
  Bytes out;
  out.reserve(sizeof number + bytes.size());
  Writer(out).put(number);
  return out.append(bytes);
}

std::optional<RecordBlock> RecordBlock::decode(BytesView value) {
  Fields fields(value);
  RecordBlock block;
  block.number = fields.next_signed();
  block.bytes = fields.rest();
  if (!fields.ok()) return std::nullopt;
  return block;
}

std::vector<AttemptRecord> RecordBlock::records() const {
  std::vector<AttemptRecord> records;
  for (Fields fields(bytes); !fields.rest().empty();) {
    tuple::Reader head(fields.next_sized());
    AttemptRecord record;
    record.event = head.next_uuid();
    record.error = Bytes(head.next_bytes());
    record.attempt = static_cast<int>(head.next_int());
    record.outcome = static_cast<AttemptRecord::Outcome>(head.next_int());
    record.started = wall_time(head.next_int());
    record.ended = wall_time(head.next_int());
    record.value = value_or_null(fields.next_sized());
    record.result = value_or_null(fields.next_sized());
    if (!head.ok() || !fields.ok()) break;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace perdure::queue
