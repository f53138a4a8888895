#include "debounce/settings.h"

#include <algorithm>

#include "debounce/window.h"
#include "queue/emit.h"
#include "queue/worker_table.h"
#include "session/rows.h"

namespace perdure {
namespace debounce {
namespace {

constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);
constexpr std::size_t kListedMax = 1'000;
/// Each may have a thousand payloads.
constexpr std::size_t kRemovedAtOnce = 32;
constexpr std::size_t kReasonBytesMax = 1'000;

std::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::unexpected<Error> not_found(std::string_view space, std::string_view name) {
  return fail(ErrorCode::kNotFound,
              "there is no debouncer " + std::string(name) + " in the space " + std::string(space));
}

Result<void> check_time(Duration time, std::string_view setting) {
  if (time < Duration::zero()) return wrong(std::string(setting) + " cannot be negative");
  if (time > kLongest) return wrong(std::string(setting) + " cannot be more than a hundred years");
  return {};
}

/// Where a listing goes on.
Result<KeyRange> range_after(BytesView prefix, const PageOptions& page) {
  KeyRange range = tuple::extensions(prefix);
  if (page.after.empty()) return range;
  if (auto good = tuple::check_text(page.after, "the name to go on after"); !good)
    return std::unexpected(std::move(good.error()));
  range.begin = tuple::extensions(tuple::pack_onto(prefix, page.after)).end;
  return range;
}

/// The names that follow `prefix` in keys, each once, by seeks.
template <class Each>
void for_each_name(Reader& reader, BytesView prefix, KeyRange range, Each each) {
  for (bool more = true; more;) {
    auto rows = reader.get_range(range, {.limit = 1});
    if (rows.empty()) return;
    tuple::Reader parts(BytesView(rows[0].key).substr(prefix.size()));
    std::string name(parts.next_text());
    if (!parts.ok()) return;
    range.begin = tuple::extensions(tuple::pack_onto(prefix, name)).end;
    more = each(name);
  }
}

}  // namespace

Result<void> check_names(std::string_view space, std::string_view name) {
  if (auto good = session::check_short_name(space, "the space"); !good) return good;
  return session::check_short_name(name, "the debouncer");
}

Result<void> check_key(std::string_view key) {
  if (key == "." || key == "..") return fail(ErrorCode::kInvalidArgument, "the key cannot be '.' or '..'");
  return session::check_name(key, "the key");
}

Result<void> check_payload(const Value& payload) {
  if (auto good = payload.check("the payload"); !good) return good;
  if (std::size_t size = payload.encoded_size(); size > kPayloadBytesMax)
    return fail(ErrorCode::kTooLarge, "the payload has " + std::to_string(size) + " bytes when encoded; at most " +
                                          std::to_string(kPayloadBytesMax) + " are allowed");
  // The value of a run has it in a list in a map.
  if (payload.is_list() || payload.is_map()) {
    if (auto good = Value(Value::List{Value::List{payload}}).check("the payload"); !good)
      return wrong("the payload is nested too deeply: lists and maps may be " + std::to_string(Value::kMaxDepth - 2) +
                   " deep");
  }
  return {};
}

Result<DebounceSettings> check_settings(std::string_view name, DebounceSettings settings) {
  auto pass_on = [](auto& failed) { return std::unexpected(std::move(failed.error())); };
  if (auto good = check_time(settings.quiet, "quiet"); !good) return pass_on(good);
  if (settings.max_wait) {
    if (auto good = check_time(*settings.max_wait, "max_wait"); !good) return pass_on(good);
    if (settings.window) return wrong("a debouncer has a fixed window, or quiet and max_wait, not both");
    if (*settings.max_wait < settings.quiet)
      return wrong("max_wait cannot be less than quiet: the window would never be quiet for long enough");
  }
  if (settings.window) {
    if (auto good = check_time(*settings.window, "window"); !good) return pass_on(good);
  }
  if (settings.edge != Edge::kTrailing && settings.window.value_or(settings.quiet) == Duration::zero())
    return wrong(std::string(settings.window ? "window" : "quiet") + " cannot be 0 with the edge " +
                 std::string(name_of(settings.edge)) + ": no touch would ever be a later one of a burst");
  if (settings.max_count > static_cast<std::uint64_t>(INT64_MAX)) return wrong("max_count is too large");
  if (settings.worker.empty()) settings.worker = name;
  if (auto good = queue::check_worker(settings.worker); !good) return pass_on(good);
  if (auto good = queue::check_policy(settings.back_off); !good) return pass_on(good);
  return settings;
}

namespace {

/// Has the next turn look at what is held of it.
void bring_back_held(Transaction& txn, std::string_view space, std::string_view name) {
  txn.set(tuple::pack_onto(unpaused_prefix(), space, name), {});
  txn.add(bell(), 1);
}

void note(Transaction& txn, std::string_view space, std::string_view name, ChangeState state, WallTime now) {
  SystemAccess(txn).note(
      {.type = ChangeType::kDebouncer, .state = state, .space = space, .name = name, .id = {}, .at = now});
}

}  // namespace

void set(Transaction& txn, std::string_view space, std::string_view name, const DebounceSettings& settings,
         WallTime now) {
  auto before = read_debouncer(txn, space, name);
  DebouncerRow row = before.value_or(DebouncerRow{});
  row.settings = settings;
  txn.set(debouncer_key(space, name), row.encode());
  // There may have been one of the name, of which something is left.
  if (!before) bring_back_held(txn, space, name);
  note(txn, space, name, ChangeState::kSet, now);
}

Result<DebouncerInfo> get(Reader& reader, std::string_view space, std::string_view name) {
  auto row = read_debouncer(reader, space, name);
  if (!row) return not_found(space, name);
  return row->info(space, name);
}

Result<std::vector<DebouncerInfo>> list(Reader& reader, std::string_view space, const PageOptions& page) {
  Bytes prefix = debouncers_prefix(space);
  auto range = range_after(prefix, page);
  if (!range) return std::unexpected(std::move(range.error()));
  std::vector<DebouncerInfo> debouncers;
  for (const Row& row : reader.get_range(*range, {.limit = std::min(page.limit, kListedMax)})) {
    auto name = tuple::unpack_after<std::string>(prefix, row.key);
    if (name)
      debouncers.push_back(queue::readable(reader, DebouncerRow::decode(row.value)).info(space, std::get<0>(*name)));
  }
  return debouncers;
}

Result<void> pause(Transaction& txn, std::string_view space, std::string_view name, const PauseOptions& why,
                   WallTime now) {
  for (const std::string* text : {&why.by, &why.reason}) {
    if (auto good = tuple::check_text(*text, "the reason of a pause"); !good) return good;
    if (text->size() > kReasonBytesMax) return wrong("the reason of a pause has at most 1000 bytes");
  }
  auto row = read_debouncer(txn, space, name);
  if (!row) return not_found(space, name);
  if (row->paused) return {};
  row->paused = SchedulePause{why.by, why.reason, now};
  txn.set(debouncer_key(space, name), row->encode());
  note(txn, space, name, ChangeState::kPaused, now);
  return {};
}

Result<void> unpause(Transaction& txn, std::string_view space, std::string_view name, WallTime now) {
  auto row = read_debouncer(txn, space, name);
  if (!row) return not_found(space, name);
  if (!row->paused) return {};
  row->paused.reset();
  txn.set(debouncer_key(space, name), row->encode());
  note(txn, space, name, ChangeState::kUnpaused, now);
  bring_back_held(txn, space, name);
  return {};
}

Result<std::optional<std::string>> remove_some(Transaction& txn, std::string_view space, std::string_view name,
                                               const std::optional<std::string>& after, WallTime now) {
  auto row = read_debouncer(txn, space, name);
  if (!row && !after) return not_found(space, name);
  // Made again while this is going on: what is there now belongs to the new one.
  if (row && after) return std::nullopt;
  if (row) {
    txn.clear(debouncer_key(space, name));
    note(txn, space, name, ChangeState::kRemoved, now);
    bring_back_held(txn, space, name);
  }
  Bytes prefix = windows_prefix(space, name);
  auto range = range_after(prefix, {.after = after.value_or("")});
  if (!range) return std::unexpected(std::move(range.error()));
  std::size_t count = 0;
  std::optional<std::string> last;
  for_each_name(txn, prefix, *range, [&](const std::string& key) {
    cancel(txn, {std::string(space), std::string(name), key}, now);
    last = key;
    return ++count < kRemovedAtOnce;
  });
  if (count < kRemovedAtOnce) last.reset();
  return last;
}

Result<DebounceKey> key_state(Reader& reader, const Place& place, std::uint64_t store_number) {
  auto debouncer = read_debouncer(reader, place.space, place.name);
  if (!debouncer) return not_found(place.space, place.name);
  DebounceKey state{.key = place.key, .window = look_at(reader, place, debouncer->settings)};
  if (state.window) state.status = KeyStatus::kWaiting;
  auto run = reader.get(run_key(place.prefix()));
  auto id = run ? queue::decode_id(*run) : std::nullopt;
  // The event is the truth; its end is noted here a moment later.
  auto event = id ? queue::load(reader, place.space, *id) : std::nullopt;
  if (!event || event->row.state == queue::Stored::kDead) return state;
  state.event = id;
  state.status = KeyStatus::kWaiting;
  if (event->row.state != queue::Stored::kRunning) return state;
  state.status = KeyStatus::kRunning;
  state.token = Token{event->row.stamp, store_number};
  state.since = event->row.locked_at;
  if (!event->row.locked_until) state.owner = event->row.session;
  return state;
}

Result<std::vector<DebounceKey>> list_keys(Reader& reader, std::string_view space, std::string_view name,
                                           const PageOptions& page, std::uint64_t store_number) {
  if (!read_debouncer(reader, space, name)) return not_found(space, name);
  Bytes prefix = windows_prefix(space, name);
  auto range = range_after(prefix, page);
  if (!range) return std::unexpected(std::move(range.error()));
  std::vector<DebounceKey> keys;
  std::size_t limit = std::min(page.limit, kListedMax);
  if (limit == 0) return keys;
  for_each_name(reader, prefix, *range, [&](const std::string& key) {
    auto state = key_state(reader, {std::string(space), std::string(name), key}, store_number);
    if (state && state->status != KeyStatus::kIdle) keys.push_back(std::move(*state));
    return keys.size() < limit;
  });
  return keys;
}

}  // namespace debounce

std::string_view name_of(Edge edge) {
  switch (edge) {
    case Edge::kTrailing:
      return "trailing";
    case Edge::kLeading:
      return "leading";
    case Edge::kBoth:
      return "both";
  }
  return "unknown";
}

std::string_view name_of(Payload payload) {
  switch (payload) {
    case Payload::kLast:
      return "last";
    case Payload::kFirst:
      return "first";
    case Payload::kAll:
      return "all";
    case Payload::kMerge:
      return "merge";
  }
  return "unknown";
}

std::string_view name_of(KeyStatus status) {
  switch (status) {
    case KeyStatus::kIdle:
      return "idle";
    case KeyStatus::kWaiting:
      return "waiting";
    case KeyStatus::kRunning:
      return "running";
  }
  return "unknown";
}

}  // namespace perdure
