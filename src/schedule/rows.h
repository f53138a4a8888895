// The rows of schedules, all of them among perdure's own keys; see docs/internals/key_layout.md.
//
//     ("schedule", space, name)  -> the schedule
//     ("tick", ns, space, name)  -> nothing      the timetable: its next nominal time; none while it is paused
//     ("tick-bell")              -> a counter    rung when the timetable is changed, but not by those who follow it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/schedule.h"
#include "perdure/transaction.h"
#include "perdure/tuple.h"
#include "store/ranges.h"

namespace perdure::schedule {

inline Bytes schedule_prefix(std::string_view space) {
  return tuple::pack_onto(kSystemKeys, "schedule", space);
}
inline Bytes schedule_key(std::string_view space, std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "schedule", space, name);
}
inline Bytes timetable() {
  return tuple::pack_onto(kSystemKeys, "tick");
}
inline Bytes tick_key(WallTime nominal, std::string_view space, std::string_view name) {
  return tuple::pack_onto(kSystemKeys, "tick", nominal.time_since_epoch().count(), space, name);
}
inline Bytes timetable_bell() {
  return tuple::pack_onto(kSystemKeys, "tick-bell");
}

struct ScheduleRow {
  /// As it was checked: the interval as it is usually written, the expression without blanks around it.
  ScheduleSpec spec;
  WallTime created;
  /// Where the series of an interval begins.
  WallTime first;
  std::optional<WallTime> last;
  /// Exactly while there is one, the timetable has it.
  std::optional<WallTime> next;
  std::uint64_t missed_count = 0;
  std::optional<SchedulePause> paused;

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<ScheduleRow> decode(BytesView value);
  ScheduleInfo info(std::string_view space, std::string_view name) const;
};

/// The row; nothing if there is none. Leaves the body if it is damaged. Needs system access.
std::optional<ScheduleRow> read_schedule(Reader& reader, std::string_view space, std::string_view name);

/// Replaces `before`, as it was read, by `after`, and keeps the timetable with it. Needs system access.
void write_schedule(Transaction& txn, std::string_view space, std::string_view name,
                    const std::optional<ScheduleRow>& before, const ScheduleRow& after);

/// A uuid of version 8 that is the same for the same schedule and nominal time: whatever else goes wrong, there is no
/// second event for them.
Uuid event_id(std::string_view space, std::string_view name, WallTime nominal);
/// From nothing to less than `jitter`, the same for the same schedule and nominal time.
Duration jitter_of(std::string_view space, std::string_view name, WallTime nominal, Duration jitter);

}  // namespace perdure::schedule
