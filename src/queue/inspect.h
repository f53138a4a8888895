// Looking at the queue: parts of whatever transaction they are called in, without system access of the caller's.
#pragma once

#include "perdure/queue.h"

namespace perdure::queue {

/// What tells tokens of this store from those of others: see Token.
std::uint64_t store_number(Reader& reader);

Result<Event> get_event(Reader& reader, std::string_view space, const Uuid& id, WallTime now);
Result<EndedEvent> get_ended(Reader& reader, std::string_view space, const Uuid& id);
Result<EventPage> list_events(Reader& reader, std::string_view space, const EventFilter& filter, WallTime now);
Result<Why> why_not(Reader& reader, std::string_view space, const Uuid& id, WallTime now);
WorkerInfo worker_info(Reader& reader, std::string_view space, std::string_view worker, WallTime now);
std::vector<std::string> list_workers(Reader& reader, std::string_view space, const PageOptions& page);
std::vector<AttemptRecord> list_attempts(Reader& reader, std::string_view space, std::string_view worker);

/// An event without its value, from its row.
Event describe(std::string_view space, const Uuid& id, const struct EventRow& row, const struct Given& given,
               WorkerState worker, std::uint64_t store);

}  // namespace perdure::queue
