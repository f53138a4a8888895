// clang-format off
// The rows of the queue, all of them among perdure's own keys; see docs/internals/key_layout.md. An event is one row,
// and an entry in the index of its state, which is what tells workers of it:
//
//     ("event", space, id)              -> the event, or how it ended
//     ("event", space, id, i)           -> the chunks of a value that is too large for its row
//
// With P for ("queue", space, worker), what there is of one worker:
//
//     (P, "r", priority, stamp)         -> id, since       ready events, in the order in which they are claimed
//     (P, "t", ms, stamp)               -> id              scheduled events
//     (P, "h")                          -> ms              when the first of them is due: it stands in the timetable
//     (P, "d", stamp)                   -> id              dead letters
//     (P, "k", key, "r", id)            -> nothing         running events with that limit key
//     (P, "k", key, "w", priority, stamp) -> id, since     ready ones that wait for one of those to end
//     (P, "u", key)                     -> id, until       a unique key that is taken
//     (P, "n", name)                    -> a counter       see Counter
//     (P, "x")                          -> rules
//     (P, "o")                          -> settings
//     (P, "g")                          -> ns              what the rate has been used up to
//     (P, "a", n)                       -> the last executions, in a ring
//     (P, "s", session)                 -> nothing         a session that has a handler for it
//
// and besides:
//
//     ("event-due", ms, space, worker)  -> nothing         the timetable: when each worker has something due next
//     ("event-due-bell")                -> a counter       rung when that may be earlier
//     ("claim-due", ms, space, id)      -> nothing         the deadlines of claims that belong to no session
//     ("claim-due-bell")                -> a counter
//     ("forget", ms, stamp)             -> what is to be forgotten then
//     ("rule-id")                       -> a number
//     ("session", "held", id, "claims", n)  -> space, ids     what a session has claimed, a few in each row
//     ("session", "held", id, "worker", space, worker) -> nothing
//     ("session", "held", id, "recall") -> a counter       rung when one of its claims was taken away
//
// A stamp in an index is also in the row of its event, as the moment of its last change of state; the stamp of a running
// event is the token of its claim. So whoever has an index entry or a token can tell whether it is still current.
// clang-format on
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/event.h"
#include "perdure/stamped.h"
#include "perdure/tuple.h"
#include "session/rows.h"
#include "store/ranges.h"

namespace perdure::queue {

/// Values up to this size stand in the row of their event; larger ones in chunks behind it.
inline constexpr std::size_t kInlineBytes = 1'000;
inline constexpr std::size_t kChunkBytes = 100'000;

inline Bytes event_key(std::string_view space, const Uuid& id) {
  return tuple::pack_onto(kSystemKeys, "event", space, id);
}
inline Bytes worker_prefix(std::string_view space, std::string_view worker) {
  return tuple::pack_onto(kSystemKeys, "queue", space, worker);
}
inline Bytes timetable() {
  return tuple::pack_onto(kSystemKeys, "event-due");
}
inline Bytes timetable_bell() {
  return tuple::pack_onto(kSystemKeys, "event-due-bell");
}
inline Bytes deadlines() {
  return tuple::pack_onto(kSystemKeys, "claim-due");
}
inline Bytes deadlines_bell() {
  return tuple::pack_onto(kSystemKeys, "claim-due-bell");
}
inline Bytes forget_prefix() {
  return tuple::pack_onto(kSystemKeys, "forget");
}
/// Among what the session holds, so that it goes with it.
inline constexpr std::string_view kHeldRecall = "recall";
inline Bytes recall_key(SessionId session) {
  return session::held_key(session, kHeldRecall);
}
/// Where the end of an event is noted for the part of perdure that made it, and what wakes that part. An event that has
/// become dead has ended as well. Redriving such an event ends it too, and leaves its value here: whether and when it
/// runs again is up to who made it.
inline Bytes told_prefix(std::string_view module) {
  return tuple::pack_onto(kSystemKeys, "told", module);
}
inline Bytes told_key(std::string_view module, std::string_view space, std::string_view modifier, const Uuid& id) {
  return tuple::pack_onto(told_prefix(module), space, modifier, id);
}
inline Bytes told_bell() {
  return tuple::pack_onto(kSystemKeys, "told-bell");
}
inline Bytes rule_id_key() {
  return tuple::pack_onto(kSystemKeys, "rule-id");
}

/// What a session holds of the queue, in its held rows: see session/rows.h. Claims are noted a few at a time, in rows
/// with a number, so that most cost no row of their own.
inline constexpr std::string_view kHeldClaims = "claims";
inline constexpr std::string_view kHeldServer = "worker";
inline constexpr std::size_t kClaimsPerRow = 32;

struct HeldClaims {
  std::string space;
  std::vector<Uuid> ids;

