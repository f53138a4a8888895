#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "perdure/transaction.h"
#include "store/change_notes.h"
#include "store/engine.h"
#include "store/watches.h"
#include "store/write_set.h"

namespace perdure {

/// One run of a body: what it reads from, what it has read, and what it will write.
///
/// Optimistic runs read from a snapshot, taken at the first read, and remember what they saw so that the commit can
/// validate it. Runs inside a commit read from the commit's own view and need no validation: nobody else can write.
class TransactionState {
 public:
  /// Whether what is noted for the feed of changes is written, or forgotten.
  enum class Feed { kOff, kOn };
  TransactionState(Engine& engine, WatchRegistry& watches, Feed feed)
      : engine_(engine), watches_registry_(watches), feed_(feed) {}
  ~TransactionState() { reset(); }
  TransactionState(const TransactionState&) = delete;
  TransactionState& operator=(const TransactionState&) = delete;

  using BodyFn = std::move_only_function<Result<void>(Transaction&)>;

  /// Runs `body` from a clean slate, on snapshots of the engine.
  Result<void> run(BodyFn& body);
  /// The same inside a commit, on its view.
  Result<void> run_in(CommitView& view, BodyFn& body);

  // What a finished run left.
  const WriteSet& writes() const { return writes_; }
  /// Of the snapshot it read from; empty if it read nothing.
  std::optional<std::uint64_t> epoch() const;
  /// Whether it was given up because of what others did, and is to be run again. An error that the body itself returned
  /// never says so, whatever its code.
  bool beaten() const { return error_ && error_->code == ErrorCode::kConflict; }
  /// Whether what it read is known, so that it can be seen whether it still holds: not after a run in a commit.
  bool can_be_validated() const { return ran_outside_; }
  /// Whether the engine could not answer it. Any other error is made of what was read, and is no truer than that.
  bool unanswered() const { return unanswered_; }
  /// Gives the snapshot back early: nothing is held while the commit is waited for.
  void release_snapshot() { snapshot_.reset(); }
  /// Which of its reads a transaction depends on.
  enum class Reads {
    kConflicting,  ///< Those that the commit hangs on.
    kAll           ///< Snapshot reads too: what the body has seen so far, as one moment.
  };
  /// Whether what was read is unchanged in `view`.
  Result<bool> still_valid(ReadView& view, Reads which) const;
  /// Arms the watches: the run has committed with `version`, 0 if it wrote nothing.
  void arm_watches(Version version);
  /// Back to the clean slate; watches that were not armed are cancelled.
  void reset();

  // For Reader and Transaction.
  std::optional<Bytes> get(BytesView key, bool record);
  std::vector<std::optional<Bytes>> get_many(std::span<const Bytes> keys, bool record);
  std::vector<Row> get_range(const RangeRead& read, bool record);
  std::vector<std::vector<Row>> get_ranges(std::span<const RangeRead> reads, bool record);
  void set(BytesView key, BytesView value);
  void clear(BytesView key);
  void clear_range(const KeyRange& range);
  void add(BytesView key, std::int64_t delta);
  void set_stamped(Bytes key, const Stamped& value);
  void set_stamped(WriteSet::StampedRow row);
  Watch watch(BytesView key);
  void note_read(BytesView key);
  void note_read(const KeyRange& range);

  /// What is told to the host's histograms once it has committed.
  std::span<const std::pair<Metric, Duration>> observed() const { return observed_; }

 private:
  struct KeyRead {
    Bytes key;
    Version version;
    bool conflicts = true;
  };
  struct RangeReadNote {
    KeyRange range;
    Fingerprint fingerprint;
    bool conflicts = true;
  };
  struct PendingWatch {
    std::shared_ptr<WatchState> watch;
    Bytes key;
  };
  /// Leaves the body; error_ says why.
  struct Abandoned {};

  Result<void> call(BodyFn& body);
  /// A row of the feed for each space that something was noted of.
  void write_notes();
  [[noreturn]] void abandon(Error error);
  /// The same, since the engine failed.
  [[noreturn]] void abandon_unanswered(Error error);
  void fail_commit(Error error);
  ReadView& view();
  /// Takes a new snapshot in place of one that the engine took back, if what was read is the same there.
  void renew();
  /// Calls `read` on the view, on a new one if the engine took the old one back.
  template <class F>
  auto reading(F read);

  friend class SystemAccess;
  KeyRange within_allowed_keys(const KeyRange& range);
  bool check_key(BytesView key);
  bool check_value(BytesView key, std::size_t bytes);
  bool check_counter(BytesView key);
  void check_total();
  void check_readable(BytesView key);
  void check_readable(const KeyRange& range);
  void record_key(BytesView key, Version version, bool conflicts);

  /// A range read that merges the rows of the view with the pending writes.
  class Merge;

  Engine& engine_;
  WatchRegistry& watches_registry_;
  const Feed feed_;
  CommitView* commit_view_ = nullptr;
  std::unique_ptr<Snapshot> snapshot_;
  std::optional<std::uint64_t> epoch_;
  bool ran_outside_ = false;
  std::vector<KeyRead> key_reads_;
  std::vector<RangeReadNote> range_reads_;
  WriteSet writes_;
  std::vector<PendingWatch> watches_;
  std::optional<Error> error_;
  bool unanswered_ = false;
  bool system_access_ = false;
  std::uint32_t next_order_ = 0;
  ChangeNotes notes_;
  std::vector<std::pair<Metric, Duration>> observed_;
};

template <class F>
auto TransactionState::reading(F read) {
  // Each renewal needs the engine to have taken back a snapshot, which it does only to long-held ones; the bound is for
  // an engine that takes back every snapshot at once.
  for (int renewals = 0;; ++renewals) {
    auto answer = read(view());
    if (answer) return std::move(*answer);
    if (!snapshot_ || !snapshot_->retired() || renewals == 100) abandon_unanswered(std::move(answer.error()));
    renew();
  }
}

}  // namespace perdure
