#pragma once

#include <lmdb.h>

#include <atomic>
#include <list>
#include <mutex>

#include "runtime/mutex.h"
#include "store/engine.h"
#include "store/lmdb/environment.h"

namespace perdure::lmdb {

/// Reads through one LMDB transaction, checking every row that it hands out.
class RowReader {
 public:
  explicit RowReader(const Environment& environment) : environment_(environment) {}

  Result<std::optional<Versioned>> get(MDB_txn* txn, BytesView key) const;
  Result<Version> version_of(MDB_txn* txn, BytesView key) const;
  Result<std::vector<Row>> get_range(MDB_txn* txn, const RangeRead& read) const;
  Result<Fingerprint> fingerprint(MDB_txn* txn, const KeyRange& range, std::uint64_t rows_max) const;

  Error damaged(BytesView key) const;
  Error failed(int code) const;

 private:
  const Environment& environment_;
};

class LmdbEngine;

/// A read transaction of LMDB, which may be taken back while nobody is inside a read: see Snapshot::retired.
class LmdbSnapshot final : public Snapshot {
 public:
  LmdbSnapshot(LmdbEngine& engine, MDB_txn* txn, SteadyTime opened);
  ~LmdbSnapshot() override;

  std::uint64_t epoch() const override { return epoch_; }
  bool retired() const override { return retired_; }
  Result<std::optional<Versioned>> get(BytesView key) override;
  Result<Version> version_of(BytesView key) override;
  Result<std::vector<Row>> get_range(const RangeRead& read) override;
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override;

  SteadyTime opened() const { return opened_; }
  /// Gives LMDB its pages back, unless a read is going on right now. Any thread.
  void retire();
  /// The same, after waiting for the read to end.
  void retire_for_sure();

 private:
  friend class LmdbEngine;
  template <class F>
  auto reading(F read) -> decltype(read());
  void retire_locked();

  LmdbEngine& engine_;
  const SteadyTime opened_;
  std::uint64_t epoch_;
  std::atomic<bool> retired_ = false;
  std::mutex mutex_;
  MDB_txn* txn_;
  /// Place in the engine's list of open snapshots, guarded by the engine.
  std::list<LmdbSnapshot*>::iterator place_;
};

/// The write transaction of one commit.
class LmdbCommit final : public CommitView {
 public:
  LmdbCommit(const Environment& environment, MDB_txn* txn, bool has_room);

  /// Reads the version counter; before any other use.
  Result<void> begin();
  /// Writes it back; after the last put.
  Result<void> finish();

  std::uint64_t base_epoch() const override { return mdb_txn_id(txn_) - 1; }
  Version last_version() const override { return last_version_; }
  void raise_version(Version version) override { last_version_ = std::max(last_version_, version); }
  bool has_room() const override { return has_room_; }
  Result<std::optional<Versioned>> get(BytesView key) override { return reader_.get(txn_, key); }
  Result<Version> version_of(BytesView key) override { return reader_.version_of(txn_, key); }
  Result<std::vector<Row>> get_range(const RangeRead& read) override { return reader_.get_range(txn_, read); }
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override {
    return reader_.fingerprint(txn_, range, rows_max);
  }
  Result<void> put(BytesView key, BytesView value, Version version) override;
  Result<void> erase(BytesView key) override;
  Result<void> erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) override;

 private:
  const Environment& environment_;
  RowReader reader_;
  MDB_txn* const txn_;
  const bool has_room_;
  Version last_version_;
};

}  // namespace perdure::lmdb
