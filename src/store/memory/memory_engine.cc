#include "store/memory/memory_engine.h"

#include <algorithm>

namespace perdure::memory {

const Versioned* MemoryEngine::at(const History& history, std::uint64_t epoch) {
  for (auto revision = history.rbegin(); revision != history.rend(); ++revision)
    if (revision->epoch <= epoch) return revision->row ? &*revision->row : nullptr;
  return nullptr;
}

/// Reads as of an epoch. Commits put their own writes on top.
class MemoryEngine::View {
 public:
  using Overlay = std::map<Bytes, std::optional<Versioned>, std::less<>>;

  View(MemoryEngine& engine, std::uint64_t epoch) : engine_(engine), epoch_(epoch) {}

  std::uint64_t epoch() const { return epoch_; }
  Overlay& overlay() { return overlay_; }

  std::optional<Versioned> get(BytesView key) {
    if (auto own = overlay_.find(key); own != overlay_.end()) return own->second;
    MutexLock lock(engine_.mutex_);
    auto found = engine_.rows_.find(key);
    if (found == engine_.rows_.end()) return std::nullopt;
    const Versioned* row = at(found->second, epoch_);
    return row ? std::optional(*row) : std::nullopt;
  }

  /// Calls `visit(key, row)` in order until it returns false.
  template <class F>
  void scan(const KeyRange& range, Direction direction, F visit) {
    if (range.empty()) return;
    // Both maps are small enough in tests to be merged whole.
    std::map<BytesView, const Versioned*> merged;
    MutexLock lock(engine_.mutex_);
    for (auto row = engine_.rows_.lower_bound(range.begin); row != engine_.rows_.end() && range.contains(row->first);
         ++row)
      if (overlay_.empty() && direction == Direction::kForward) {
        const Versioned* value = at(row->second, epoch_);
        if (value && !visit(BytesView(row->first), *value)) return;
      } else if (const Versioned* value = at(row->second, epoch_)) {
        merged[row->first] = value;
      }
    for (auto own = overlay_.lower_bound(range.begin); own != overlay_.end() && range.contains(own->first); ++own) {
      merged.erase(own->first);
      if (own->second) merged[own->first] = &*own->second;
    }
    if (direction == Direction::kForward) {
      for (auto& [key, row] : merged)
        if (!visit(key, *row)) return;
    } else {
      for (auto row = merged.rbegin(); row != merged.rend(); ++row)
        if (!visit(row->first, *row->second)) return;
    }
  }

  std::vector<Row> get_range(const RangeRead& read) {
    std::vector<Row> rows;
    if (read.options.limit == 0) return rows;
    scan(read.range, read.options.direction, [&](BytesView key, const Versioned& row) {
      rows.push_back({Bytes(key), row.value, row.version});
      return rows.size() < read.options.limit;
    });
    return rows;
  }

  Fingerprint fingerprint(const KeyRange& range, std::uint64_t rows_max) {
    Fingerprint fingerprint;
    if (rows_max == 0) return fingerprint;
    scan(range, Direction::kForward, [&](BytesView key, const Versioned& row) {
      fingerprint.add(key, row.version);
      return fingerprint.rows() < rows_max;
    });
    return fingerprint;
  }

 private:
  MemoryEngine& engine_;
  const std::uint64_t epoch_;
  Overlay overlay_;
};

class MemoryEngine::MemorySnapshot final : public Snapshot {
 public:
  MemorySnapshot(MemoryEngine& engine, std::uint64_t epoch) : engine_(engine), view_(engine, epoch) {}
  ~MemorySnapshot() override {
    MutexLock lock(engine_.mutex_);
    engine_.open_snapshots_.erase(engine_.open_snapshots_.find(view_.epoch()));
  }

  std::uint64_t epoch() const override { return view_.epoch(); }
  Result<std::optional<Versioned>> get(BytesView key) override { return view_.get(key); }
  Result<Version> version_of(BytesView key) override {
    auto row = view_.get(key);
    return row ? row->version : Version{};
  }
  Result<std::vector<Row>> get_range(const RangeRead& read) override { return view_.get_range(read); }
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override {
    return view_.fingerprint(range, rows_max);
  }

