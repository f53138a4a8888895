// What must hold between the rows of debouncers, after any commit: looked at by their tests when they end, and by the
// simulation.
//
// A window that has a time stands in the timetable with it, and nothing else does. One that has none is held, or behind
// a run that has not been seen to end. Touches are kept only where a window is. A run is an event that is stored, or
// one whose end has been noted.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "debounce/rows.h"
#include "queue/worker_table.h"
#include "store/system_access.h"

namespace perdure::debounce {

class RowCheck {
 public:
  /// What is wrong, in words.
  static std::vector<std::string> run(Reader& reader) {
    SystemAccess access(reader);
    RowCheck check(reader);
    check.read_told();
    check.read_held();
    check.read_windows();
    check.read_timetable();
    return check.wrong_;
  }

 private:
  explicit RowCheck(Reader& reader) : reader_(reader) {}
  void object(std::string what) { wrong_.push_back(std::move(what)); }

  void read_told() {
    Bytes prefix = queue::told_prefix(kModule);
    for (const Row& row : reader_.get_range(tuple::extensions(prefix))) {
      auto parts = tuple::unpack_after<std::string, std::string, Uuid>(prefix, row.key);
      if (parts)
        told_.insert(to_string(std::get<2>(*parts)));
      else
        object("a note of an end cannot be read");
    }
  }

  void read_held() {
    Bytes prefix = tuple::pack_onto(kSystemKeys, "window-held");
    for (const Row& row : reader_.get_range(tuple::extensions(prefix))) {
      auto parts = tuple::unpack_after<std::string, std::string, std::string>(prefix, row.key);
      if (parts)
        held_.insert(std::get<0>(*parts) + "/" + std::get<1>(*parts) + "/" + std::get<2>(*parts));
      else
        object("an entry of what is held cannot be read");
    }
  }

  struct Key {
    Place place;
    bool window = false, content = false, parked = false;
    std::optional<Uuid> run;
    WindowRow row;
  };

  void read_windows() {
    std::map<std::string, Key> keys;
    Bytes prefix = tuple::pack_onto(kSystemKeys, "window");
    for (const Row& row : reader_.get_range(tuple::extensions(prefix))) {
      tuple::Reader parts(BytesView(row.key).substr(prefix.size()));
      Place place{std::string(parts.next_text()), std::string(parts.next_text()), std::string(parts.next_text())};
      std::string what(parts.next_text());
      if (!parts.ok()) {
        object("a row of a window cannot be read");
        continue;
      }
      Key& key = keys[name(place)];
      key.place = place;
      if (what == "f") {
        auto window = WindowRow::decode(row.value);
        if (!window) object("the window of " + name(place) + " cannot be read");
        key.window = window.has_value();
        if (window) key.row = *window;
      } else if (what == "r") {
        key.run = queue::decode_id(row.value);
      } else if (what == "c") {
        key.content = true;
      } else if (what == "d") {
        key.parked = true;
      } else {
        object("a strange row of " + name(place));
      }
    }
    for (auto& [where, key] : keys) check_key(where, key);
    for (const std::string& where : held_)
      if (!keys[where].window) object("held, and there is no window: " + where);
  }

  void check_key(const std::string& where, const Key& key) {
    bool running = false;
    if (key.run) {
      auto event = queue::load(reader_, key.place.space, *key.run);
      running = event && event->row.state != queue::Stored::kDead;
      if (!running && !told_.contains(to_string(*key.run))) object("the run of " + where + " has ended, unnoticed");
    }
    if (key.parked && !key.run) object("a run that nothing brings back: " + where);
    if (key.content && !key.window) object("touched, and there is no window: " + where);
    if (!key.window) return;
    if (key.row.due) {
      filed_.insert(std::to_string(key.row.due->time_since_epoch().count()) + " " + where);
      if (held_.contains(where)) object("in the timetable, and held: " + where);
    } else if (!key.run && !held_.contains(where)) {
      object("a window that nothing brings back: " + where);
    }
  }

  void read_timetable() {
    Bytes prefix = timetable();
    std::set<std::string> found;
    for (const Row& row : reader_.get_range(tuple::extensions(prefix))) {
      auto parts = tuple::unpack_after<std::int64_t, std::string, std::string, std::string>(prefix, row.key);
      if (parts)
        found.insert(std::to_string(std::get<0>(*parts)) + " " +
                     name({std::get<1>(*parts), std::get<2>(*parts), std::get<3>(*parts)}));
      else
        object("an entry of the timetable cannot be read");
    }
    for (const std::string& entry : filed_)
      if (!found.contains(entry)) object("not in the timetable: " + entry);
    for (const std::string& entry : found)
      if (!filed_.contains(entry)) object("in the timetable, and there is no such window: " + entry);
  }

  static std::string name(const Place& place) { return place.space + "/" + place.name + "/" + place.key; }

  Reader& reader_;
  std::set<std::string> told_, held_, filed_;
  std::vector<std::string> wrong_;
};

}  // namespace perdure::debounce
