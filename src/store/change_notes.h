// What a transaction changed, for the feed of changes: see perdure/changes.h and docs/internals/changes.md.
//
// The parts of perdure note what becomes of what they keep, in the transaction that makes it so. Notes are gathered
// until the body has ended, and then those of one space go together into one row. So a transaction that emits a hundred
// events and settles as many more writes one row for the feed, and rings one bell.
//
//     ("changes", space, stamp)    -> a row of changes; the stamp is that of the transaction, so rows are in its order
//     ("changes-bell", space)      -> a counter of the rows that were ever written
//     ("changes-trimmed", space)   -> up to where rows were cleared, and how many
//     ("changes-begun")            -> the stamp at which the feed was first opened
//
// A row: format 1 (1), how many changes (4), time in ns (8), then the changes. A change: flags (1), type and name
// (text) unless they are those of the one before it, state (1), id (16 bytes of a UUID, or text), then what the flags
// say: attempt, count, offset (a varint each), error (text). A text is its size as a varint, and its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "perdure/error.h"
#include "perdure/stamped.h"
#include "perdure/time.h"
#include "perdure/tuple.h"
#include "store/ranges.h"

namespace perdure {

/// These are stored: new ones come behind.
enum class ChangeType : std::uint8_t { kEvent, kWorker, kActor, kDebouncer, kSchedule, kPartition, kSession };
enum class ChangeState : std::uint8_t {
  kScheduled,
  kReady,
  kRunning,
  kCompleted,
  kFailed,
  kDead,
  kDropped,
  kCancelled,
  kPaused,
  kUnpaused,
  kBlocked,
  kUnblocked,
  kSet,
  kRemoved,
  kCreated,
  kHandled,
  kLocked,
  kUnlocked,
  kKilled,
  kWaiting,
  kFired,
  kEnded,
  kAppended,
  kStarted,
  kActive,
  kIdle,
  kPermissionNeeded,
  kDone,
  kUpdated,
};
/// As they are shown; "unknown" for one that a newer perdure has written.
std::string_view name_of(ChangeType type);
std::string_view name_of(ChangeState state);

/// One change, as a part notes it, and as it is read again. The views last as long as what they were made of.
struct ChangeNote {
  ChangeType type = ChangeType::kEvent;
  ChangeState state = ChangeState::kReady;
  std::string_view space;
  std::string_view name;
  std::variant<std::string_view, Uuid> id;
  WallTime at;
  std::uint32_t attempt = 0;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> offset = {};
  /// An actor has a new version, which is the stamp of the commit with order 0.
  bool rewritten = false;
  /// Only the beginning of a long one is kept.
  std::string_view error = {};
};

inline Bytes changes_prefix(std::string_view space) {
  return tuple::pack_onto(kSystemKeys, "changes", space);
}
inline Bytes changes_bells() {
  return tuple::pack_onto(kSystemKeys, "changes-bell");
}
inline Bytes changes_bell(std::string_view space) {
  return tuple::pack_onto(changes_bells(), space);
}
inline Bytes changes_trimmed_key(std::string_view space) {
  return tuple::pack_onto(kSystemKeys, "changes-trimmed", space);
}
inline Bytes changes_begun_key() {
  return tuple::pack_onto(kSystemKeys, "changes-begun");
}

/// The notes of one transaction.
class ChangeNotes {
 public:
  struct Encoded {
    std::string space;
    Bytes value;
  };
  void add(const ChangeNote& note);
  /// What is to be written, in order; there is nothing left then.
  std::vector<Encoded> take();
  void clear() { open_.clear(), full_.clear(); }

 private:
  struct Open {
    Encoded row;
    std::uint32_t count = 0;
    WallTime at;
    ChangeType type = ChangeType::kEvent;
    std::string name;
  };
  static Encoded finish(Open&& open);

  /// Mostly one, as a transaction seldom reaches beyond a space.
  std::vector<Open> open_;
  std::vector<Encoded> full_;
};

struct ChangeRowHead {
  std::uint32_t count = 0;
  WallTime at;
  /// Nothing if the row is damaged, or in a format that this build does not know.
  static std::optional<ChangeRowHead> of(BytesView row);
};
/// Calls `take` with each change of a row and its place in it, until it answers false. False if the row cannot be read
/// to its end.
bool read_changes(BytesView row, const std::function<bool(std::uint32_t index, const ChangeNote&)>& take);

}  // namespace perdure