 private:
  MemoryEngine& engine_;
  View view_;
};

class MemoryEngine::MemoryCommit final : public CommitView {
 public:
  MemoryCommit(MemoryEngine& engine, std::uint64_t epoch, Version last_version)
      : view(engine, epoch), last_version_(last_version) {}

  std::uint64_t base_epoch() const override { return view.epoch(); }
  Version last_version() const override { return last_version_; }
  void raise_version(Version version) override { last_version_ = std::max(last_version_, version); }
  Result<std::optional<Versioned>> get(BytesView key) override { return view.get(key); }
  Result<Version> version_of(BytesView key) override {
    auto row = view.get(key);
    return row ? row->version : Version{};
  }
  Result<std::vector<Row>> get_range(const RangeRead& read) override { return view.get_range(read); }
  Result<Fingerprint> fingerprint(const KeyRange& range, std::uint64_t rows_max) override {
    return view.fingerprint(range, rows_max);
  }
  Result<void> put(BytesView key, BytesView value, Version version) override {
    raise_version(version);
    view.overlay().insert_or_assign(Bytes(key), Versioned{Bytes(value), version});
    return {};
  }
  Result<void> erase(BytesView key) override {
    view.overlay().insert_or_assign(Bytes(key), std::nullopt);
    return {};
  }
  Result<void> erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) override {
    std::vector<Bytes> keys;
    view.scan(range, Direction::kForward, [&](BytesView key, const Versioned&) {
      keys.emplace_back(key);
      return true;
    });
    for (Bytes& key : keys) {
      erased(key);
      view.overlay().insert_or_assign(std::move(key), std::nullopt);
    }
    return {};
  }

  View view;

 private:
  Version last_version_;
};

MemoryEngine::MemoryEngine(Scheduler& scheduler)
    : capabilities_{.name = "memory", .limits = {}, .durable = false}, lane_(scheduler.lane("perdure-commit")) {}

Result<std::unique_ptr<Snapshot>> MemoryEngine::snapshot() {
  MutexLock lock(mutex_);
  open_snapshots_.insert(epoch_);
  return std::make_unique<MemorySnapshot>(*this, epoch_);
}

void MemoryEngine::when_durable(std::uint64_t, std::move_only_function<void(Result<void>)> then) {
  lane_->post([then = std::move(then)]() mutable { then({}); });
}

void MemoryEngine::commit(CommitJob& job) {
  lane_->post([this, &job] { run(job); });
}

void MemoryEngine::run(CommitJob& job) {
  std::optional<MemoryCommit> commit;
  {
    MutexLock lock(mutex_);
    commit.emplace(*this, epoch_, last_version_);
  }
  auto applied = job.apply(*commit);
  if (applied && *applied == Applied::kSomething) {
    MutexLock lock(mutex_);
    install(*commit);
  }
  job.done(applied ? Result<void>() : Result<void>(std::unexpected(std::move(applied.error()))));
}

void MemoryEngine::install(MemoryCommit& commit) {
  ++epoch_;
  last_version_ = commit.last_version();
  std::uint64_t oldest = open_snapshots_.empty() ? epoch_ : *open_snapshots_.begin();
  for (auto& [key, row] : commit.view.overlay()) {
    History& history = rows_[key];
    history.push_back({epoch_, std::move(row)});
    // Of the revisions that every snapshot is past, only the newest can still be seen.
    auto keep = std::ranges::find_if(history, [oldest](const Revision& revision) { return revision.epoch > oldest; });
    if (keep != history.begin()) history.erase(history.begin(), keep - 1);
    if (history.size() == 1 && !history.front().row && history.front().epoch <= oldest) rows_.erase(key);
  }
}

Result<VerifyReport> MemoryEngine::verify(const std::function<void(double)>& progress) {
  VerifyReport report;
  MutexLock lock(mutex_);
  for (auto& [key, history] : rows_) {
    const Versioned* row = at(history, epoch_);
    if (!row) continue;
    ++report.rows;
    report.bytes += key.size() + row->value.size();
  }
  if (progress) progress(1);
  return report;
}

Result<void> MemoryEngine::backup(const std::string&) {
  return fail(ErrorCode::kInvalidArgument, "a memory: store has nothing to back up; use lmdb:DIR");
}

}  // namespace perdure::memory
