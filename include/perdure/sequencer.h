// The sequencer: numbers without gaps, handed out from memory and written behind.
//
// A partition is a log of events. Each event has an offset in it, and may draw numbers from the sequences of the
// workspace that it belongs to. One sequencer per partition hands out both:
//
//     { start {next} ( flush | actualize ) }
//
//     auto offset = sequencer.start(kShop, workspace);    // the offset of the event: last + 1
//     auto number = sequencer.next(kInvoice);             // last + 1, but at least the initial value
//     write_to_log(*offset, *number) ? sequencer.flush() : sequencer.actualize();
//
// `flush` says that the event is in the log: its numbers are stored a little later, many at once. `actualize` says that
// it is not, or that nobody knows: everything in memory is dropped, and read again from the log, so that what is not in
// the log is handed out again, and what is in it never. A process that dies without a word comes to the same.
//
// Offsets and numbers, in memory and in the storage, are always those that were last used; 0 is none.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/store.h"
#include "perdure/time.h"

namespace perdure {

/// What sort of workspace it is; decides which sequences it has.
enum class WorkspaceKind : std::uint16_t {};
enum class WorkspaceId : std::uint64_t {};
/// One series of numbers in each workspace.
enum class SeqId : std::uint16_t {};
using Number = std::uint64_t;
/// The first entry of a log has 1.
using LogOffset = std::uint64_t;

struct SeqKey {
  WorkspaceId workspace;
  SeqId seq;
  auto operator<=>(const SeqKey&) const = default;
};

struct SeqValue {
  SeqKey key;
  Number number;
  bool operator==(const SeqValue&) const = default;
};

/// What a sequencer keeps its numbers in, and reads its log from. `Sequences::own` gives the one on the store.
///
/// The sequencer calls one function at a time, but for `read_numbers`, which may come beside one of the others. None of
/// them blocks. `done` is called once, on any thread, also in the very call. What fails is tried again, as long as it
/// takes; but kStaleToken and kClosed are final: somebody else has the partition.
class PERDURE_EXPORT SeqStorage {
 public:
  template <class T>
  using Done = std::move_only_function<void(Result<T>)>;
  enum class More { kGoOn, kEnough };
  /// Gets the numbers that one entry of the log has drawn, in no order; a key may come several times, or none at all.
  /// Answers whether it takes more entries.
  using Batcher = std::function<More(std::span<const SeqValue> numbers, LogOffset offset)>;

  virtual ~SeqStorage() = default;

