// What must hold between the rows of schedules and those of their events, in every state that is committed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "queue/inspect.h"
#include "queue/worker_table.h"
#include "schedule/rows.h"
#include "schedule/tick.h"
#include "store/system_access.h"

namespace perdure::schedule {

/// Q4, each nominal time once. Holds for schedules whose timing was set once and which were never paused nor run by
/// hand, each with a worker of its own that nobody serves.
class ScheduleCheck {
 public:
  static std::vector<std::string> run(Reader& reader, const std::string& space = "default") {
    SystemAccess access(reader);
    ScheduleCheck check(reader, space);
    for (const Row& row : reader.get_range(tuple::extensions(schedule_prefix(space)))) check.look_at(row);
    std::set<Bytes> timetable_keys;
    for (const Row& row : reader.get_range(tuple::extensions(timetable()))) timetable_keys.insert(row.key);
    if (timetable_keys != check.ticks_) check.wrong_.push_back("the timetable is not that of the schedules");
    return check.wrong_;
  }

 private:
  ScheduleCheck(Reader& reader, std::string space) : reader_(reader), space_(std::move(space)) {}

  void look_at(const Row& stored) {
    std::string name = std::get<0>(*tuple::unpack_after<std::string>(schedule_prefix(space_), stored.key));
    auto row = ScheduleRow::decode(stored.value);
    if (!row) return wrong(name, "cannot be read");
    if (row->next) ticks_.insert(tick_key(*row->next, space_, name));
    auto timing = timing_of(*row, zones_);
    std::uint64_t nominal = 0, fired = 0;
    std::optional<WallTime> last;
    auto time = row->spec.every.empty() ? timing->next(row->created) : row->first;
    for (; time && row->next && *time < *row->next; time = timing->next(*time)) {
      ++nominal;
      if (!reader_.get(queue::event_key(space_, event_id(space_, name, *time)))) continue;
      ++fired;
      last = time;
    }
    if (time != row->next) wrong(name, "its next time is not one of its series");
    if (last != row->last) wrong(name, "its last time is not that of its last event");
    if (fired + row->missed_count != nominal)
      wrong(name, std::to_string(nominal) + " times have come, " + std::to_string(fired) + " became events and " +
                      std::to_string(row->missed_count) + " are counted as missed");
    if (row->spec.missed == Missed::kAll && row->missed_count > 0)
      wrong(name, "it missed what it should catch up with");
    std::uint64_t stored_events = queue::worker_info(reader_, space_, row->spec.worker, {}).total;
    if (stored_events != fired)
      wrong(name, "its worker has " + std::to_string(stored_events) + " events, not " + std::to_string(fired));
  }
  void wrong(const std::string& name, const std::string& what) { wrong_.push_back(name + ": " + what); }

  Reader& reader_;
  const std::string space_;
  Zones zones_;
  std::set<Bytes> ticks_;
  std::vector<std::string> wrong_;
};

}  // namespace perdure::schedule
