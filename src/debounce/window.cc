#include "debounce/window.h"

#include <algorithm>

#include "base/rfc3339.h"
#include "base/seeded_bug.h"
#include "base/time_math.h"
#include "queue/emit.h"
#include "queue/worker_table.h"
#include "store/change_notes.h"
#include "store/system_access.h"

namespace perdure::debounce {
namespace {

/// What a window has besides its row.
struct Content {
  WallTime latest;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

bool leads(const DebounceSettings& settings, const WindowRow& window) {
  return settings.edge != Edge::kTrailing && !window.led;
}

/// Nothing that it could still run for is in it.
bool is_spent(const DebounceSettings& settings, const WindowRow& window, const Content& content) {
  if (!window.led) return false;
  return content.count == 0 || (settings.edge == Edge::kLeading && !seeded(SeededBug::kLeadAgain));
}

bool is_full(const DebounceSettings& settings, const WindowRow& window, const Content& content) {
  if (window.led && settings.edge == Edge::kLeading) return false;
  if (settings.max_count > 0 && content.count >= settings.max_count && !seeded(SeededBug::kIgnoreMaxCount)) return true;
  return settings.payload == Payload::kAll && (content.count >= kPayloadsMax || content.bytes >= kPayloadBytesFull);
}

WallTime fires_at(const DebounceSettings& settings, const WindowRow& window, const Content& content) {
  if (leads(settings, window)) return window.first;
  if (is_full(settings, window, content)) return content.latest;
  if (settings.window) return plus(window.first, *settings.window);
  WallTime quiet = plus(content.latest, settings.quiet);
  if (!settings.max_wait || seeded(SeededBug::kIgnoreMaxWait)) return quiet;
  return std::min(quiet, plus(window.first, *settings.max_wait));
}

Content read_content(Reader& reader, BytesView content_prefix, const WindowRow& window,
                     const DebounceSettings& settings) {
  Content content{.latest = window.first};
  auto value = reader.get(latest_key(content_prefix));
  auto latest = value ? LatestRow::decode(*value) : LatestRow{window.first, {}};
  if (latest) content.latest = std::max(window.first, latest->time);
  content.count = static_cast<std::uint64_t>(decode_counter(reader.get(count_key(content_prefix))));
  if (settings.payload == Payload::kAll)
    content.bytes = static_cast<std::uint64_t>(decode_counter(reader.get(bytes_key(content_prefix))));
  return content;
}

/// Writes its row, and keeps the timetable with it.
void file(Transaction& txn, const Place& place, WindowRow& window, std::optional<DueTime> due) {
  if (window.due && window.due != due) txn.clear(place.due(*window.due));
  if (due) txn.set(place.due(*due), {});
  window.due = due;
  txn.set(window_key(place.prefix()), window.encode());
}

void close(Transaction& txn, const Place& place, const WindowRow& window) {
  Bytes prefix = place.prefix();
  if (window.due) txn.clear(place.due(*window.due));
  txn.clear(window_key(prefix));
  txn.clear_range(tuple::extensions(content_key(prefix)));
}

void note(Transaction& txn, const Place& place, ChangeState state, WallTime now, std::uint64_t touches = 0) {
  SystemAccess(txn).note({.type = ChangeType::kDebouncer,
                          .state = state,
                          .space = place.space,
                          .name = place.name,
                          .id = std::string_view(place.key),
                          .at = now,
                          .count = touches});
}

// Payloads.

void keep_all(Transaction& txn, BytesView content, std::span<const Bytes> payloads) {
  SystemAccess access(txn);
  std::size_t bytes = 0;
  for (const Bytes& payload : payloads) {
    if (payload.size() > kPayloadBytesFull)
      access.refuse({ErrorCode::kTooLarge, "where all payloads are kept, each has at most " +
                                               std::to_string(kPayloadBytesFull) +
                                               " bytes when encoded; this one has " + std::to_string(payload.size())});
    bytes += payload.size() + kPayloadOverhead;
  }
  // Not a snapshot: what no event could hold must not come together from two transactions.
  auto before = static_cast<std::uint64_t>(decode_counter(txn.get(bytes_key(content))));
  if (before >= kPayloadBytesFull && before + bytes > 2 * kPayloadBytesFull)
    access.refuse({ErrorCode::kLimitExceeded,
                   "the window of the key has as many payloads as it can hold, and has not fired yet: a run of the key "
                   "is under way, or the debouncer is paused. Try again later, or let it keep the last payload only"});
  txn.add(bytes_key(content), static_cast<std::int64_t>(bytes));
  for (const Bytes& payload : payloads)
    txn.set_stamped(tuple::pack_stamped_onto(payloads_key(content), tuple::IncompleteStamp{access.next_order()}),
                    payload);
}

void keep_merged(Transaction& txn, BytesView content, std::span<const Bytes> payloads, const MergeBytes& merge) {
  auto merged = txn.get(payload_key(content));
  for (const Bytes& payload : payloads) merged = merged ? queue::readable(txn, merge(*merged, payload)) : payload;
  if (merged && merged->size() > kPayloadBytesMax)
    SystemAccess(txn).refuse({ErrorCode::kTooLarge, "the merged payload of the key has more than " +
                                                        std::to_string(kPayloadBytesMax) + " bytes when encoded"});
  if (merged) txn.set(payload_key(content), *merged);
}

/// All but what goes with the latest touch.
void keep_payloads(Transaction& txn, BytesView content, const DebounceSettings& settings,
                   std::span<const Bytes> payloads, const MergeBytes& merge) {
  switch (settings.payload) {
    case Payload::kLast:
      return;
    case Payload::kFirst:
      if (!txn.get(payload_key(content))) txn.set(payload_key(content), payloads.front());
      return;
    case Payload::kAll:
      return keep_all(txn, content, payloads);
    case Payload::kMerge:
      return keep_merged(txn, content, payloads, merge);
  }
}

Value decode_payload(Reader& reader, BytesView encoded) {
  return encoded.empty() ? Value() : queue::readable(reader, Value::decode(encoded));
}

/// What is there, in the order of the touches: the settings may have been others when it was written.
Value::List kept_payloads(Transaction& txn, BytesView content, const DebounceSettings& settings) {
  Value::List payloads;
  if (auto kept = txn.get(payload_key(content))) payloads.push_back(decode_payload(txn, *kept));
  for (const Row& row : txn.get_range(tuple::extensions(payloads_key(content))))
    payloads.push_back(decode_payload(txn, row.value));
  auto value = txn.get(latest_key(content));
  auto latest = value ? LatestRow::decode(*value) : LatestRow();
  Bytes last = latest ? std::move(latest->payload) : Bytes();
  if (!last.empty() || payloads.empty()) payloads.push_back(decode_payload(txn, last));
  // Whoever wants one gets the first or the last of them.
  if (settings.payload == Payload::kFirst) payloads.resize(1);
  return payloads;
}

Value run_value(Transaction& txn, const Place& place, const DebounceSettings& settings, const WindowRow& window,
                const Content& content) {
  Value::Map value = {{"debouncer", place.name},
                      {"key", place.key},
                      {"count", content.count},
                      {"first", format_rfc3339(window.first)},
                      {"latest", format_rfc3339(content.latest)}};
  auto payloads = kept_payloads(txn, content_key(place.prefix()), settings);
  if (settings.payload == Payload::kAll)
    value["payloads"] = std::move(payloads);
  else
    value["payload"] = std::move(payloads.back());
  return value;
}

/// More than a run has besides its payloads: names and times.
constexpr std::size_t kWrappingBytes = 2'000;

/// Makes the event that is the run of the key from now on; answers with its bytes.
std::size_t begin_run(Transaction& txn, const Place& place, const DebounceSettings& settings, Value value,
                      const Uuid& fresh, WallTime now) {
  NewEvent event{settings.worker, std::move(value), {.retry = settings.back_off}};
  std::string modifier = place.name + "/" + place.key;
  queue::Origin origin{.module = kModule, .modifier = modifier, .told = true, .wrapping_bytes = kWrappingBytes};
  auto prepared = queue::readable(txn, queue::prepare(std::move(event), fresh, origin));
  queue::emit_in(txn, place.space, prepared, now);
  txn.set(run_key(place.prefix()), queue::encode_id(fresh));
  return prepared.value.size() + prepared.given.size();
}

/// Turns what it has into a run.
std::size_t fire(Transaction& txn, const Place& place, const DebounceSettings& settings, WindowRow& window,
                 const Content& content, const Uuid& fresh, WallTime now) {
  Value value = run_value(txn, place, settings, window, content);
  note(txn, place, ChangeState::kFired, now, content.count);
  if (leads(settings, window)) {
    window.led = true;
    txn.clear_range(tuple::extensions(content_key(place.prefix())));
  } else {
    close(txn, place, window);
  }
  return begin_run(txn, place, settings, std::move(value), fresh, now);
}

/// Whether the payload of the latest touch can be read, if that is the one to run for.
bool has_latest(Reader& reader, BytesView content, const DebounceSettings& settings) {
  if (settings.payload != Payload::kLast) return true;
  auto value = reader.get(latest_key(content));
  auto latest = value ? LatestRow::decode(*value) : LatestRow();
  return latest && (latest->payload.empty() || Value::decode(latest->payload));
}

DueTime due_time(WallTime time) {
  return std::min(queue::due_at(time), queue::kLastDueTime);
}

}  // namespace

Window touch(Transaction& txn, const Place& place, std::span<const Bytes> payloads, const MergeBytes& merge,
             WallTime now) {
  Bytes prefix = place.prefix(), content_prefix = content_key(prefix);
  Reader snapshot = txn.snapshot();
  auto debouncer = read_debouncer(txn, place.space, place.name);
  if (!debouncer)
    SystemAccess(txn).refuse({ErrorCode::kNotFound, "there is no debouncer " + place.name + " in the space " +
                                                        place.space + "; set its settings first"});
  const DebounceSettings& settings = debouncer->settings;
  auto found = read_window(seeded(SeededBug::kTouchBlindly) ? snapshot : static_cast<Reader&>(txn), prefix);
  WindowRow window = found.value_or(WindowRow{.first = now});
  bool opens = !found;
  if (window.led) {
    // The end of a burst that has come, and nobody has seen to it yet: this touch leads the next one.
    Content before = read_content(txn, content_prefix, window, settings);
    if (is_spent(settings, window, before) && fires_at(settings, window, before) <= now) {
      txn.clear_range(tuple::extensions(content_prefix));
      window.first = now;
      window.led = false;
      opens = true;
    }
  }
  const bool wanted = !(window.led && settings.edge == Edge::kLeading);
  if (wanted) keep_payloads(txn, content_prefix, settings, payloads, merge);
  LatestRow latest{std::max(now, window.first), {}};
  if (settings.payload == Payload::kLast) latest.payload = payloads.back();
  txn.set(latest_key(content_prefix), latest.encode());
  txn.add(count_key(content_prefix), static_cast<std::int64_t>(payloads.size()));
  Content content{.latest = latest.time};
  // What is full must be noticed by the one who fills it; otherwise the count is for people.
  Reader& counted = settings.max_count > 0 ? static_cast<Reader&>(txn) : snapshot;
  content.count = static_cast<std::uint64_t>(decode_counter(counted.get(count_key(content_prefix))));
  if (settings.payload == Payload::kAll)
    content.bytes = static_cast<std::uint64_t>(decode_counter(txn.get(bytes_key(content_prefix))));
  WallTime fires = fires_at(settings, window, content);
  DueTime due = due_time(fires);
  // Later touches do not move it: a window that comes up too early is filed again. But one that is full is due now.
  if (opens || (window.due && due < *window.due)) {
    file(txn, place, window, due);
    if (!seeded(SeededBug::kOpenSilently)) txn.add(bell(), 1);
  }
  // One for each window, and not for each touch: those are as many as people can type.
  if (opens) note(txn, place, ChangeState::kWaiting, now);
  return {window.first, content.latest, content.count, fires};
}

bool cancel(Transaction& txn, const Place& place, WallTime now) {
  if (!txn.get(window_key(place.prefix()))) return false;
  // One that cannot be read goes as well; where the timetable has it, it comes up for nothing.
  close(txn, place, read_window(txn, place.prefix()).value_or(WindowRow{}));
  txn.clear(place.held());
  note(txn, place, ChangeState::kCancelled, now);
  return true;
}

Outcome come_up(Transaction& txn, const Place& place, const std::optional<DueTime>& filed, const Uuid& fresh,
                WallTime now) {
  Bytes prefix = place.prefix();
  auto window = read_window(txn, prefix);
  // They are written together, so an entry without its window is damage.
  if (filed && (!window || window->due != filed)) txn.clear(place.due(*filed));
  if (!window && txn.get(window_key(prefix))) return {CameUp::kDamaged};
  if (!window || window->due != filed) return {};
  auto debouncer = read_debouncer(txn, place.space, place.name);
  if (!debouncer) {
    close(txn, place, *window);
    return {};
  }
  const DebounceSettings& settings = debouncer->settings;
  Content content = read_content(txn, content_key(prefix), *window, settings);
  DueTime due = due_time(fires_at(settings, *window, content));
  if (!queue::is_due(due, seeded(SeededBug::kFireEarly) ? now + std::chrono::seconds(1) : now)) {
    file(txn, place, *window, due);
    return {CameUp::kLater, due};
  }
  if (is_spent(settings, *window, content)) {
    close(txn, place, *window);
    note(txn, place, ChangeState::kEnded, now);
    return {CameUp::kClosed};
  }
  bool running = txn.get(run_key(prefix)).has_value() && !seeded(SeededBug::kFireBesideRun);
  if (running || debouncer->paused) {
    file(txn, place, *window, std::nullopt);
    if (!running) txn.set(place.held(), {});
    return {CameUp::kAside};
  }
  if (!has_latest(txn, content_key(prefix), settings)) {
    close(txn, place, *window);
    note(txn, place, ChangeState::kCancelled, now);
    return {CameUp::kDamaged};
  }
  Outcome outcome{CameUp::kFired};
  const bool leading = leads(settings, *window);
  outcome.bytes = fire(txn, place, settings, *window, content, fresh, now);
  if (leading) {
    // The end of the burst comes up as that of any window.
    Content rest{.latest = content.latest};
    outcome.next = due_time(fires_at(settings, *window, rest));
    file(txn, place, *window, outcome.next);
  }
  return outcome;
}

Outcome run_ended(Transaction& txn, const Place& place, const Uuid& id, const Uuid& fresh, WallTime now) {
  Bytes prefix = place.prefix();
  auto run = txn.get(run_key(prefix));
  // It may be one that was redriven, and ended by that.
  if (run && *run != queue::encode_id(id)) return {};
  txn.clear(run_key(prefix));
  if (run) note(txn, place, ChangeState::kEnded, now);
  auto parked = txn.get_range(tuple::extensions(parked_key(prefix)), {.limit = 1});
  auto debouncer = parked.empty() ? std::nullopt : read_debouncer(txn, place.space, place.name);
  if (debouncer)
    txn.clear(parked[0].key);
  else if (!parked.empty())
    txn.clear_range(tuple::extensions(parked_key(prefix)));
  if (!debouncer) return seeded(SeededBug::kForgetTheWindowBehind) ? Outcome{} : come_up(txn, place, {}, fresh, now);
  Outcome outcome{CameUp::kFired};
  Value value = queue::readable(txn, Value::decode(parked[0].value));
  note(txn, place, ChangeState::kFired, now);
  outcome.bytes = begin_run(txn, place, debouncer->settings, std::move(value), fresh, now);
  return outcome;
}

Outcome run_again(Transaction& txn, const Place& place, const Uuid& id, BytesView run, const Uuid& fresh,
                  WallTime now) {
  Bytes prefix = place.prefix();
  auto debouncer = read_debouncer(txn, place.space, place.name);
  auto running = txn.get(run_key(prefix));
  // Its own end may not have been seen to yet.
  bool beside = running && *running != queue::encode_id(id);
  if (debouncer && beside) {
    txn.set(tuple::pack_onto(parked_key(prefix), id), run);
    return {CameUp::kAside, {}, run.size()};
  }
  if (!debouncer) return running && !beside ? run_ended(txn, place, id, fresh, now) : Outcome{};
  Outcome outcome{CameUp::kFired};
  Value value = queue::readable(txn, Value::decode(run));
  note(txn, place, ChangeState::kFired, now);
  outcome.bytes = begin_run(txn, place, debouncer->settings, std::move(value), fresh, now);
  return outcome;
}

bool is_idle(Reader& reader, const Place& place) {
  Bytes prefix = place.prefix();
  return !reader.get(window_key(prefix)) && !reader.get(run_key(prefix));
}

std::optional<Window> look_at(Reader& reader, const Place& place, const DebounceSettings& settings) {
  Bytes prefix = place.prefix();
  auto window = read_window(reader, prefix);
  if (!window) return std::nullopt;
  Content content = read_content(reader, content_key(prefix), *window, settings);
  return Window{window->first, content.latest, content.count, fires_at(settings, *window, content)};
}

}  // namespace perdure::debounce