  /// The last number of each key, in the order of `keys`; 0 where there is none.
  virtual void read_numbers(std::vector<SeqKey> keys, Done<std::vector<Number>> done) = 0;
  /// The offset that was last written; 0 if none was.
  virtual void read_offset(Done<LogOffset> done) = 0;
  /// Puts numbers in the place of those that are there, and the offset up to which the log is in them: all of it at
  /// once or, where that cannot be, the offset last. One whose offset is below that which is stored does nothing: it
  /// was given up, and comes late.
  virtual void write(std::vector<SeqValue> numbers, LogOffset offset, Done<void> done) = 0;
  /// Gives `batcher` the entries of the log from `from` on, in the order of their offsets, until it has enough or the
  /// log ends. It must not be called any more once `done` is.
  virtual void scan_log(LogOffset from, Batcher batcher, Done<void> done) = 0;
};

struct SequencerParams {
  /// The sequences of each kind of workspace, with their first numbers, 1 or more.
  std::map<WorkspaceKind, std::map<SeqId, Number>> kinds = {};
  /// With more numbers than this not yet stored, `start` refuses.
  std::size_t unflushed_max = 500;
  /// Numbers that are kept in memory so that they need not be read; not negative.
  std::int64_t cached_max = 100'000;
  /// How long after a flush it is stored at the latest, unless there are too many before.
  Duration flush_timeout = std::chrono::milliseconds(100);
  /// Between two batches in which the log is read, so that others get a turn.
  Duration batch_pause = std::chrono::milliseconds(5);
  /// After the storage has failed.
  Duration retry = std::chrono::milliseconds(500);
};

struct SequencerStatus {
  /// The log is being read; `start` refuses.
  bool actualizing = false;
  /// Numbers that are not yet stored.
  std::size_t unflushed = 0;
  /// The offset that was last used, 0 while it is not known; and the one up to which all is stored.
  LogOffset offset = 0;
  LogOffset flushed_offset = 0;
  /// Entries of the log that were read, since the sequencer was opened.
  std::uint64_t scanned = 0;
  /// Calls of the storage that failed, and the last error, until one succeeds.
  std::uint64_t failures = 0;
  std::optional<Error> problem;
  /// The problem is final: the partition has another owner, or the storage was closed.
  bool fenced = false;
};

class SequencerImpl;

/// Hands out the offsets and numbers of one partition. Movable. start, next, flush and actualize are for one thread at
/// a time; status may be called beside them. Calls against the grammar above end the process (see perdure/fatal.h):
/// what follows them would be numbers that are in the log twice.
/// Crash: what is in the log is never handed out again; what is not is.
class PERDURE_EXPORT Sequencer {
 public:
  /// Begins to actualize, and returns at once. Time and threads are those of `store`, which it keeps open; `storage`
  /// need not be in it. An initial value of 0 and a negative cached_max end the process.
  /// Errors: kClosed if the store is.
  [[nodiscard]] static Result<Sequencer> open(Store store, SequencerParams params, std::shared_ptr<SeqStorage> storage);

  Sequencer(Sequencer&&) noexcept;
  Sequencer& operator=(Sequencer&&) noexcept;
  /// Closes it.
  ~Sequencer();

  /// Begins with an event: its offset, one more than the last. Ends the process if the last one was neither flushed nor
  /// actualized, if the kind is unknown, and after close.
  /// Errors, and nothing has begun: kUnavailable while it actualizes; kLimitExceeded while too much is not yet stored;
  /// kStaleToken or kClosed, for good, if the partition is lost.
  [[nodiscard]] Result<LogOffset> start(WorkspaceKind kind, WorkspaceId workspace);

  /// The next number of a sequence of the workspace. Ends the process without `start`, and after close. Blocks if the
  /// number has to be read, and tries again while the storage fails.
  /// Errors, and nothing was drawn: kInvalidArgument for a sequence that its kind does not have, and in callbacks of
  /// the store if it would block; kTooLarge if 2^64 - 1 was drawn; kClosed if it was closed meanwhile; kStaleToken.
  [[nodiscard]] Result<Number> next(SeqId seq);
  /// The same without blocking: `done` is called once, in this call or on one of the store's threads. Until then the
  /// only other call is close.
  void next_async(SeqId seq, std::move_only_function<void(Result<Number>)> done);

  /// The event is in the log. Ends the process without `start`, and after close.
  void flush();
  /// It is not, or perhaps not: whatever is not stored is dropped, and read from the log again. Ends the process
  /// without `start`, and after close.
  void actualize();

  /// Calls `ready` once, in this call or on one of the store's threads, when `start` may be worth a try again, or has
  /// failed for good. Replaces an earlier one; dropped when the sequencer is closed.
  void when_ready(std::move_only_function<void()> ready);
  /// The same as a blocking call: whether it happened within `timeout`; false at once in callbacks of the store, and
  /// when the sequencer is closed meanwhile.
  [[nodiscard]] bool wait_ready(Duration timeout);

  SequencerStatus status() const;

  /// Stops at once, whatever the storage does, and waits for nothing but a call of it that has not returned, for at
  /// most `grace`. What was flushed and not stored is in the log. Idempotent.
  /// Errors: kDeadline if it has not returned by then; it is closed all the same.
  Result<void> close(Duration grace = std::chrono::seconds(1));

 private:
  explicit Sequencer(std::shared_ptr<SequencerImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<SequencerImpl> impl_;
};

}  // namespace perdure
