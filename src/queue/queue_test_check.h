// What must hold between the rows of all queues, after any commit: looked at by the tests of the queue when they end.
//
// An event has one row, and stands in the index of its state and in no other; nothing stands in an index without its
// event; counters are as many as the rows; chunks, slots, deadlines, unique keys and what is to be forgotten belong to
// events that have such; and the timetable has each worker at the time of its first scheduled event, or before it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "queue/worker_table.h"
#include "session/rows.h"
#include "session/store_clock.h"

namespace perdure::queue {

class RowCheck {
 public:
  /// What is wrong, in words.
  static std::vector<std::string> run(Reader& reader) {
    SystemAccess access(reader);
    RowCheck check;
    check.read_events(reader);
    check.read_held(reader);
    check.read_workers(reader);
    check.read_timetable(reader);
    check.read_forgotten(reader);
    check.compare();
    return check.wrong_;
  }

 private:
  using Name = std::pair<std::string, std::string>;
  using Counts = std::map<std::string, std::int64_t>;
  static std::string ms(DueTime time) { return std::to_string(time.time_since_epoch().count()); }
  static std::string at(const EventRow& row) {
    return std::to_string(row.priority) + "/" + std::to_string(row.stamp.version.number) + "." +
           std::to_string(row.stamp.order);
  }
  void object(std::string what) { wrong_.push_back(std::move(what)); }

  /// The place of an entry in an index, as words: compared with what the row of its event says.
  void expect(const std::string& place) { expected_.insert(place); }
  void find(const std::string& place) {
    if (!found_.insert(place).second) object("twice in an index: " + place);
  }

  void read_events(Reader& reader) {
    Bytes prefix = tuple::pack_onto(kSystemKeys, "event");
    for (const Row& row : reader.get_range(tuple::extensions(prefix))) {
      tuple::Reader key(BytesView(row.key).substr(prefix.size()));
      std::string space(key.next_text());
      Uuid id = key.next_uuid();
      std::string name = space + "/" + to_string(id);
      if (!key.rest().empty()) {
        ++chunks_[name];
      } else if (state_of(row.value) == Stored::kEnded) {
        if (!EndedRow::decode(row.value)) object("cannot be read: " + name);
        expect("forget " + name);
      } else if (auto event = EventRow::decode(row.value)) {
        read_event(space, id, name, *event);
      } else {
        object("cannot be read: " + name);
      }
    }
  }

  void read_event(const std::string& space, const Uuid& id, const std::string& name, const EventRow& row) {
    auto names = row.names();
    std::string worker = space + "/" + std::string(names.worker);
    Counts& counts = counts_[{space, std::string(names.worker)}];
    if (names.apart_bytes > 0)
      expected_chunks_[name] = static_cast<std::int64_t>((names.apart_bytes + kChunkBytes - 1) / kChunkBytes);
    bool running = row.state == Stored::kRunning;
    if (running != row.locked_at.has_value()) object("locked_at of " + name);
    if (!running && (row.locked_until || row.session != SessionId{})) object("a claim that is left on " + name);
    switch (row.state) {
      case Stored::kReady:
        ++counts["ready"];
        expect("ready " + worker + " " + at(row) + " " + name);
        break;
      case Stored::kScheduled: {
        ++counts["scheduled"];
        expect("scheduled " + worker + " " + ms(row.delay_until) + "/" + at(row).substr(2) + " " + name);
        auto& first = first_due_[{space, std::string(names.worker)}];
        first = first ? std::min(*first, row.delay_until) : row.delay_until;
        break;
      }
      case Stored::kRunning:
        ++counts["running"];
        if (row.locked_until)
          expect("deadline " + ms(*row.locked_until) + " " + name);
        else
          claimed_[name] = row.session;
        if (!names.limit_key.empty())
          expect("slot " + worker + " " + std::string(names.limit_key) + " " + to_string(id));
        break;
      case Stored::kDead:
        ++counts["dead"];
        expect("dead " + worker + " " + at(row).substr(2) + " " + name);
        break;
      case Stored::kEnded:
        break;
    }
    if (!names.unique_key.empty() && row.state != Stored::kDead)
      may_hold_.insert(worker + " " + std::string(names.unique_key) + " " + to_string(id));
  }

  /// The claims of sessions, also of those that are over and not swept yet.
  void read_held(Reader& reader) {
    std::set<std::string> noted;
    Bytes prefix = tuple::pack_onto(kSystemKeys, "session", "held");
    for (const Row& row : reader.get_range(tuple::extensions(prefix))) {
      tuple::Reader key(BytesView(row.key).substr(prefix.size()));
      SessionId session{key.next_stamp()};
      if (key.next_text() != kHeldClaims) continue;
      auto held = HeldClaims::decode(row.value);
      if (!held) {
        object("held claims that cannot be read");
        continue;
      }
      for (const Uuid& id : held->ids) {
        std::string name = held->space + "/" + to_string(id);
        if (auto event = claimed_.find(name); event != claimed_.end() && event->second == session) noted.insert(name);
      }
    }
    for (const auto& [name, session] : claimed_)
      if (!noted.contains(name)) object("a claim of a session that has not noted it: " + name);
    for (const Row& row : reader.get_range(tuple::extensions(deadlines()))) {
      auto parts = tuple::unpack_after<std::int64_t, std::string, Uuid>(deadlines(), row.key);
      if (parts)
        find("deadline " + std::to_string(std::get<0>(*parts)) + " " + std::get<1>(*parts) + "/" +
             to_string(std::get<2>(*parts)));
    }
  }

