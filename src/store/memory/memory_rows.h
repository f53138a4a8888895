// Rows in a map, each with the revisions that some reader may still need.
//
// It is a thing of its own, apart from the engine, because the simulator lets several engines share one: each stands
// for a node of a store that all of them have open.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "runtime/mutex.h"
#include "store/engine.h"

namespace perdure::memory {

class MemoryCommit;

/// Thread-safe, but one commit at a time is installed. It must outlive its snapshots and commits.
class MemoryRows {
 public:
  MemoryRows() = default;
  MemoryRows(const MemoryRows&) = delete;
  MemoryRows& operator=(const MemoryRows&) = delete;

  std::unique_ptr<Snapshot> snapshot();
  /// A commit on top of the newest state. Nothing of it is seen by others before `install`.
  std::unique_ptr<MemoryCommit> begin();
  /// Makes the writes of `commit` the newest state; answers its epoch.
  std::uint64_t install(MemoryCommit& commit);

  std::uint64_t epoch();
  Version last_version();
  /// Keeps what `cut_back` to `epoch` or later would need; it only grows. Without it nothing is kept for that.
  void keep_from(std::uint64_t epoch);
  /// Takes back every commit after `epoch`, as a power cut does to what was not synced. `last_version` is that of then.
  void cut_back(std::uint64_t epoch, Version last_version);

  VerifyReport verify();

 private:
  class View;
  class RowsSnapshot;
  friend class MemoryCommit;

  /// A row as of an epoch; no value means that it was erased then.
  struct Revision {
    std::uint64_t epoch;
    std::optional<Versioned> row;
  };
  using History = std::vector<Revision>;

  static const Versioned* at(const History& history, std::uint64_t epoch);
  /// Forgets what nobody can see any more at the key.
  void forget(const Bytes& key, std::uint64_t oldest) PERDURE_REQUIRES(mutex_);
  std::uint64_t oldest_needed() PERDURE_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<Bytes, History, std::less<>> rows_ PERDURE_GUARDED_BY(mutex_);
  /// Keys that were erased while somebody could still see them, by when: whoever walks past them pays for them.
  std::deque<std::pair<std::uint64_t, Bytes>> erased_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t epoch_ PERDURE_GUARDED_BY(mutex_) = 1;
  Version last_version_ PERDURE_GUARDED_BY(mutex_);
  std::multiset<std::uint64_t> open_snapshots_ PERDURE_GUARDED_BY(mutex_);
  std::optional<std::uint64_t> kept_from_ PERDURE_GUARDED_BY(mutex_);
};

/// The writes of one commit on top of the state it began with.
class MemoryCommit final : public CommitView {
 public:
  using Overlay = std::map<Bytes, std::optional<Versioned>, std::less<>>;

  MemoryCommit(MemoryRows& rows, std::uint64_t epoch, Version last_version);
  ~MemoryCommit() override;

  std::uint64_t base_epoch() const override;
  Version last_version() const override { return last_version_; }
  void raise_version(Version version) override { last_version_ = std::max(last_version_, version); }
  Result<std::optional<Versioned>> get(BytesView key) override;
  Result<Version> version_of(BytesView key) override;
  Result<std::vector<Row>> get_range(const RangeRead& read) override;
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override;
  Result<void> put(BytesView key, BytesView value, Version version) override;
  Result<void> erase(BytesView key) override;
  Result<void> erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) override;
  bool has_room() const override { return has_room_; }
  /// For tests: the disk is nearly full.
  void leave_no_room() { has_room_ = false; }

 private:
  friend class MemoryRows;
  const std::unique_ptr<MemoryRows::View> view_;
  Version last_version_;
  bool has_room_ = true;
};

}  // namespace perdure::memory
