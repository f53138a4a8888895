// Time zones: what the clock on the wall shows.
//
// A zone is a list of times at which the clocks of a place are changed, read from the machine's time zone database, and
// pure from then on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"
#include "runtime/mutex.h"
#include "schedule/tzif.h"

namespace perdure::schedule {

/// Where Linux distributions have it.
inline constexpr std::string_view kZoneinfo = "/usr/share/zoneinfo";

/// Immutable.
class Zone {
 public:
  /// UTC itself, which needs no database.
  Zone() : Zone("UTC", {{kBeginningOfTime, 0}}) {}
  Zone(std::string name, std::vector<Transition> transitions)
      : name_(std::move(name)), transitions_(std::move(transitions)) {}
  /// Reads `directory`/`name`; "UTC" and "Etc/UTC" need no file. Blocks on the disk.
  /// Errors: kInvalidArgument if there is no such zone; kUnavailable if there is no database; kCorrupt if the file is
  /// damaged.
  static Result<Zone> load(std::string_view name, const std::string& directory = std::string(kZoneinfo));

  const std::string& name() const { return name_; }

  /// A time in which the clocks are not changed: [begin, end) in UTC.
  struct Segment {
    Seconds begin, end, offset;
  };
  Segment segment(Seconds utc) const;
  Seconds local(Seconds utc) const { return utc + segment(utc).offset; }
  /// The latest that the clock on the wall has shown up to `utc`: more than it shows at `utc`, if it was set back.
  Seconds latest_local(Seconds utc) const;
  /// When the clock on the wall first shows `local`, or jumps past it. Grows with `local`.
  Seconds first_shown(Seconds local) const;

 private:
  std::string name_;
  /// At least one; the first is at kBeginningOfTime.
  std::vector<Transition> transitions_;
};

/// The zones of one process. A file that has been replaced, by an update of the database, is read again; one that is
/// gone or damaged is used as it was. Thread-safe.
class Zones {
 public:
  explicit Zones(std::string directory = std::string(kZoneinfo)) : directory_(std::move(directory)) {}
  /// Errors: as Zone::load. Blocks on the disk.
  Result<std::shared_ptr<const Zone>> find(std::string_view name) PERDURE_EXCLUDES(mutex_);

 private:
  /// What tells one version of a file from the next.
  struct Mark {
    std::int64_t modified_ns = 0;
    std::uint64_t inode = 0;
    bool operator==(const Mark&) const = default;
  };
  struct Known {
    Mark mark;
    std::shared_ptr<const Zone> zone;
  };
  Mark mark_of(std::string_view name) const;

  const std::string directory_;
  Mutex mutex_;
  /// Bounded by the files there are.
  std::map<std::string, Known, std::less<>> known_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::schedule
