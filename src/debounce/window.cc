#include "debounce/window.h"

#include <algorithm>

#include "base/rfc3339.h"
#include "base/seeded_bug.h"
#include "base/time_math.h"
#include "queue/emit.h"
#include "queue/worker_table.h"
#include "store/system_access.h"

namespace perdure::debounce {
namespace {

/// From here on a window that keeps all payloads fires. Twice of it is refused: it could not be an event.
constexpr std::uint64_t kPayloadBytesFull = kPayloadBytesMax / 2;

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
  if (settings.max_count > 0 && content.count >= settings.max_count) return true;
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
  if (auto value = reader.get(latest_key(content_prefix)))
    content.latest = std::max(window.first, queue::readable(reader, LatestRow::decode(*value)).time);
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

// Payloads.

void keep_all(Transaction& txn, BytesView content, const Touches& touches) {
  std::uint64_t bytes = 0;
  for (const Bytes& payload : touches.payloads) bytes += payload.size();
  Reader snapshot = txn.snapshot();
  auto before = static_cast<std::uint64_t>(decode_counter(snapshot.get(bytes_key(content))));
  auto count = static_cast<std::uint64_t>(decode_counter(snapshot.get(count_key(content))));
  SystemAccess access(txn);
  if (before + bytes > kPayloadBytesMax || count + touches.payloads.size() > 2 * kPayloadsMax)
    access.refuse({ErrorCode::kLimitExceeded,
                   "the window of the key has as many payloads as it can hold, and waits for the run before it to end; "
                   "try again after that, or let the debouncer keep the last payload only"});
  txn.add(bytes_key(content), static_cast<std::int64_t>(bytes));
  for (const Bytes& payload : touches.payloads)
    txn.set_stamped(tuple::pack_stamped_onto(payloads_key(content), tuple::IncompleteStamp{access.next_order()}),
                    payload);
}

void keep_merged(Transaction& txn, BytesView content, const Touches& touches, const MergeBytes& merge) {
  auto merged = txn.get(payload_key(content));
  for (const Bytes& payload : touches.payloads) merged = merged ? merge(*merged, payload) : payload;
  if (merged && merged->size() > kPayloadBytesMax)
    SystemAccess(txn).refuse({ErrorCode::kTooLarge, "the merged payload of the key has more than " +
                                                        std::to_string(kPayloadBytesMax) + " bytes when encoded"});
  if (merged) txn.set(payload_key(content), *merged);
}

/// All but what goes with the latest touch.
void keep_payloads(Transaction& txn, BytesView content, const DebounceSettings& settings, const Touches& touches,
                   const MergeBytes& merge) {
  switch (settings.payload) {
    case Payload::kLast:
      return;
    case Payload::kFirst:
      if (!touches.payloads.empty() && !txn.get(payload_key(content)))
        txn.set(payload_key(content), touches.payloads.front());
      return;
    case Payload::kAll:
      return keep_all(txn, content, touches);
    case Payload::kMerge:
      return keep_merged(txn, content, touches, merge);
  }
}

Value decode_payload(Reader& reader, BytesView encoded) {
  return encoded.empty() ? Value() : queue::readable(reader, Value::decode(encoded));
}

/// What the run gets. Reads whatever is there: the settings may have been others when it was written.
Value run_value(Transaction& txn, const Place& place, const DebounceSettings& settings, const WindowRow& window,
                const Content& content) {
  Bytes prefix = content_key(place.prefix());
  Value::Map value = {{"debouncer", place.name},
                      {"key", place.key},
                      {"count", content.count},
                      {"first", format_rfc3339(window.first)},
                      {"latest", format_rfc3339(content.latest)}};
  if (settings.payload == Payload::kAll) {
    Value::List payloads;
    for (const Row& row : txn.get_range(tuple::extensions(payloads_key(prefix))))
      payloads.push_back(decode_payload(txn, row.value));
    value["payloads"] = std::move(payloads);
  } else if (auto kept = txn.get(payload_key(prefix)); kept && settings.payload != Payload::kLast) {
    value["payload"] = decode_payload(txn, *kept);
  } else {
    auto latest = txn.get(latest_key(prefix));
    value["payload"] = latest ? decode_payload(txn, queue::readable(txn, LatestRow::decode(*latest)).payload) : Value();
  }
  return value;
}

/// Turns what it has into an event, and so into the run of its key.
std::size_t fire(Transaction& txn, const Place& place, const DebounceSettings& settings, WindowRow& window,
                 const Content& content, const Uuid& fresh, WallTime now) {
  NewEvent event{settings.worker, run_value(txn, place, settings, window, content), {.retry = settings.back_off}};
  std::string modifier = place.name + "/" + place.key;
  auto prepared = queue::readable(
      txn, queue::prepare(std::move(event), fresh, {.module = kModule, .modifier = modifier, .told = true}));
  queue::emit_in(txn, place.space, prepared, now);
  Bytes prefix = place.prefix();
  txn.set(run_key(prefix), queue::encode_id(fresh));
  if (leads(settings, window)) {
    window.led = true;
    txn.clear_range(tuple::extensions(content_key(prefix)));
  } else {
    close(txn, place, window);
  }
  return prepared.value.size() + prepared.given.size();
}

DueTime due_time(WallTime time) {
  return std::min(queue::due_at(time), queue::kLastDueTime);
}

}  // namespace

Window touch(Transaction& txn, const Place& place, const Touches& touches, const MergeBytes& merge, WallTime now) {
  Bytes prefix = place.prefix(), content_prefix = content_key(prefix);
  Reader snapshot = txn.snapshot();
  auto debouncer = read_debouncer(txn, place.space, place.name);
  if (!debouncer)
    SystemAccess(txn).refuse({ErrorCode::kNotFound, "there is no debouncer " + place.name + " in the space " +
                                                        place.space + "; set its settings first"});
  const DebounceSettings& settings = debouncer->settings;
  auto found = read_window(seeded(SeededBug::kTouchBlindly) ? snapshot : static_cast<Reader&>(txn), prefix);
  WindowRow window = found.value_or(WindowRow{.first = now});
  keep_payloads(txn, content_prefix, settings, touches, merge);
  LatestRow latest{std::max(now, window.first), {}};
  if (settings.payload == Payload::kLast && !touches.payloads.empty()) latest.payload = touches.payloads.back();
  txn.set(latest_key(content_prefix), latest.encode());
  txn.add(count_key(content_prefix), static_cast<std::int64_t>(touches.count));
  Content content{.latest = latest.time};
  content.count = static_cast<std::uint64_t>(decode_counter(snapshot.get(count_key(content_prefix))));
  if (settings.payload == Payload::kAll)
    content.bytes = static_cast<std::uint64_t>(decode_counter(snapshot.get(bytes_key(content_prefix))));
  WallTime fires = fires_at(settings, window, content);
  DueTime due = due_time(fires);
  // Later touches do not move it: a window that comes up too early is filed again. But one that is full is due now.
  if (!found || (window.due && due < *window.due)) {
    file(txn, place, window, due);
    if (!seeded(SeededBug::kOpenSilently)) txn.add(bell(), 1);
  }
  return {window.first, content.latest, content.count, fires};
}

bool cancel(Transaction& txn, const Place& place) {
  auto window = read_window(txn, place.prefix());
  if (!window) return false;
  close(txn, place, *window);
  txn.clear(place.held());
  return true;
}

Outcome come_up(Transaction& txn, const Place& place, const std::optional<DueTime>& filed, const Uuid& fresh,
                WallTime now) {
  Bytes prefix = place.prefix();
  auto window = read_window(txn, prefix);
  // They are written together, so an entry without its window is damage.
  if (filed && (!window || window->due != filed)) txn.clear(place.due(*filed));
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
    return {CameUp::kClosed};
  }
  bool running = txn.get(run_key(prefix)).has_value() && !seeded(SeededBug::kFireBesideRun);
  if (running || debouncer->paused) {
    file(txn, place, *window, std::nullopt);
    if (!running) txn.set(place.held(), {});
    return {CameUp::kAside};
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

std::optional<Window> look_at(Reader& reader, const Place& place, const DebounceSettings& settings) {
  Bytes prefix = place.prefix();
  auto window = read_window(reader, prefix);
  if (!window) return std::nullopt;
  Content content = read_content(reader, content_key(prefix), *window, settings);
  return Window{window->first, content.latest, content.count, fires_at(settings, *window, content)};
}

}  // namespace perdure::debounce
