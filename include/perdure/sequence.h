// Sequences: a log of events, and numbers without gaps that are drawn with them.
//
//     auto sequences = Sequences::open(store);
//     sequences->set("billing", {.types = {{"shop", {{"invoice", 1}, {"order", 1000}}}}});
//     auto made = sequences->append("billing", {.type = "shop", .workspace = 7, .next = {"invoice"}, .payload = ...});
//     // made->offset: where it stands in the log of the partition; made->numbers[0]: the number of the invoice
//
// An event and its numbers are one transaction, so that there is neither a number without an event nor an event without
// its number, whatever dies. A partition is a log of its own, with offsets 1, 2, 3, ...; a workspace is a number that
// you choose, and belongs to the partition that you use it in; its type says which sequences it has, and where each
// begins. The numbers of a sequence in a workspace are consecutive.
//
// Who needs numbers faster than the store commits takes a partition for himself, and hands them out from memory: see
// `own` and perdure/sequencer.h. As long as somebody has it, nobody else can append.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/behaviour.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/sequencer.h"
#include "perdure/session.h"
#include "perdure/store.h"
#include "perdure/time.h"
#include "perdure/value.h"

namespace perdure {

/// What is looked at before it is written. What is there already, where something new should go, is a violation of the
/// sequence, and refused with kWrongState; where nobody looks, it is replaced.
enum class Trust {
  kGuardAll,  ///< Entries of the log and records.
  kGuardLog,  ///< Only the log.
  kNobody,    ///< Neither: for whoever writes a log again that was lost.
};
PERDURE_EXPORT std::string_view name_of(Trust trust);

/// The sequences of a type of workspace, with their first numbers, 1 or more.
using SequenceFloors = std::map<std::string, Number>;

struct PartitionSpec {
  std::map<std::string, SequenceFloors> types = {};
  Trust trust = Trust::kGuardAll;
  bool operator==(const PartitionSpec&) const = default;
};

struct PartitionInfo {
  std::string space;
  std::string name;
  PartitionSpec spec;
  /// Of the last entry of the log, 0 if there is none; and the one up to which the stored numbers are those of the log.
  LogOffset offset = 0;
  LogOffset flushed_offset = 0;
  /// Who has it for himself.
  std::optional<LeaseInfo> owner;
};

/// An event to be appended, with the sequences that it draws from, each as often as it is named.
struct Append {
  std::string type;
  std::uint64_t workspace = 0;
  std::vector<std::string> next = {};
  Value payload = {};
};

inline constexpr std::size_t kLogPayloadBytesMax = 1 << 20;

struct Appended {
  LogOffset offset = 0;
  /// In the order of Append::next.
  std::vector<Number> numbers;
  bool operator==(const Appended&) const = default;
};

struct LogEntry {
  LogOffset offset = 0;
  std::string type;
  std::uint64_t workspace = 0;
  /// The numbers that it drew; and those of records that it only changed.
  std::vector<std::pair<std::string, Number>> numbers;
  std::vector<std::pair<std::string, Number>> updated;
  Value payload;
  WallTime at;
};

struct LogPage {
  /// Goes on after this offset.
  LogOffset after = 0;
  /// At most 1,000. A page of large entries ends earlier; one that is empty is the last.
  std::size_t limit = 100;
};

/// A record of your own under a number that was drawn.
struct RecordId {
  std::uint64_t workspace = 0;
  std::string sequence;
  Number number = 0;
};
enum class RecordWrite { kNew, kUpdate };

/// An entry as the owner of a partition writes it: what his sequencer gave him.
struct LogWrite {
  WorkspaceKind kind;
  WorkspaceId workspace;
  std::vector<std::pair<SeqId, Number>> numbers = {};
  /// Those of records that exist already: they say nothing about what comes next.
  std::vector<std::pair<SeqId, Number>> updated = {};
  Value payload = {};
};

class SequencesImpl;
class PartitionStorage;

/// A partition that this process has for itself, as long as its lease is held. Copies share it. Thread-safe.
class PERDURE_EXPORT OwnedPartition {
 public:
  /// Its kinds and sequences, for a sequencer on `storage`. They, and its trust, are as they were when it was taken.
  [[nodiscard]] SequencerParams params() const;
  [[nodiscard]] std::shared_ptr<SeqStorage> storage() const;
  /// The ids of names. Errors: kInvalidArgument.
  [[nodiscard]] Result<WorkspaceKind> kind(std::string_view type) const;
  [[nodiscard]] Result<SeqId> seq(std::string_view sequence) const;

  /// Writes an entry at the offset that the sequencer gave. The transaction commits only while the partition is owned,
  /// and fails with kStaleToken otherwise; with kWrongState if there is such an entry already (see Trust).
  void write(Transaction& txn, LogOffset offset, const LogWrite& entry) const;

  const Lease& lease() const;
  /// Gives it back, as Lease::release does: close the sequencer first.
  [[nodiscard]] Result<void> release();
  void release_async(std::move_only_function<void(Result<void>)> done);

