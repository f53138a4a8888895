// Events: units of work for a worker.
//
// A worker is a named queue plus its handler, not a process; an event goes to exactly one worker. See perdure/queue.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/export.h"
#include "perdure/lease.h"
#include "perdure/session.h"
#include "perdure/time.h"
#include "perdure/uuid.h"
#include "perdure/value.h"

namespace perdure {

/// A moment at which something is due, in store time: to the millisecond, and up to the end of the year 9999, which a
/// WallTime cannot reach.
using DueTime = std::chrono::time_point<WallTime::clock, std::chrono::milliseconds>;

/// Where an event is. Paused and blocked are ready events of a worker that has such a rule.
enum class EventState { kScheduled, kReady, kRunning, kPaused, kBlocked, kDead };
PERDURE_EXPORT std::string_view name_of(EventState state);

/// What becomes of an event whose attempt has failed.
struct RetryPolicy {
  enum class Then {
    kDead,  ///< It becomes a dead letter, which can be looked at and redriven.
    kDrop,  ///< It is gone, but for its entry in the history.
  };
  /// Before the first retry; each later one waits `factor` times as long, up to `max_delay`.
  Duration delay = std::chrono::minutes(5);
  double factor = 1;
  Duration max_delay = std::chrono::hours(24);
  /// Up to this much more, at random.
  Duration jitter = Duration::zero();
  /// Retries, so that 2 means three attempts.
  int max = 2;
  Then then = Then::kDead;
  bool operator==(const RetryPolicy&) const = default;
};

/// A second event with the same key, for the same worker, is not made: emitting it answers with the first.
struct UniqueKey {
  std::string key;
  /// Counted from the first event; without it, the key is free again when that event has ended or become dead.
  std::optional<Duration> lasts = {};
};

inline constexpr int kPriorityMin = 0;  ///< Claimed first.
inline constexpr int kPriorityDefault = 5;
inline constexpr int kPriorityMax = 9;

struct EmitOptions {
  /// At most one of the two. A time that has passed is now.
  Duration delay = Duration::zero();
  std::optional<DueTime> at = {};
  /// Its id, by default a new uuid of version 7. One that is known already, also of an event that ended within the
  /// retention of its worker, makes no second event.
  std::optional<Uuid> id = {};
  /// By default, that of its worker.
  std::optional<RetryPolicy> retry = {};
  int priority = kPriorityDefault;
  std::optional<UniqueKey> unique = {};
  /// Of the events with the same key no more run at once, anywhere, than the worker's limit_per_key.
  std::string limit_key = {};
  /// W3C trace context, handed on to the handler.
  std::string traceparent = {};
};

struct NewEvent {
  std::string worker;
  Value value = {};
  EmitOptions options = {};
};

struct Emitted {
  Uuid id;
  /// There was one already, by its unique key or its id, and this is that one.
  bool duplicate = false;
};

/// The largest value of an event, and the largest result that is kept, encoded.
inline constexpr std::size_t kEventBytesMax = 1 << 20;
inline constexpr std::size_t kResultBytesMax = 1 << 20;

/// An attempt that failed, as its event remembers it: the last few of them.
struct Failure {
  int attempt = 0;
  WallTime at;
  std::string error;
};

/// An event as it stands in the store.
struct Event {
  Uuid id;
  std::string space;
  std::string worker;
  /// What emitted it: "WORKER" and "_"; for the events of schedules "CRON" and the timing.
  std::string module;
  std::string modifier;
  Value value;
  EventState state = EventState::kReady;
  int priority = kPriorityDefault;
  int retries = 0;
  int attempts = 0;
  /// How often an attempt came to no end because its process died or a deadline passed; not counted as failures.
  int losses = 0;
  WallTime enqueued_at;
  DueTime delay_until;
  std::optional<WallTime> locked_at;
  /// While it is running: the proof of its claim, and whose it is: that session's, or nobody's until a deadline.
  std::optional<Token> token;
  std::optional<SessionId> owner;
  std::optional<DueTime> locked_until;
  std::string last_error;
  std::vector<Failure> failures;
  std::string limit_key;
  std::string unique_key;
  std::string traceparent;
  std::optional<RetryPolicy> retry;
};

/// How an event ended, kept for the retention of its worker.
struct EndedEvent {
  enum class How { kCompleted, kDropped, kCancelled };
  Uuid id;
  std::string worker;
  How how = How::kCompleted;
  /// What the handler returned; null for one that was larger than kResultBytesMax.
  Value result;
  int attempts = 0;
  WallTime finished_at;
  std::string last_error;
};
PERDURE_EXPORT std::string_view name_of(EndedEvent::How how);

/// One execution, of the last of a worker.
struct AttemptRecord {
  enum class Outcome { kCompleted, kFailed, kReleased, kLost };
  Uuid event;
  int attempt = 0;
  Outcome outcome = Outcome::kCompleted;
  WallTime started;
  WallTime ended;
  /// Null where they have more than a thousand bytes.
  Value value;
  Value result;
  std::string error;
};
PERDURE_EXPORT std::string_view name_of(AttemptRecord::Outcome outcome);

/// A pause, which is a user's, or a block, which is an administrator's: while there is one, no event of the worker is
/// claimed. Those that are running go on.
struct Rule {
  enum class Type { kPause, kBlock };
  std::int64_t id = 0;
  Type type = Type::kPause;
  std::string reason;
  std::string by;
  WallTime since;
  std::optional<DueTime> until;
};

/// What an operator says about a rule.
struct RuleOptions {
  std::string reason = {};
  std::string by = {};
  /// It ends by itself then.
  std::optional<DueTime> until = {};
};

enum class WorkerState { kRun, kPause, kBlock };
PERDURE_EXPORT std::string_view name_of(WorkerState state);

/// `count` claims in each `per`, evenly spread: what a tenth of it, or 100 ms, are worth may be claimed at once, and
/// one event in any case.
struct Rate {
  std::uint32_t count = 1;
  Duration per = std::chrono::seconds(1);
  bool operator==(const Rate&) const = default;
};

/// What holds for a worker wherever it is served; kept in the store.
struct WorkerSettings {
  RetryPolicy retry = {};
  std::optional<Rate> rate = {};
  /// From 1 to 1,000. Raising it shows when the next event with the key ends.
  std::uint32_t limit_per_key = 1;
  /// How long it is remembered how an event ended.
  Duration retention = std::chrono::hours(24);
  /// An event that is lost more often than this becomes a dead letter: it may be what kills its processes.
  int losses_max = 10;
  bool operator==(const WorkerSettings&) const = default;
};

struct WorkerInfo {
  std::string space;
  std::string worker;
  WorkerState state = WorkerState::kRun;
  std::vector<Rule> rules;
  /// Stored events: `total` is all but the dead.
  std::uint64_t total = 0, ready = 0, scheduled = 0, running = 0, dead = 0;
  /// Since when the ready event has been ready that has been so longest, of those that wait for no slot of a key.
  std::optional<WallTime> oldest;
  /// Events and attempts since the worker was first heard of.
  std::uint64_t completed = 0, failed = 0, dropped = 0, cancelled = 0, lost = 0;
  /// Nodes that have a handler for it.
  std::uint64_t served_by = 0;
  WorkerSettings settings;
};

/// Why an event does not run just now.
struct Why {
  struct Reason {
    std::string
        code;  ///< "paused", "blocked", "scheduled", "limit_key", "rate", "unserved", "behind", "running", "dead"
    std::string text;
    std::optional<WallTime> since = {};
    std::string by = {};
  };
  std::vector<Reason> reasons;
  /// All of it in one sentence.
  std::string text;
};

struct EventFilter {
  std::string worker;
  /// All that are stored if there is none, the dead included.
  std::optional<EventState> state = {};
  /// `next` of the page before.
  std::string after = {};
  std::size_t limit = 100;
};

struct EventPage {
  /// As many as were asked for; fewer if their values are large.
  std::vector<Event> events;
  /// Empty: that was the last page.
  std::string next;
};

}  // namespace perdure
