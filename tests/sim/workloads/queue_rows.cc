#include "queue_rows.h"

#include <algorithm>
#include <set>

#include "queue/worker_table.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure::sim::queues {
namespace {

using namespace perdure::queue;

std::int64_t ms_of(DueTime time) {
  return time.time_since_epoch().count();
}

/// The tuple of a key behind its prefix.
struct Key {
  Key(const Bytes& prefix, const Row& row) : reader(row.key) { reader.skip_prefix(prefix); }
  tuple::Reader reader;
};

/// Checks the rows of one worker against the events.
class WorkerRows {
 public:
  WorkerRows(Reader& reader, const std::string& space, const std::string& worker, const StoredRows& rows,
             const Wrong& wrong)
      : reader_(reader),
        space_(space),
        worker_(worker),
        prefix_(worker_prefix(space, worker)),
        rows_(rows),
        wrong_([&wrong, worker](const std::string& what) { wrong("worker " + worker + ": " + what); }) {}

  void check() {
    read_ready();
    read_scheduled();
    read_dead();
    read_limit_keys();
    read_unique_keys();
    check_timetable();
    for (const auto& [id, row] : rows_.events)
      if (row.names().worker == worker_) check_event(id, row);
    check_counts();
  }

 private:
  using Entries = std::map<Uuid, int>;

  std::vector<Row> range(const Bytes& prefix) { return reader_.get_range(tuple::extensions(prefix)); }

  /// The event that an entry belongs to, if it is in that state; the caller has to compare the rest.
  const EventRow* event_of(const std::optional<Uuid>& id, Stored state, const std::string& where) {
    if (!id) return wrong_("an entry of the " + where + " cannot be read"), nullptr;
    auto found = rows_.events.find(*id);
    if (found == rows_.events.end())
      return wrong_("there is an entry in the " + where + " for " + to_string(*id) + ", which is not stored"), nullptr;
    if (found->second.names().worker != worker_ || found->second.state != state)
      return wrong_(to_string(*id) + " stands in the " + where + ", and is in another state"), nullptr;
    return &found->second;
  }

  void read_ready_entries(const Bytes& prefix, const std::string& where, Entries& entries) {
    for (const Row& row : range(prefix)) {
      auto entry = ReadyEntry::decode(row.value);
      Key key(prefix, row);
      auto priority = key.reader.next_int();
      Stamp stamp = key.reader.next_stamp();
      const EventRow* event = event_of(entry ? std::optional(entry->id) : std::nullopt, Stored::kReady, where);
      if (!event) continue;
      if (event->priority != priority || event->stamp != stamp)
        wrong_(to_string(entry->id) + " has an entry in the " + where + " that is not its own");
      ++entries[entry->id];
    }
  }
  void read_ready() { read_ready_entries(ready_key(prefix_), "ready index", ready_); }

  void read_scheduled() {
    Bytes prefix = scheduled_key(prefix_);
    for (const Row& row : range(prefix)) {
      Key key(prefix, row);
      auto ms = key.reader.next_int();
      Stamp stamp = key.reader.next_stamp();
      first_due_ = std::min(first_due_, ms);
      auto id = decode_id(row.value);
      const EventRow* event = event_of(id, Stored::kScheduled, "due index");
      if (!event) continue;
      if (ms_of(event->delay_until) != ms || event->stamp != stamp)
        wrong_(to_string(*id) + " has an entry in the due index that is not its own");
      ++scheduled_[*id];
    }
  }

  void read_dead() {
    Bytes prefix = dead_key(prefix_);
    for (const Row& row : range(prefix)) {
      Key key(prefix, row);
      Stamp stamp = key.reader.next_stamp();
      auto id = decode_id(row.value);
      const EventRow* event = event_of(id, Stored::kDead, "dead letters");
      if (!event) continue;
      if (event->stamp != stamp) wrong_(to_string(*id) + " has an entry among the dead that is not its own");
      ++dead_[*id];
    }
  }

