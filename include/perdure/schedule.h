// Schedules: events that come by the clock.
//
// A schedule emits an event to a worker of the queue again and again, by an interval or by a cron expression:
//
//     auto schedules = Schedules::open(store);
//     schedules->set("report", {.cron = "30 6 * * mon-fri", .timezone = "Europe/Berlin", .worker = "mail"});
//     schedules->set("sweep", {.every = "Every 12hrs", .worker = "cleaner"});
//
// The times at which it should do so are its nominal times. They depend on the schedule alone and never on when
// something ran, so that nothing drifts. Each becomes one event, whichever nodes are there and however they die: the
// transaction that emits the event also moves the schedule on to its next time. Nothing polls: a node sleeps until the
// first time of all schedules has come, or until one is changed.
//
// Intervals are `Daily`, `Weekly`, `Fortnightly`, `Every 12hrs`, `Every 1hr`, `Every 1min`, in letters of any case, and
// numbers with a unit, as in `90s`, `15m`, `2h`, `3d`. They are elapsed time: the first is due when the schedule is
// set, and the others come at whole intervals after it, whatever clocks on walls do.
//
// Cron expressions have five fields, minute, hour, day of month, month and day of week, with lists, ranges, steps and
// names, or are one of `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`. If both day fields are restricted, a
// day that fits either of them fits. When clocks are changed, a time of day fires once: when the clock on the wall
// first shows it, or jumps past it. An hour that is given as `*` or with a step `*/n` means elapsed time instead: what
// fits in an hour that comes twice fires twice, and what would be in one that is skipped does not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/error.h"
#include "perdure/event.h"
#include "perdure/export.h"
#include "perdure/session.h"
#include "perdure/store.h"
#include "perdure/time.h"
#include "perdure/value.h"

namespace perdure {

/// What becomes of nominal times that came while nobody was there to see them.
enum class Missed {
  kOne,   ///< One event for all of them, with the latest nominal time.
  kAll,   ///< One each, in order; of more than 10,000 the oldest are given up.
  kSkip,  ///< None for those that are more than a minute late.
};
PERDURE_EXPORT std::string_view name_of(Missed missed);

struct ScheduleSpec {
  /// One of the two.
  std::string every = {};
  std::string cron = {};
  /// As in the IANA database; for cron expressions, and read from the machine's time zone database.
  std::string timezone = "UTC";
  /// Who gets the events.
  std::string worker = {};
  Value value = {};
  Missed missed = Missed::kOne;
  /// Events become ready up to this much later, each by a delay that is drawn from its schedule and nominal time; at
  /// most a day.
  Duration jitter = Duration::zero();
  bool operator==(const ScheduleSpec&) const = default;
};

inline constexpr std::size_t kScheduleValueBytesMax = 65'536;

/// Who pauses it, and why: 1,000 bytes each.
struct PauseOptions {
  std::string by = {};
  std::string reason = {};
};

struct SchedulePause {
  std::string by;
  std::string reason;
  WallTime since;
};

struct ScheduleInfo {
  std::string space;
  std::string name;
  ScheduleSpec spec;
  WallTime created;
  /// The nominal time of the last event, and of the one to come: nothing before the first, and while it is paused.
  std::optional<WallTime> last;
  std::optional<WallTime> next;
  /// Nominal times that became no event of their own because nobody was there; what passes during a pause is not
  /// counted. Of more than a million at one time, so many are counted.
  std::uint64_t missed_count = 0;
  std::optional<SchedulePause> paused;
};

struct SchedulesOptions {
  std::string space = "default";
  /// Off: this node changes and shows schedules, and leaves it to others to fire them, until `release`.
  bool trigger = true;
  /// Where the time zone database is.
  std::string zoneinfo = "/usr/share/zoneinfo";
};

class SchedulesImpl;

/// The share of this process in the schedules of a store. Copies share it; thread-safe. It keeps the store open. While
/// there is one, this node fires schedules, those of all spaces; when the last copy goes, what it is firing just then
/// is waited for.
///
/// Names of spaces, schedules and workers: 1 to 64 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit.
///
/// Calls that take a Transaction or Reader are parts of it, and act when it commits; what they find wrong makes it
/// fail. The others are transactions of their own, and block: they are refused with kInvalidArgument in callbacks of
/// the store. `set`, `unpause` and the firing read time zone files, when they first need one and when it was replaced:
/// in a transaction of yours, let that be one of Body::kOptimistic.
class PERDURE_EXPORT Schedules {
 public:
  /// Asks the store nothing, and so never blocks. Errors: kInvalidArgument (the options), kClosed.
  [[nodiscard]] static Result<Schedules> open(Store store, SchedulesOptions options = {});

  /// The same node in another space.
  [[nodiscard]] Schedules in(std::string space) const;
  const std::string& space() const { return space_; }

  /// Makes or replaces a schedule. One whose timing (interval, cron expression, time zone) stays as it was goes on with
  /// its last and next times. Otherwise a cron expression goes on with the first time after now that fits; an interval
  /// with the end of its first one since the last event, or now if that has passed or there was none. A pause stays.
  /// Errors: kInvalidArgument, with the place in the expression and what is allowed there; kTooLarge; kUnavailable if
  /// the machine has no time zone database; and those of a transaction.
  /// Crash: the schedule is as before, or as it should be; set it again.
  Result<ScheduleInfo> set(std::string_view name, ScheduleSpec spec);
  ScheduleInfo set(Transaction& txn, std::string_view name, ScheduleSpec spec);

  /// Errors: kNotFound.
  [[nodiscard]] Result<ScheduleInfo> get(std::string_view name);
  [[nodiscard]] Result<ScheduleInfo> get(Reader& reader, std::string_view name) const;
  /// By name, at most 1,000 at once.
  [[nodiscard]] Result<std::vector<ScheduleInfo>> list(const PageOptions& page = {});
  [[nodiscard]] Result<std::vector<ScheduleInfo>> list(Reader& reader, const PageOptions& page = {}) const;

  /// Its events that were emitted stay. Errors: kNotFound.
  Result<void> remove(std::string_view name);
  void remove(Transaction& txn, std::string_view name);

  /// While it is paused, nominal times pass without an event, and are not missed either. Pausing it again changes
  /// nothing. Errors: kNotFound, kInvalidArgument.
  Result<void> pause(std::string_view name, const PauseOptions& why = {});
  void pause(Transaction& txn, std::string_view name, const PauseOptions& why = {});
  /// Goes on with the first nominal time after now. One that is not paused stays as it is.
  /// Errors: kNotFound; kUnavailable, as for `set`.
  Result<void> unpause(std::string_view name);
  void unpause(Transaction& txn, std::string_view name);

  /// One event more, now, also if it is paused: last and next stay as they are. Errors: kNotFound.
  Result<Emitted> run(std::string_view name);
  Emitted run(Transaction& txn, std::string_view name);

  /// This node fires nothing any more, but what it is firing just now; and again from `release` on, as the schedules'
  /// policies for missed times say. Neither blocks.
  void hold();
  void release();

 private:
  friend class SchedulesImpl;
  friend struct PartAccess;
  Schedules(std::shared_ptr<SchedulesImpl> impl, std::string space)
      : impl_(std::move(impl)), space_(std::move(space)) {}

  std::shared_ptr<SchedulesImpl> impl_;
  std::string space_;
};

}  // namespace perdure