  Bytes encode() const;
  static std::optional<HeldClaims> decode(BytesView value);
};

/// Where an event is, in its row.
enum class Stored : char { kScheduled = 's', kReady = 'r', kRunning = 'c', kDead = 'd', kEnded = 'e' };

/// What never changes about an event; kept as bytes in its row, and decoded where it is needed.
struct Given {
  std::string worker;
  std::string module = "WORKER";
  std::string modifier = "_";
  std::string limit_key;
  std::string unique_key;
  std::string traceparent;
  std::optional<RetryPolicy> retry;
  /// Of a value that stands in chunks behind the row; 0 if it stands right here.
  std::size_t apart_bytes = 0;
  /// Whoever made it is told of its end, by a row that is written with it: see told_key().
  bool told = false;
  Bytes value;

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<Given> decode(BytesView bytes);
};

/// The part of it that names other rows. Points into the bytes that it was read from.
struct GivenNames {
  std::string_view worker;
  std::string_view limit_key;
  std::string_view unique_key;
  std::size_t apart_bytes = 0;
  bool told = false;
};

struct EventRow {
  Stored state = Stored::kReady;
  Stamp stamp;  ///< Of its last change of state.
  int priority = kPriorityDefault;
  std::uint32_t retries = 0, attempts = 0, losses = 0;
  WallTime enqueued_at;
  DueTime delay_until;
  std::optional<WallTime> locked_at;
  /// While it is running: a session, or a deadline.
  SessionId session;
  std::optional<DueTime> locked_until;
  std::vector<Failure> failures;
  /// What never changes, encoded: the end of these bytes, which for a row that was read are the row itself.
  Bytes bytes;
  std::size_t given_at = 0;

  BytesView given() const { return BytesView(bytes).substr(given_at); }
  void set_given(Bytes given) {
    bytes = std::move(given);
    given_at = 0;
  }
  /// The row as the commit stamps it, with this order.
  Stamped encode(std::uint32_t order) const;
  /// The same with the stamp that it has: what changed is no change of state.
  Bytes encode_as_it_is() const;
  /// Errors: kCorrupt; an ended event is none.
  static Result<EventRow> decode(Bytes value);
  GivenNames names() const;
};

/// How an event ended, in the place of its row.
struct EndedRow {
  EndedEvent::How how = EndedEvent::How::kCompleted;
  /// Of the claim that ended it; zero if none did.
  Stamp token;
  std::uint32_t attempts = 0;
  WallTime finished_at;
  std::string worker;
  std::string last_error;
  Bytes result;  ///< An encoded Value.

  Bytes encode() const;
  static Result<EndedRow> decode(BytesView value);
};

Stored state_of(BytesView row);

/// The value of an entry in the ready index.
struct ReadyEntry {
  Uuid id;
  WallTime since;

  Bytes encode() const;
  static std::optional<ReadyEntry> decode(BytesView value);
};

Bytes encode_id(const Uuid& id);
std::optional<Uuid> decode_id(BytesView value);

Bytes encode_rules(const std::vector<Rule>& rules);
Result<std::vector<Rule>> decode_rules(BytesView value);

Bytes encode_settings(const WorkerSettings& settings);
Result<WorkerSettings> decode_settings(BytesView value);

/// A row of the ring of executions: those with the numbers from kRecords * number on. Several to a row, because a turn
/// has many.
struct RecordBlock {
  static constexpr std::int64_t kRecords = 8;

  std::int64_t number = 0;
  Bytes bytes;

  /// `value` and `result` are encoded Values, or nothing for null.
  void add(const AttemptRecord& record, BytesView value, BytesView result);
  Bytes encode() const;
  static std::optional<RecordBlock> decode(BytesView value);
  /// In their order, up to the first that is damaged.
  std::vector<AttemptRecord> records() const;
};

inline WallTime wall_time(std::int64_t ns) {
  return WallTime(Duration(ns));
}
inline std::int64_t ns_of(WallTime time) {
  return time.time_since_epoch().count();
}
/// Never earlier than `time`.
inline DueTime due_at(WallTime time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}
/// The last moment that there is a name for: the end of the year 9999.
inline constexpr DueTime kLastDueTime = DueTime(std::chrono::milliseconds(253'402'300'799'999));
/// `delay` after `now`, and no later than the last moment.
inline DueTime due_after(WallTime now, Duration delay) {
  auto ms = due_at(now).time_since_epoch() + std::chrono::ceil<std::chrono::milliseconds>(delay);
  return std::min(DueTime(ms), kLastDueTime);
}
/// Whether it has come, at `now`. Comparing as nanoseconds could overflow.
inline bool is_due(DueTime time, WallTime now) {
  return time.time_since_epoch() <= std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch());
}

}  // namespace perdure::queue