  /// The keys themselves are found by their rows.
  void read_limit_keys() {
    Bytes prefix = tuple::pack_onto(prefix_, "k");
    std::set<std::string> keys;
    for (const Row& row : range(prefix)) keys.insert(std::string(Key(prefix, row).reader.next_text()));
    auto limit = static_cast<std::size_t>(read_settings(reader_, prefix_).limit_per_key);
    for (const std::string& key : keys) {
      std::size_t taken = 0;
      Bytes slots = slots_key(prefix_, key);
      for (const Row& row : range(slots)) {
        Uuid id = Key(slots, row).reader.next_uuid();
        const EventRow* event = event_of(id, Stored::kRunning, "slots of " + key);
        if (event && event->names().limit_key != key) wrong_(to_string(id) + " has a slot of another limit key");
        ++slots_[id];
        ++taken;
      }
      if (taken > limit)
        wrong_("of the limit key " + key + " there are " + std::to_string(taken) + " running, and only " +
               std::to_string(limit) + " may");
      // Whoever is ready takes a slot, and wakes the next when it leaves it.
      for (const auto& [id, count] : ready_) taken += rows_.events.at(id).names().limit_key == key ? 1 : 0;
      std::size_t before = ready_.size();
      read_ready_entries(waiting_key(prefix_, key), "queue for " + key, ready_);
      if (taken == 0 && ready_.size() > before)
        wrong_("events wait for a slot of " + key + ", and nobody will leave one");
    }
  }

  void read_unique_keys() {
    Bytes prefix = tuple::pack_onto(prefix_, "u");
    for (const Row& row : range(prefix)) {
      std::string key(Key(prefix, row).reader.next_text());
      if (row.value.size() != sizeof(Uuid::bytes)) continue;  // It has an end of its own.
      auto event = rows_.events.find(*decode_id(row.value));
      if (event == rows_.events.end() || event->second.state == Stored::kDead)
        wrong_("the unique key " + key + " is taken by an event that has ended");
      else if (event->second.names().unique_key != key)
        wrong_("the unique key " + key + " is taken by an event with another");
      else
        unique_.insert(event->first);
    }
  }

  void check_timetable() {
    auto head = reader_.get(head_key(prefix_));
    if (first_due_ != INT64_MAX && !head) return wrong_("something is scheduled, and nobody looks when it is due");
    if (!head) return;
    if (decode_counter(head) > first_due_) wrong_("something is due before anybody looks");
    if (!reader_.get(tuple::pack_onto(timetable(), decode_counter(head), space_, worker_)))
      wrong_("it does not stand in the timetable");
  }

  void check_event(const Uuid& id, const EventRow& row) {
    auto in = [&](const Entries& entries) {
      auto found = entries.find(id);
      return found == entries.end() ? 0 : found->second;
    };
    const Entries* own = row.state == Stored::kReady       ? &ready_
                         : row.state == Stored::kScheduled ? &scheduled_
                         : row.state == Stored::kDead      ? &dead_
                                                           : nullptr;
    int others = in(ready_) + in(scheduled_) + in(dead_) - (own ? in(*own) : 0);
    if (own && in(*own) != 1)
      wrong_(to_string(id) + " is in the index of its state " + std::to_string(in(*own)) + " times");
    if (others != 0) wrong_(to_string(id) + " is in the index of another state");
    bool running = row.state == Stored::kRunning;
    counted_running_ += running ? 1 : 0;
    if (running && !row.names().limit_key.empty() && in(slots_) != 1)
      wrong_(to_string(id) + " is running without a slot of its limit key");
    if (running != row.locked_at.has_value()) wrong_(to_string(id) + " is claimed, or is running, but not both");
  }

  void check_counts() {
    auto counter = [&](Counter which) { return decode_counter(reader_.get(counter_key(prefix_, which))); };
    auto same = [&](std::string_view what, std::int64_t counted, std::size_t there) {
      if (counted != static_cast<std::int64_t>(there))
        wrong_(std::to_string(there) + " events are " + std::string(what) + ", and counted as " +
               std::to_string(counted));
    };
    same("ready", counter(Counter::kIn) - counter(Counter::kOut), ready_.size());
    same("scheduled", counter(Counter::kScheduled), scheduled_.size());
    same("running", counter(Counter::kRunning), counted_running_);
    same("dead", counter(Counter::kDead), dead_.size());
  }