 private:
  friend class SequencesImpl;
  explicit OwnedPartition(std::shared_ptr<PartitionStorage> storage) : storage_(std::move(storage)) {}
  std::shared_ptr<PartitionStorage> storage_;
};

struct SequencesOptions {
  std::string space = "default";
};

/// The share of this process in the sequences of a store. Copies share it; thread-safe. It keeps the store open.
///
/// Names of spaces, partitions, types and sequences: 1 to 64 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit.
///
/// Calls that take a Transaction or Reader are parts of it, and act when it commits; what they find wrong makes it
/// fail. The others are transactions of their own, and block: they are refused with kInvalidArgument in callbacks of
/// the store.
class PERDURE_EXPORT Sequences {
 public:
  /// Asks the store nothing, and so never blocks. Errors: kInvalidArgument (the options), kClosed.
  [[nodiscard]] static Result<Sequences> open(Store store, SequencesOptions options = {});

  /// The same in another space.
  [[nodiscard]] Sequences in(std::string space) const;
  const std::string& space() const { return space_; }

  /// Makes a partition, or adds to it: types and sequences that are not named stay. Initial values are replaced, and
  /// hold for what is drawn from then on; no number is ever lowered by them. A sequencer that owns it goes on with what
  /// it knew. Errors: kInvalidArgument.
  Result<PartitionInfo> set(std::string_view partition, const PartitionSpec& spec);
  PartitionInfo set(Transaction& txn, std::string_view partition, const PartitionSpec& spec);
  /// Errors: kNotFound.
  [[nodiscard]] Result<PartitionInfo> get(std::string_view partition);
  [[nodiscard]] Result<PartitionInfo> get(Reader& reader, std::string_view partition) const;
  /// By name, at most 1,000 at once.
  [[nodiscard]] Result<std::vector<PartitionInfo>> list(const PageOptions& page = {});
  [[nodiscard]] Result<std::vector<PartitionInfo>> list(Reader& reader, const PageOptions& page = {}) const;

  /// Deletes a partition with its log, its numbers and its records; a new one of the name begins anew. Blocks.
  /// Errors: kNotFound; kWrongState if somebody has it for himself.
  /// Crash: of a long log some of the entries may be gone, from the first on; remove it again.
  Result<void> remove(std::string_view partition);

  /// Appends an event, and draws its numbers.
  /// Errors, and nothing was drawn: kInvalidArgument for a type or sequence that there is not; kNotFound for the
  /// partition; kTooLarge for the payload, and when 2^64 - 1 was drawn; kWrongState if somebody has it for himself. And
  /// those of a transaction: after kCommitUnknown it may be there; to repeat it safely, append in a transaction that
  /// also looks for, and writes, a row of your own.
  /// Crash: the event and its numbers are there, or neither.
  Result<Appended> append(std::string_view partition, Append event);
  /// `done` is called once, on one of the store's threads, or in this call if something is wrong.
  void append_async(std::string_view partition, Append event, std::move_only_function<void(Result<Appended>)> done);
  Appended append(Transaction& txn, std::string_view partition, const Append& event);
  /// Several in one transaction, in their order.
  Result<std::vector<Appended>> append_many(std::string_view partition, std::vector<Append> events);
  void append_many_async(std::string_view partition, std::vector<Append> events,
                         std::move_only_function<void(Result<std::vector<Appended>>)> done);
  std::vector<Appended> append_many(Transaction& txn, std::string_view partition, const std::vector<Append>& events);
  /// The same as an effect of an actor: it commits with its state.
  [[nodiscard]] Effect append_effect(std::string_view partition, Append event) const;

  /// The entries of the log in order. Errors: kNotFound, kInvalidArgument.
  [[nodiscard]] Result<std::vector<LogEntry>> log(std::string_view partition, const LogPage& page = {});
  [[nodiscard]] Result<std::vector<LogEntry>> log(Reader& reader, std::string_view partition,
                                                  const LogPage& page = {}) const;
  /// The last number of each sequence of a workspace, of those that have one. While the partition has an owner, they
  /// may be a little behind the log. Errors: kNotFound.
  [[nodiscard]] Result<std::map<std::string, Number>> numbers(std::string_view partition, std::uint64_t workspace);
  [[nodiscard]] Result<std::map<std::string, Number>> numbers(Reader& reader, std::string_view partition,
                                                              std::uint64_t workspace) const;

  /// A value under a number that was drawn; see Trust. Errors: kNotFound for the partition, and for a record that is to
  /// be updated; kInvalidArgument for a sequence that there is not; kWrongState; kTooLarge.
  void write_record(Transaction& txn, std::string_view partition, const RecordId& id, const Value& value,
                    RecordWrite write);
  /// Errors: kNotFound.
  [[nodiscard]] Result<Value> record(Reader& reader, std::string_view partition, const RecordId& id) const;

  /// Takes the partition for this process alone, as Session::acquire takes a lease; blocks. Whoever had it before is
  /// fenced. Keep `session` for as long. Errors: kNotFound, and those of Session::acquire.
  [[nodiscard]] Result<OwnedPartition> own(Session& session, std::string_view partition,
                                           Duration timeout = Duration::zero());
  void own_async(Session& session, std::string_view partition, Duration timeout,
                 std::move_only_function<void(Result<OwnedPartition>)> done);

 private:
  friend class SequencesImpl;
  Sequences(std::shared_ptr<SequencesImpl> impl, std::string space)
      : impl_(std::move(impl)), space_(std::move(space)) {}

  std::shared_ptr<SequencesImpl> impl_;
  std::string space_;
};

}  // namespace perdure
