// The rows of debouncers, all of them among perdure's own keys; see docs/internals/key_layout.md.
//
//     ("debounce", space, name)                 -> the debouncer
//     ("window", space, name, key, "f")         -> its window: read by every touch, written when it is opened or filed
//     ("window", space, name, key, "c", "l")    -> the latest touch, and its payload if that is the one to keep
//     ("window", space, name, key, "c", "n")    -> a counter of touches
//     ("window", space, name, key, "c", "v")    -> the payload that is the first, or merged from all
//     ("window", space, name, key, "c", "b")    -> a counter of the bytes of payloads, if all are kept
//     ("window", space, name, key, "c", "p", s) -> one payload, if all are kept
//     ("window", space, name, key, "r")         -> the event that the last window became, until it has ended
//     ("window", space, name, key, "d", id)     -> a run that was redriven, and waits for the one under way to end
//     ("window-due", ms, space, name, key)      -> nothing; the timetable
//     ("window-held", space, name, key)         -> nothing; a window that fell due while its debouncer was paused
//     ("unpaused", space, name)                 -> nothing; windows of it are to be filed again
//
// A window that has a time in its row stands in the timetable with it. One that has none is held, or is behind a run,
// whose end brings it back. Touches only write what is below "c", so that they do not meet; but for the first.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perdure/debounce.h"
#include "perdure/transaction.h"
#include "perdure/tuple.h"
#include "queue/rows.h"
#include "store/ranges.h"

namespace perdure::debounce {

/// Of the events that are runs. Their modifier is the debouncer's name, a slash and the key.
inline constexpr std::string_view kModule = "DEBOUNCE";

inline Bytes debouncers_prefix(std::string_view space) {
  return tuple::pack_onto(kSystemKeys, "debounce", space);
}
inline Bytes debouncer_key(std::string_view space, std::string_view name) {
  return tuple::pack_onto(debouncers_prefix(space), name);
}
inline Bytes windows_prefix(std::string_view space, std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "window", space, name);
}
inline Bytes timetable() {
  return tuple::pack_onto(kSystemKeys, "window-due");
}
inline Bytes held_prefix(std::string_view space, std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "window-held", space, name);
}
inline Bytes unpaused_prefix() {
  return tuple::pack_onto(kSystemKeys, "unpaused");
}
/// Rung when a window may be due earlier than all before, and by the end of a run.
inline Bytes bell() {
  return queue::told_bell();
}

/// A key of a debouncer, and where its rows are.
struct Place {
  std::string space;
  std::string name;
  std::string key;

  Bytes prefix() const { return tuple::pack_onto(windows_prefix(space, name), key); }
  Bytes due(DueTime time) const {
    return tuple::pack_onto(timetable(), static_cast<std::int64_t>(time.time_since_epoch().count()), space, name, key);
  }
  Bytes held() const { return tuple::pack_onto(held_prefix(space, name), key); }
};

inline Bytes window_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "f");
}
inline Bytes run_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "r");
}
inline Bytes parked_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "d");
}
inline Bytes content_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "c");
}
inline Bytes latest_key(BytesView content) {
  return tuple::pack_onto(content, "l");
}
inline Bytes count_key(BytesView content) {
  return tuple::pack_onto(content, "n");
}
inline Bytes payload_key(BytesView content) {
  return tuple::pack_onto(content, "v");
}
inline Bytes bytes_key(BytesView content) {
  return tuple::pack_onto(content, "b");
}
inline Bytes payloads_key(BytesView content) {
  return tuple::pack_onto(content, "p");
}

struct DebouncerRow {
  DebounceSettings settings;
  std::optional<SchedulePause> paused;

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<DebouncerRow> decode(BytesView value);
  DebouncerInfo info(std::string_view space, std::string_view name) const;
};

struct WindowRow {
  WallTime first;
  /// When the timetable has it; nothing if it is held, or behind a run.
  std::optional<DueTime> due = {};
  /// Its first touch has been run; what it has are later ones.
  bool led = false;

  Bytes encode() const;
  static Result<WindowRow> decode(BytesView value);
};

/// The latest touch: when it came, and its payload, encoded, if that is kept here.
struct LatestRow {
  WallTime time;
  Bytes payload;

  Bytes encode() const;
  static Result<LatestRow> decode(BytesView value);
};

/// These need system access. A debouncer whose row is damaged leaves the body; a window whose row is damaged is none,
/// and the next touch writes it anew.
std::optional<DebouncerRow> read_debouncer(Reader& reader, std::string_view space, std::string_view name);
std::optional<WindowRow> read_window(Reader& reader, BytesView prefix);

}  // namespace perdure::debounce