  Reader& reader_;
  const std::string& space_;
  const std::string& worker_;
  const Bytes prefix_;
  const StoredRows& rows_;
  const Wrong wrong_;
  Entries ready_, scheduled_, dead_, slots_;
  std::set<Uuid> unique_;
  std::int64_t first_due_ = INT64_MAX;
  std::size_t counted_running_ = 0;
};

void read_events(Reader& reader, const std::string& space, StoredRows& rows, const Wrong& wrong) {
  Bytes prefix = tuple::pack_onto(kSystemKeys, "event", space);
  for (const Row& row : reader.get_range(tuple::extensions(prefix))) {
    Key key(prefix, row);
    Uuid id = key.reader.next_uuid();
    if (!key.reader.at_end()) {
      rows.chunks[id].append(row.value);
      if (!rows.events.contains(id)) wrong("there is a chunk of " + to_string(id) + ", which is not stored");
      continue;
    }
    if (state_of(row.value) == Stored::kEnded) {
      if (auto ended = EndedRow::decode(row.value)) rows.ended.emplace(id, std::move(*ended));
    } else if (auto event = EventRow::decode(row.value)) {
      rows.events.emplace(id, std::move(*event));
    } else {
      wrong("the row of " + to_string(id) + " cannot be read");
    }
  }
}

/// Claims are known to whoever has to end them: the sweepers of their sessions, or those who look at deadlines.
void check_claims(Reader& reader, const std::string& space, const StoredRows& rows, const Wrong& wrong) {
  std::set<std::pair<Uuid, std::int64_t>> due;
  for (const Row& row : reader.get_range(tuple::extensions(deadlines()))) {
    Key key(deadlines(), row);
    auto ms = key.reader.next_int();
    key.reader.next_text();
    Uuid id = key.reader.next_uuid();
    auto event = rows.events.find(id);
    if (event == rows.events.end() || !event->second.locked_until || ms_of(*event->second.locked_until) != ms)
      wrong("there is a deadline for the claim of " + to_string(id) + ", which is not so");
    due.emplace(id, ms);
  }
  std::map<Stamp, std::set<Uuid>> held;
  for (const auto& [id, row] : rows.events) {
    if (row.state != Stored::kRunning) continue;
    if (row.locked_until) {
      if (!due.contains({id, ms_of(*row.locked_until)}))
        wrong("nobody looks when the claim of " + to_string(id) + " ends");
      continue;
    }
    auto [claims, is_new] = held.try_emplace(row.session.stamp);
    if (is_new)
      for (const Row& noted : reader.get_range(tuple::extensions(session::held_key(row.session, kHeldClaims))))
        if (auto ids = HeldClaims::decode(noted.value); ids && ids->space == space)
          claims->second.insert(ids->ids.begin(), ids->ids.end());
    if (!claims->second.contains(id)) wrong("the claim of " + to_string(id) + " is not known to its session");
  }
}

/// What has ended is forgotten at some time.
void check_forgotten(Reader& reader, const StoredRows& rows, const Wrong& wrong) {
  std::set<Uuid> forgotten;
  for (const Row& row : reader.get_range(tuple::extensions(forget_prefix()))) {
    if (row.value.empty() || row.value[0] != static_cast<char>(Forget::kEnded)) continue;
    if (auto ids = HeldClaims::decode(BytesView(row.value).substr(1)))
      forgotten.insert(ids->ids.begin(), ids->ids.end());
  }
  for (const auto& [id, row] : rows.ended)
    if (!forgotten.contains(id)) wrong("how " + to_string(id) + " ended is remembered for ever");
}

}  // namespace

Value StoredRows::value_of(const Uuid& id) const {
  auto given = queue::Given::decode(events.at(id).given());
  auto large = chunks.find(id);
  if (!given) return {};
  return Value::decode(large == chunks.end() ? given->value : large->second).value_or(Value());
}

StoredRows check_rows(Reader& reader, const std::string& space, const std::vector<std::string>& workers,
                      const Wrong& wrong) {
  SystemAccess access(reader);
  StoredRows rows;
  read_events(reader, space, rows, wrong);
  for (const auto& [id, row] : rows.events)
    if (std::ranges::find(workers, row.names().worker) == workers.end())
      wrong(to_string(id) + " is of a worker that does not exist");
  for (const std::string& worker : workers) WorkerRows(reader, space, worker, rows, wrong).check();
  check_claims(reader, space, rows, wrong);
  check_forgotten(reader, rows, wrong);
  return rows;
}

}  // namespace perdure::sim::queues
