// Whether the rows of the queue fit together: each event is in the index of its state and in no other, every entry of
// an index, slot, unique key, deadline and line of the timetable has its event, and counts are those of the rows.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "queue/rows.h"

namespace perdure::sim::queues {

/// All that is stored, as the rows have it.
struct StoredRows {
  std::map<Uuid, queue::EventRow> events;
  std::map<Uuid, queue::EndedRow> ended;
  /// Values that are too large for the rows of their events.
  std::map<Uuid, Bytes> chunks;

  Value value_of(const Uuid& id) const;
};

using Wrong = std::function<void(const std::string& what)>;

/// Reads everything, and says what is wrong; for one space. Gives itself system access.
StoredRows check_rows(Reader& reader, const std::string& space, const std::vector<std::string>& workers,
                      const Wrong& wrong);

}  // namespace perdure::sim::queues
