#pragma once

#include "store/remote/replica.h"

namespace perdure::remote {

/// What the replica showed when it was taken.
class ReplicaSnapshot final : public Snapshot {
 public:
  explicit ReplicaSnapshot(Replica& replica) : replica_(replica), at_(replica.open_view()) {}
  ~ReplicaSnapshot() override { replica_.close_view(at_); }

  std::uint64_t epoch() const override { return at_.number; }
  bool retired() const override { return lost_; }
  Result<std::optional<Versioned>> get(BytesView key) override { return noting(replica_.get(at_, key)); }
  Result<Version> version_of(BytesView key) override { return noting(replica_.version_of(at_, key)); }
  Result<std::vector<Row>> get_range(const RangeRead& read) override;
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override;
  Result<std::vector<std::optional<Versioned>>> get_many(std::span<const Bytes> keys) override;
  Result<std::vector<std::vector<Row>>> get_ranges(std::span<const RangeRead> reads) override;

 private:
  template <class T>
  Result<T> noting(Result<T> result) {
    lost_ |= !result && result.error().code == ErrorCode::kConflict;
    return result;
  }

  Replica& replica_;
  const Version at_;
  bool lost_ = false;
};

/// A batch in the making, on top of what the replica showed when it was begun.
class BatchView final : public CommitView {
 public:
  /// `confirmed`: where the log is known to have ended at a time after the job was last applied; 0 if that is not
  /// known.
  BatchView(Replica& replica, Version confirmed)
      : replica_(replica),
        base_(replica.open_view()),
        is_confirmed_(confirmed != Version{} && base_ >= confirmed),
        last_(base_) {}
  ~BatchView() override { replica_.close_view(base_); }

  Version base() const { return base_; }
  const Writes& writes() const { return writes_; }
  Writes take_writes() { return std::move(writes_); }
  /// Whether others have committed meanwhile, so that it has to be made anew.
  bool beaten() const { return replica_.version() != base_; }

  std::uint64_t base_epoch() const override { return base_.number; }
  Version last_version() const override { return last_; }
  bool confirmed() const override { return is_confirmed_; }
  void raise_version(Version version) override { last_ = std::max(last_, version); }
  Result<std::optional<Versioned>> get(BytesView key) override;
  Result<Version> version_of(BytesView key) override;
  Result<std::vector<Row>> get_range(const RangeRead& read) override;
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override;
  Result<void> put(BytesView key, BytesView value, Version version) override;
  Result<void> erase(BytesView key) override;
  Result<void> erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) override;

 private:
  /// Calls `visit(key, row)` for the rows of both, in order, until it returns false.
  Result<void> scan(const KeyRange& range, const RangeOptions& wanted, const RowCache::Visit& visit);

  Replica& replica_;
  const Version base_;
  const bool is_confirmed_;
  Version last_;
  Writes writes_;
};

}  // namespace perdure::remote
