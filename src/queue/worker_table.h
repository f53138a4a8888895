// The events of one worker, inside of one transaction.
//
// Every change of an event's state is two steps: it leaves the index of the state that it is in, with all that belongs
// to it there (a claim, a slot of its limit key), and enters another. Each step keeps rows and counts together, so that
// no sequence of them can lose an event or count it twice. What costs the same for one event as for many, counters
// above all, is gathered and written by finish().
//
//     { leave ( enter_ready | enter_scheduled | enter_running | enter_dead | end ) } finish
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perdure/transaction.h"
#include "queue/rows.h"
#include "store/change_notes.h"
#include "store/system_access.h"

namespace perdure::queue {

/// Of a worker, all of them only ever added to. Ready events are kIn - kOut; kIn is also the bell that tells nodes of
/// work, so it is touched whenever there may be some.
enum class Counter {
  kIn,
  kOut,
  kScheduled,
  kRunning,
  kDead,
  kCompleted,
  kFailed,
  kDropped,
  kCancelled,
  kLost,
  kRecorded,  ///< Executions that went into the ring.
};
inline constexpr std::size_t kCounters = 11;
/// How many executions a worker remembers.
inline constexpr std::int64_t kRingSize = 64;
/// The last of them may be but begun.
inline constexpr std::int64_t kRingBlocks = kRingSize / RecordBlock::kRecords + 1;
/// The largest limit_per_key.
inline constexpr std::size_t kSlotsMax = 1'000;

Bytes counter_key(BytesView prefix, Counter counter);
inline Bytes ready_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "r");
}
inline Bytes scheduled_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "t");
}
inline Bytes head_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "h");
}
inline Bytes dead_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "d");
}
inline Bytes rules_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "x");
}
inline Bytes settings_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "o");
}
inline Bytes rate_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "g");
}
inline Bytes ring_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "a");
}
inline Bytes servers_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "s");
}
inline Bytes unique_key(BytesView prefix, std::string_view key) {
  return tuple::pack_onto(prefix, "u", key);
}
/// Rows of running events with the key.
inline Bytes slots_key(BytesView prefix, std::string_view key) {
  return tuple::pack_onto(prefix, "k", key, "r");
}
/// Entries of ready events that wait for a slot.
inline Bytes waiting_key(BytesView prefix, std::string_view key) {
  return tuple::pack_onto(prefix, "k", key, "w");
}

/// Who runs an event: a session, or whoever has the token, until a deadline.
struct Claimant {
  SessionId session;
  std::optional<DueTime> until;
};

/// How an execution went, for the ring.
struct Execution {
  AttemptRecord::Outcome outcome = AttemptRecord::Outcome::kCompleted;
  WallTime started;
  Bytes result;  ///< An encoded Value, or nothing.
  std::string error;
};

/// An event and its row, as a transaction loaded it.
struct Loaded {
  Uuid id;
  Bytes key;
  EventRow row;
};

class WorkerTable {
 public:
  /// `txn` has system access while this is used.
  WorkerTable(Transaction& txn, std::string_view space, std::string_view worker, WallTime now);

  Transaction& txn() { return txn_; }
  const Bytes& prefix() const { return prefix_; }
  const std::string& space() const { return space_; }
  const std::string& worker() const { return worker_; }
  WallTime now() const { return now_; }
  const WorkerSettings& settings();
  /// Those that hold now. One that has ended by itself is removed.
  std::vector<Rule> rules();
  void write_rules(const std::vector<Rule>& rules);
  /// An entry of the ready index, and its event; nothing if the entry points nowhere, and then it is removed.
  std::optional<Loaded> load_ready(const Row& entry);

  void leave(const Loaded& event);
  void enter_ready(Loaded& event, WallTime since);
  void enter_scheduled(Loaded& event, DueTime due);
  /// Its token is the stamp with the order that this answers.
  std::uint32_t enter_running(Loaded& event, const Claimant& claimant);
  void enter_dead(Loaded& event);
  void end(const Loaded& event, EndedEvent::How how, Stamp token, Bytes result, std::string last_error);

