#include "debounce/rows.h"

#include "base/endian.h"
#include "queue/worker_table.h"
#include "store/system_access.h"

namespace perdure::debounce {
namespace {

constexpr int kFormat = 1;
constexpr std::int64_t kNone = INT64_MIN;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, std::string(what) + " of a debouncer cannot be read; run verify");
}

std::int64_t ns_of(WallTime time) {
  return time.time_since_epoch().count();
}

WallTime wall_time(std::int64_t ns) {
  return WallTime(Duration(ns));
}

std::int64_t or_none(const std::optional<Duration>& duration) {
  return duration ? duration->count() : kNone;
}

std::optional<Duration> duration_or_none(std::int64_t count) {
  return count == kNone ? std::nullopt : std::optional(Duration(count));
}

}  // namespace

Bytes DebouncerRow::encode() const {
  const RetryPolicy& retry = settings.back_off;
  Bytes out = tuple::pack(kFormat, settings.quiet.count(), or_none(settings.max_wait), or_none(settings.window),
                          settings.max_count, static_cast<int>(settings.edge), static_cast<int>(settings.payload),
                          settings.worker, retry.delay.count(), retry.factor, retry.max_delay.count(),
                          retry.jitter.count(), retry.max, retry.then == RetryPolicy::Then::kDrop, paused.has_value());
  if (paused) tuple::append(out, paused->by, paused->reason, ns_of(paused->since));
  return out;
}

Result<DebouncerRow> DebouncerRow::decode(BytesView value) {
  tuple::Reader reader(value);
  DebouncerRow row;
  DebounceSettings& settings = row.settings;
  int format = reader.next<int>();
  settings.quiet = Duration(reader.next<std::int64_t>());
  settings.max_wait = duration_or_none(reader.next<std::int64_t>());
  settings.window = duration_or_none(reader.next<std::int64_t>());
  settings.max_count = reader.next<std::uint64_t>();
  int edge = reader.next<int>(), payload = reader.next<int>();
  settings.edge = static_cast<Edge>(edge);
  settings.payload = static_cast<Payload>(payload);
  settings.worker = reader.next_text();
  settings.back_off.delay = Duration(reader.next<std::int64_t>());
  settings.back_off.factor = reader.next<double>();
  settings.back_off.max_delay = Duration(reader.next<std::int64_t>());
  settings.back_off.jitter = Duration(reader.next<std::int64_t>());
  settings.back_off.max = reader.next<int>();
  settings.back_off.then = reader.next<bool>() ? RetryPolicy::Then::kDrop : RetryPolicy::Then::kDead;
  if (reader.next<bool>()) {
    row.paused.emplace();
    row.paused->by = reader.next_text();
    row.paused->reason = reader.next_text();
    row.paused->since = wall_time(reader.next<std::int64_t>());
  }
  bool good = reader.ok() && reader.rest().empty() && format == kFormat && edge >= 0 &&
              edge <= static_cast<int>(Edge::kBoth) && payload >= 0 && payload <= static_cast<int>(Payload::kMerge);
  if (!good) return damaged("the row");
  return row;
}

DebouncerInfo DebouncerRow::info(std::string_view space, std::string_view name) const {
  return {std::string(space), std::string(name), settings, paused};
}

Bytes WindowRow::encode() const {
  return tuple::pack(kFormat, ns_of(first), due ? static_cast<std::int64_t>(due->time_since_epoch().count()) : kNone,
                     led);
}

Result<WindowRow> WindowRow::decode(BytesView value) {
  tuple::Reader reader(value);
  WindowRow row;
  int format = reader.next<int>();
  row.first = wall_time(reader.next<std::int64_t>());
  if (auto ms = reader.next<std::int64_t>(); ms != kNone) row.due = DueTime(std::chrono::milliseconds(ms));
  row.led = reader.next<bool>();
  if (!reader.ok() || !reader.rest().empty() || format != kFormat) return damaged("a window");
  return row;
}

Bytes LatestRow::encode() const {
  Bytes out(sizeof(std::int64_t), '\0');
  store_little(out.data(), static_cast<std::uint64_t>(ns_of(time)));
  return out.append(payload);
}

Result<LatestRow> LatestRow::decode(BytesView value) {
  if (value.size() < sizeof(std::int64_t)) return damaged("a touch");
  auto ns = static_cast<std::int64_t>(load_little<std::uint64_t>(value.data()));
  return LatestRow{wall_time(ns), Bytes(value.substr(sizeof ns))};
}

std::optional<DebouncerRow> read_debouncer(Reader& reader, std::string_view space, std::string_view name) {
  auto value = reader.get(debouncer_key(space, name));
  if (!value) return std::nullopt;
  return queue::readable(reader, DebouncerRow::decode(*value));
}

std::optional<WindowRow> read_window(Reader& reader, BytesView prefix) {
  auto value = reader.get(window_key(prefix));
  auto row = value ? WindowRow::decode(*value) : damaged("a window");
  return row ? std::optional(*row) : std::nullopt;
}

}  // namespace perdure::debounce
