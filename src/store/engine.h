// What perdure asks of a place to keep its rows.
//
// An engine gives consistent snapshots to read from, and applies one batch of writes at a time, atomically and durably.
// It knows nothing of transactions: which of them may commit, on what they conflict and in what order they stand in a
// batch is decided by the Committer, once for all engines, inside CommitJob::apply. That is why the contract fits an
// embedded B-tree (apply runs under the writer lock), a database behind a network (apply runs under a commit lock, or
// optimistically on prefetched rows, and then perhaps again) and the simulator alike.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perdure/error.h"
#include "perdure/store.h"
#include "perdure/transaction.h"

namespace perdure {

/// How a key is named among those that changed. The low bits are free for engines that pass it on.
inline constexpr std::uint64_t kWatchHashMask = ~std::uint64_t{63};
std::uint64_t watch_hash(BytesView key);

struct Versioned {
  Bytes value;
  Version version;
};

/// A summary of the keys and versions in a range: equal fingerprints mean that nothing was written there in between.
class Fingerprint {
 public:
  void add(BytesView key, Version version);
  std::uint64_t rows() const { return rows_; }
  bool operator==(const Fingerprint&) const = default;

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t hash_ = 0;
};

/// The store at one moment. Not thread-safe. Keys are within the limits.
class ReadView {
 public:
  virtual ~ReadView() = default;
  virtual Result<std::optional<Versioned>> get(BytesView key) = 0;
  /// The version of `key`, 0 if it is absent: what validation needs.
  virtual Result<Version> version_of(BytesView key) = 0;
  virtual Result<std::vector<Row>> get_range(const RangeRead& read) = 0;
  /// Over at most `rows_max` rows of `range`, from its beginning.
  virtual Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) = 0;
  /// Many reads at once. The defaults do one after another; engines across a network answer them in one round trip.
  virtual Result<std::vector<std::optional<Versioned>>> get_many(std::span<const Bytes> keys);
  virtual Result<std::vector<std::vector<Row>>> get_ranges(std::span<const RangeRead> reads);
};

/// A view that stays as it is while others commit.
class Snapshot : public ReadView {
 public:
  /// Names the contents: views of one engine with equal epochs show the same rows.
  virtual std::uint64_t epoch() const = 0;
  /// An engine may take a snapshot back that is held for long, since keeping old rows alive costs it space. Every read
  /// then fails, and the transaction goes on with a new snapshot if what it has read is unchanged there.
  virtual bool retired() const { return false; }
};

/// The store inside a commit: the newest state, and the writes so far of this batch on top of it.
class CommitView : public ReadView {
 public:
  /// Of the snapshots that show exactly what this view began with.
  virtual std::uint64_t base_epoch() const = 0;
  /// The newest version in the store. Each put raises it to its own.
  virtual Version last_version() const = 0;
  /// The same for a transaction that may have put nothing: its version is used up all the same.
  virtual void raise_version(Version version) = 0;
  virtual Result<void> put(BytesView key, BytesView value, Version version) = 0;
  virtual Result<void> erase(BytesView key) = 0;
  /// Erases every key of the range and tells `erased` of each.
  virtual Result<void> erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) = 0;
  /// Whether all that it shows was so at some time after the job was last applied. A job that writes nothing then need
  /// not be confirmed, provided that it answers nobody who came later.
  virtual bool confirmed() const { return false; }
  /// Room left for what only adds to the store: false when just the reserve is left.
  virtual bool has_room() const { return true; }
};

enum class Applied {
  kSomething,
  kNothing,       ///< There is nothing to make durable.
  kNothingToTell  ///< Nor is anybody answered.
};

/// One batch. The engine calls `apply` (more than once if it had to start over), and when the writes are durable or
/// known not to be, `done`, both on a thread of its choosing, never at the same time.
class CommitJob {
 public:
  virtual ~CommitJob() = default;
  /// An error abandons the batch. After kNothing, what it read must be durable all the same before `done`, for those
  /// whom it answers.
  virtual Result<Applied> apply(CommitView& view) = 0;
  /// Hashes (watch_hash) of the keys that the last apply wrote: what other processes' watches are woken by.
  virtual std::span<const std::uint64_t> changed_keys() const = 0;
  /// The outcome: durable; without effect (any error but the next two); kCommitUnknown; kStoreFailed for good, with an
  /// unknown effect.
  virtual void done(Result<void> outcome) = 0;
};

/// Told of changes that others made. Calls come on the engine's threads, and may be late, repeated or too many.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  virtual void keys_changed(std::span<const std::uint64_t> key_hashes) = 0;
  /// Something changed, and what is not known: every watch must look again.
  virtual void anything_changed() = 0;
};

struct Capabilities {
  std::string name;
  Limits limits;
  bool durable = true;
  /// Whether apply's reads cost a network round trip: then bodies are run before the commit, never inside it.
  bool remote = false;
  /// Whether a read of what was not read before costs a round trip, also in apply. Short bodies are then run once
  /// before the commit too: what they need is known when it begins, and mostly they need not be run again.
  bool far_reads = false;
  /// A batch that has grown beyond this takes no more: what it changes is in memory until the sync.
  std::size_t batch_bytes_max = 16 << 20;
  /// Whether `done` may say kCommitUnknown. The store then keeps a row with the number of its last batch.
  bool unknown_commits = false;
  /// Whether what a snapshot shows is as durable as what was acknowledged. A PostgreSQL that waits for a standby shows
  /// a commit which it did not wait for to the end; only a later one that it did says that the standby has both.
  bool what_is_read_lasts = true;
  /// Whether a body that only reads may be run again, because its answer turned out to be of the past.
  bool reads_may_rerun = false;
  /// Whether a thread may block until its call is answered. In a simulation one thread runs everything: it would wait
  /// for itself.
  bool blocking_calls = true;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Whether there was nothing when it was opened, so that the store was made then: for people who are told so.
  virtual bool was_new() const { return false; }

  virtual Result<std::unique_ptr<Snapshot>> snapshot() = 0;
  /// Whether everything that the snapshot with this epoch shows is durable, and was the newest that there is when it
  /// was taken: a reader's answer must neither be taken back by a power cut nor come from the past.
  virtual bool is_durable(std::uint64_t epoch) = 0;
  /// Calls `then` on a thread of the engine, never inside this call, once that is known. kConflict: others have
  /// committed since; snapshots that are taken from now on are newer than this call, and need not be asked about.
  virtual void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) = 0;
  /// Begins to commit; one job at a time.
  virtual void commit(CommitJob& job) = 0;

  /// At most one listener; none stops the calls, and waits for one that is running.
  virtual void listen(ChangeListener* listener) = 0;

  /// Names this process's share in the store among all that have it open, now or ever; empty if the engine cannot tell
  /// who is gone.
  virtual Bytes presence() const { return {}; }
  /// Whether the one that `presence` names is surely gone, and will never write again. A death that is noticed is told
  /// to the listener as a change of anything.
  virtual bool is_gone(BytesView presence) {
    (void)presence;
    return false;
  }
  /// Called now and then with a version that the store has reached: an engine whose changes can get lost on their way
  /// tells its listener that anything may have changed, unless it has told of everything up to there.
  virtual void catch_up(Version reached) { (void)reached; }

  virtual Result<VerifyReport> verify(const std::function<void(double)>& progress) = 0;
  virtual Result<void> backup(const std::string& path) = 0;
};

}  // namespace perdure