  /// Notes for whoever made it that it has ended; `value` is what a redrive gives back to him.
  void tell(const Loaded& event, BytesView value = {});

  /// Whether an event with this limit key may run.
  bool has_slot(std::string_view limit_key);
  /// Those that wait for a slot of the key become visible again, as many as there are slots.
  void let_through(std::string_view limit_key);
  /// Takes it out of the ready index until one of the key's slots is free; it stays ready.
  void wait_for_slot(const Row& entry, const Loaded& event, std::string_view limit_key);
  void count(Counter counter, std::int64_t by) { counts_[static_cast<std::size_t>(counter)] += by; }
  /// Notes it in the ring.
  void record(const Loaded& event, Execution execution);
  /// So many executions will be noted, at most: then the first of them need not be kept for the last.
  void expect_records(std::size_t count) { records_left_ = static_cast<std::int64_t>(count); }
  /// Tells nodes to look.
  void ring() { rung_ = true; }
  /// Whether something may have become ready since finish().
  bool rang() const { return rung_ || counts_[static_cast<std::size_t>(Counter::kIn)] > 0; }
  /// For the feed of changes; what an event enters is noted by that.
  void note(const Loaded& event, ChangeState state, std::string_view error = {});
  void note_worker(ChangeState state);
  void note_no_more(Rule::Type type);
  /// Something was decided by the time that it is: nobody may act upon an earlier one from then on.
  void act_on_time() { acted_on_time_ = true; }
  void finish();

 private:
  struct Recorded {
    AttemptRecord record;
    Bytes given;
    Bytes result;
  };
  void leave_slot(const Loaded& event);
  std::size_t& slots_taken(std::string_view limit_key);
  void free_unique(const Loaded& event);
  void write_records();
  void write_forgotten();

  Transaction& txn_;
  SystemAccess access_;
  const std::string space_;
  const std::string worker_;
  const Bytes prefix_;
  const Bytes ready_;
  const WallTime now_;
  std::optional<WorkerSettings> settings_;
  /// How many slots of each limit key are taken, of those that were asked about.
  std::map<std::string, std::size_t, std::less<>> slots_;
  std::array<std::int64_t, kCounters> counts_ = {};
  bool rung_ = false;
  bool acted_on_time_ = false;
  std::vector<Recorded> records_;
  std::int64_t records_left_ = kRingSize;
  std::vector<Uuid> ended_;
};

/// The row of an event that is stored; nothing if it has ended, or there is none.
std::optional<Loaded> load(Reader& reader, std::string_view space, const Uuid& id);
/// How it ended; nothing if it has not.
std::optional<EndedRow> load_ended(Reader& reader, std::string_view space, const Uuid& id);
/// What is left of a row that cannot be read: leaves the body.
template <class T>
T readable(Reader& reader, Result<T> row) {
  if (!row) SystemAccess(reader).refuse(std::move(row.error()));
  return std::move(*row);
}
WorkerSettings read_settings(Reader& reader, BytesView prefix);
/// Those that hold at `now`; `ended` gets the others.
std::vector<Rule> read_rules(Reader& reader, BytesView prefix, WallTime now, std::vector<Rule>* ended = nullptr);
/// At `due` something of the worker is due: sees to it that somebody looks then.
void note_due(Transaction& txn, BytesView prefix, std::string_view space, std::string_view worker, DueTime due);
/// The encoded value of an event, from its row or its chunks.
Result<Value> read_value(Reader& reader, BytesView key, const Given& given);
/// Notes what is to be forgotten at `when`: see due.h.
enum class Forget : char { kEnded = 'e', kUnique = 'u' };
void forget_at(Transaction& txn, DueTime when, Forget what, Bytes value);

}  // namespace perdure::queue
