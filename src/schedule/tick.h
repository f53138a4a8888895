// Firing: schedules whose next time has come emit their events and move on.
//
// A turn reads the timetable from its beginning. For each schedule that is due, one transaction checks that its row
// says the same as the timetable, emits the events, and writes the next time to both. So of several nodes that fire the
// same schedule only one commits, and a crash leaves it fired and moved on, or neither.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/schedule.h"
#include "perdure/transaction.h"
#include "schedule/rows.h"
#include "schedule/timing.h"

namespace perdure::schedule {

/// The timing of a schedule. Errors: as Zone::load; kCorrupt for one that cannot be read.
Result<Timing> timing_of(const ScheduleRow& row, Zones& zones);

/// The one place where schedules emit: through the same door as everybody else, with the same defaults. `nominal` is
/// nothing for an event outside of the series, which has the id `fresh`.
Emitted emit_event(Transaction& txn, std::string_view space, std::string_view name, const ScheduleSpec& spec,
                   std::optional<WallTime> nominal, const Uuid& fresh, WallTime now);

/// For the feed of changes: so many times of it became events.
void note_fired(Transaction& txn, std::string_view space, std::string_view name, std::size_t times, WallTime now);

/// Something that is worth telling people, once the turn has committed.
struct TickNote {
  std::string space;
  std::string name;
  std::uint64_t missed = 0;
  /// Why it could not be fired here.
  std::string problem = {};
};

struct TickTurn {
  std::optional<WallTime> next;
  bool more = false;
  bool acted = false;
  std::vector<TickNote> notes;
};

/// One turn: a bounded number of schedules, and of events of each. Needs system access.
TickTurn tick(Transaction& txn, Zones& zones, WallTime now);

}  // namespace perdure::schedule