  void read_workers(Reader& reader) {
    Bytes prefix = tuple::pack_onto(kSystemKeys, "queue");
    for (const Row& row : reader.get_range(tuple::extensions(prefix))) {
      tuple::Reader key(BytesView(row.key).substr(prefix.size()));
      std::string space(key.next_text()), worker(key.next_text()), table(key.next_text());
      read_worker_row(space, worker, table, key, row.value);
      if (!key.ok()) object("a key of the worker " + worker + " that cannot be read");
    }
  }

  void read_worker_row(const std::string& space, const std::string& worker, const std::string& table,
                       tuple::Reader& key, const Bytes& value) {
    std::string place = space + "/" + worker + " ";
    auto stamp = [&] {
      Stamp found = key.next_stamp();
      return std::to_string(found.version.number) + "." + std::to_string(found.order);
    };
    auto name = [&] {
      auto id = decode_id(BytesView(value).substr(0, sizeof(Uuid::bytes)));
      return id ? space + "/" + to_string(*id) : std::string("nothing");
    };
    if (table == "r") {
      std::string priority = std::to_string(key.next_int());
      find("ready " + place + priority + "/" + stamp() + " " + name());
    } else if (table == "t") {
      std::string due = std::to_string(key.next_int());
      find("scheduled " + place + due + "/" + stamp() + " " + name());
    } else if (table == "d") {
      find("dead " + place + stamp() + " " + name());
    } else if (table == "k") {
      std::string limit_key(key.next_text());
      if (key.next_text() == "r") {
        find("slot " + place + limit_key + " " + to_string(key.next_uuid()));
      } else {
        std::string priority = std::to_string(key.next_int());
        find("ready " + place + priority + "/" + stamp() + " " + name());
      }
    } else if (table == "u") {
      if (value.size() > sizeof(Uuid::bytes)) return;
      std::string unique(key.next_text());
      auto id = decode_id(value);
      if (!id || !may_hold_.contains(place + unique + " " + to_string(*id)))
        object("a unique key of nobody: " + place + unique);
    } else if (table == "n") {
      counters_[{space, worker}][std::string(key.next_text())] = decode_counter(value);
    } else if (table == "h") {
      heads_[{space, worker}] = DueTime(std::chrono::milliseconds(decode_counter(value)));
    }
  }

  void read_timetable(Reader& reader) {
    std::map<Name, DueTime> entries;
    for (const Row& row : reader.get_range(tuple::extensions(timetable()))) {
      auto parts = tuple::unpack_after<std::int64_t, std::string, std::string>(timetable(), row.key);
      if (!parts) continue;
      auto& [due, space, worker] = *parts;
      if (!entries.emplace(Name{space, worker}, DueTime(std::chrono::milliseconds(due))).second)
        object("twice in the timetable: " + worker);
    }
    if (entries != heads_) object("the timetable is not what the workers say of it");
    // One that had more than a turn takes stands where the time was then, behind those that are due.
    auto acted = std::chrono::ceil<std::chrono::milliseconds>(StoreClock::read(reader));
    for (const auto& [worker, due] : first_due_)
      if (!heads_.contains(worker) || heads_[worker] > std::max(*due, acted))
        object("nobody looks for what is due of " + worker.second);
  }

  void read_forgotten(Reader& reader) {
    for (const Row& row : reader.get_range(tuple::extensions(forget_prefix()))) {
      if (row.value.empty() || static_cast<Forget>(row.value[0]) != Forget::kEnded) continue;
      auto ended = HeldClaims::decode(BytesView(row.value).substr(1));
      if (!ended) continue;
      for (const Uuid& id : ended->ids) find("forget " + ended->space + "/" + to_string(id));
    }
  }

  void compare() {
    for (const std::string& place : expected_)
      if (!found_.contains(place)) object("missing: " + place);
    for (const std::string& place : found_)
      if (!expected_.contains(place)) object("left over: " + place);
    if (chunks_ != expected_chunks_) object("chunks of values are missing or left over");
    for (auto& [worker, counters] : counters_) {
      Counts& counts = counts_[worker];
      Counts counted = {{"ready", counters["in"] - counters["out"]},
                        {"scheduled", counters["scheduled"]},
                        {"running", counters["running"]},
                        {"dead", counters["dead"]}};
      for (const auto& [state, count] : counted)
        if (counts[state] != count)
          object(worker.second + " counts " + std::to_string(count) + " " + state + ", and has " +
                 std::to_string(counts[state]));
    }
    for (const auto& [worker, counts] : counts_)
      if (!counters_.contains(worker)) object("no counters of " + worker.second);
  }

  std::vector<std::string> wrong_;
  std::set<std::string> expected_, found_, may_hold_;
  std::map<std::string, std::int64_t> chunks_, expected_chunks_;
  std::map<std::string, SessionId> claimed_;
  std::map<Name, Counts> counts_, counters_;
  std::map<Name, DueTime> heads_;
  std::map<Name, std::optional<DueTime>> first_due_;
};

}  // namespace perdure::queue
