#include "store/memory/memory_rows.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace perdure::memory {

const Versioned* MemoryRows::at(const History& history, std::uint64_t epoch) {
  for (auto revision = history.rbegin(); revision != history.rend(); ++revision)
    if (revision->epoch <= epoch) return revision->row ? &*revision->row : nullptr;
  return nullptr;
}

/// Reads as of an epoch. Commits put their own writes on top.
class MemoryRows::View {
 public:
  using Overlay = MemoryCommit::Overlay;

  View(MemoryRows& rows, std::uint64_t epoch) : rows_(rows), epoch_(epoch) {}

  std::uint64_t epoch() const { return epoch_; }
  Overlay& overlay() { return overlay_; }

  std::optional<Versioned> get(BytesView key) {
    if (auto own = overlay_.find(key); own != overlay_.end()) return own->second;
    MutexLock lock(rows_.mutex_);
    auto found = rows_.rows_.find(key);
    if (found == rows_.rows_.end()) return std::nullopt;
    const Versioned* row = at(found->second, epoch_);
    return row ? std::optional(*row) : std::nullopt;
  }

  /// Calls `visit(key, row)` in order until it returns false. It costs as much as it visits.
  template <class F>
  void scan(const KeyRange& range, Direction direction, F visit) {
    if (range.empty()) return;
    MutexLock lock(rows_.mutex_);
    auto [stored, stored_end] = within(rows_.rows_, range);
    auto [own, own_end] = within(overlay_, range);
    if (direction == Direction::kForward)
      merge(stored, stored_end, own, own_end, std::less<BytesView>(), visit);
    else
      merge(std::reverse_iterator(stored_end), std::reverse_iterator(stored), std::reverse_iterator(own_end),
            std::reverse_iterator(own), std::greater<BytesView>(), visit);
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
  template <class Map>
  static auto within(Map& map, const KeyRange& range) {
    return std::pair(map.lower_bound(range.begin), range.end.empty() ? map.end() : map.lower_bound(range.end));
  }
  /// What this commit has written goes before what is stored.
  template <class Stored, class Own, class Before, class F>
  void merge(Stored stored, Stored stored_end, Own own, Own own_end, Before before, F& visit) {
    while (stored != stored_end || own != own_end) {
      if (own == own_end || (stored != stored_end && before(stored->first, own->first))) {
        const Versioned* row = at(stored->second, epoch_);
        if (row && !visit(BytesView(stored->first), *row)) return;
        ++stored;
      } else {
        if (stored != stored_end && stored->first == own->first) ++stored;
        if (own->second && !visit(BytesView(own->first), *own->second)) return;
        ++own;
      }
    }
  }

  MemoryRows& rows_;
  const std::uint64_t epoch_;
  Overlay overlay_;
};

class MemoryRows::RowsSnapshot final : public Snapshot {
 public:
  RowsSnapshot(MemoryRows& rows, std::uint64_t epoch) : rows_(rows), view_(rows, epoch) {}
  ~RowsSnapshot() override {
    MutexLock lock(rows_.mutex_);
    rows_.open_snapshots_.erase(rows_.open_snapshots_.find(view_.epoch()));
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
  MemoryRows& rows_;
  View view_;
};

MemoryCommit::MemoryCommit(MemoryRows& rows, std::uint64_t epoch, Version last_version)
    : view_(std::make_unique<MemoryRows::View>(rows, epoch)), last_version_(last_version) {}

MemoryCommit::~MemoryCommit() = default;

std::uint64_t MemoryCommit::base_epoch() const {
  return view_->epoch();
}

Result<std::optional<Versioned>> MemoryCommit::get(BytesView key) {
  return view_->get(key);
}

Result<Version> MemoryCommit::version_of(BytesView key) {
  auto row = view_->get(key);
  return row ? row->version : Version{};
}

Result<std::vector<Row>> MemoryCommit::get_range(const RangeRead& read) {
  return view_->get_range(read);
}

Result<Fingerprint> MemoryCommit::fingerprint(const KeyRange& range, std::uint64_t rows_max) {
  return view_->fingerprint(range, rows_max);
}

Result<void> MemoryCommit::put(BytesView key, BytesView value, Version version) {
  raise_version(version);
  view_->overlay().insert_or_assign(Bytes(key), Versioned{Bytes(value), version});
  return {};
}

Result<void> MemoryCommit::erase(BytesView key) {
  view_->overlay().insert_or_assign(Bytes(key), std::nullopt);
  return {};
}

Result<void> MemoryCommit::erase_range(const KeyRange& range, const std::function<void(BytesView)>& erased) {
  std::vector<Bytes> keys;
  view_->scan(range, Direction::kForward, [&](BytesView key, const Versioned&) {
    keys.emplace_back(key);
    return true;
  });
  for (Bytes& key : keys) {
    erased(key);
    view_->overlay().insert_or_assign(std::move(key), std::nullopt);
  }
  return {};
}

std::unique_ptr<Snapshot> MemoryRows::snapshot() {
  MutexLock lock(mutex_);
  open_snapshots_.insert(epoch_);
  return std::make_unique<RowsSnapshot>(*this, epoch_);
}

std::unique_ptr<MemoryCommit> MemoryRows::begin() {
  MutexLock lock(mutex_);
  return std::make_unique<MemoryCommit>(*this, epoch_, last_version_);
}

std::uint64_t MemoryRows::oldest_needed() {
  std::uint64_t oldest = open_snapshots_.empty() ? epoch_ : *open_snapshots_.begin();
  return kept_from_ ? std::min(oldest, *kept_from_) : oldest;
}

std::uint64_t MemoryRows::install(MemoryCommit& commit) {
  MutexLock lock(mutex_);
  ++epoch_;
  last_version_ = commit.last_version();
  std::uint64_t oldest = oldest_needed();
  for (auto& [key, row] : commit.view_->overlay()) {
    if (!row && epoch_ > oldest) erased_.emplace_back(epoch_, key);
    rows_[key].push_back({epoch_, std::move(row)});
    forget(key, oldest);
  }
  for (; !erased_.empty() && erased_.front().first <= oldest; erased_.pop_front())
    forget(erased_.front().second, oldest);
  return epoch_;
}

void MemoryRows::forget(const Bytes& key, std::uint64_t oldest) {
  auto found = rows_.find(key);
  if (found == rows_.end()) return;
  History& history = found->second;
  // Of the revisions that every snapshot is past, only the newest can still be seen.
  auto keep = std::ranges::find_if(history, [oldest](const Revision& revision) { return revision.epoch > oldest; });
  if (keep != history.begin()) history.erase(history.begin(), keep - 1);
  if (history.size() == 1 && !history.front().row && history.front().epoch <= oldest) rows_.erase(found);
}

std::uint64_t MemoryRows::epoch() {
  MutexLock lock(mutex_);
  return epoch_;
}

Version MemoryRows::last_version() {
  MutexLock lock(mutex_);
  return last_version_;
}

void MemoryRows::keep_from(std::uint64_t epoch) {
  MutexLock lock(mutex_);
  kept_from_ = epoch;
}

void MemoryRows::cut_back(std::uint64_t epoch, Version last_version) {
  MutexLock lock(mutex_);
  for (auto row = rows_.begin(); row != rows_.end();) {
    std::erase_if(row->second, [epoch](const Revision& revision) { return revision.epoch > epoch; });
    row = row->second.empty() ? rows_.erase(row) : std::next(row);
  }
  // An epoch is never used twice: what it named before the cut is not what it would name now.
  ++epoch_;
  last_version_ = last_version;
}

VerifyReport MemoryRows::verify() {
  VerifyReport report;
  MutexLock lock(mutex_);
  for (auto& [key, history] : rows_) {
    const Versioned* row = at(history, epoch_);
    if (!row) continue;
    ++report.rows;
    report.bytes += key.size() + row->value.size();
  }
  return report;
}

}  // namespace perdure::memory
