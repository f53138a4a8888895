#include "store/write_set.h"

#include <algorithm>

#include "base/hash.h"
#include "store/ranges.h"

namespace perdure {
namespace {

/// What a row costs beyond its bytes, so that a million empty rows are not free.
constexpr std::size_t kRowBytes = 16;

std::size_t stamped_bytes(const Stamped& stamped) {
  return stamped.before.size() + Stamp::kSize + stamped.after.size();
}

std::size_t value_size(const WriteSet::Write& write) {
  if (const auto* set = std::get_if<WriteSet::Set>(&write)) return set->value.size();
  if (const auto* stamped = std::get_if<WriteSet::SetStamped>(&write)) return stamped_bytes(stamped->value);
  return std::holds_alternative<WriteSet::Add>(write) ? sizeof(std::int64_t) : 0;
}

}  // namespace

WriteSet::Write& WriteSet::point(BytesView key, std::size_t value_bytes) {
  auto found = points_.lower_bound(key);
  if (found == points_.end() || found->first != key) {
    bytes_ += key.size() + kRowBytes;
    found = points_.emplace_hint(found, Bytes(key), Clear{});
  }
  bytes_ += value_bytes - value_size(found->second);
  return found->second;
}

void WriteSet::set(BytesView key, BytesView value) {
  point(key, value.size()) = Set{Bytes(value)};
}

void WriteSet::set_stamped(BytesView key, Stamped value) {
  Write& write = point(key, stamped_bytes(value));
  write = SetStamped{std::move(value)};
}

void WriteSet::set_stamped_key(StampedRow row) {
  bytes_ += stamped_bytes(row.key) + kRowBytes;
  bytes_ += std::holds_alternative<Bytes>(row.value) ? std::get<Bytes>(row.value).size()
                                                     : stamped_bytes(std::get<Stamped>(row.value));
  row.clears_before = cleared_.size();
  stamped_names_.insert(hash64(row.key.after, hash64(row.key.before, row.key.order)));
  befores_[row.key.before.size()].insert(hash64(row.key.before));
  stamped_.push_back(std::move(row));
}

void WriteSet::clear(BytesView key) {
  point(key, 0) = Clear{};
}

void WriteSet::clear_range(const KeyRange& range) {
  bytes_ += range.begin.size() + range.end.size() + kRowBytes;
  auto first = points_.lower_bound(range.begin);
  auto last = range.end.empty() ? points_.end() : points_.lower_bound(range.end);
  if (range.end.empty() || range.begin < range.end) points_.erase(first, last);
  cleared_.push_back(range);
}

void WriteSet::add(BytesView key, std::int64_t delta) {
  const Write* before = find(key);
  if (!before) {
    point(key, sizeof delta) = Add{delta};
  } else if (const Add* added = std::get_if<Add>(before)) {
    auto sum = static_cast<std::uint64_t>(added->delta) + static_cast<std::uint64_t>(delta);
    point(key, sizeof delta) = Add{static_cast<std::int64_t>(sum)};
  } else {
    const Set* set = std::get_if<Set>(before);
    auto old = static_cast<std::uint64_t>(set ? decode_counter(set->value) : 0);
    point(key, sizeof delta) = Set{encode_counter(static_cast<std::int64_t>(old + static_cast<std::uint64_t>(delta)))};
  }
}

void WriteSet::reset() {
  points_.clear();
  cleared_.clear();
  stamped_.clear();
  stamped_names_.clear();
  befores_.clear();
  bytes_ = 0;
}

const WriteSet::Write* WriteSet::find(BytesView key) const {
  static const Write kCleared = Clear{};
  if (auto found = points_.find(key); found != points_.end()) return &found->second;
  return in_cleared(key) ? &kCleared : nullptr;
}

bool WriteSet::in_cleared(BytesView key) const {
  return std::ranges::any_of(cleared_, [key](const KeyRange& range) { return range.contains(key); });
}

bool WriteSet::has_stamped_key(const Stamped& key) const {
  return stamped_names_.contains(hash64(key.after, hash64(key.before, key.order)));
}

bool WriteSet::unreadable(BytesView key) const {
  // There may be thousands of stamped rows, and hardly ever one that the key could be.
  bool possible = std::ranges::any_of(befores_, [key](const auto& of_size) {
    return of_size.first < key.size() && of_size.second.contains(hash64(key.substr(0, of_size.first)));
  });
  if (possible && std::ranges::any_of(stamped_, [key](const StampedRow& row) {
        return key.size() == stamped_bytes(row.key) && key.starts_with(row.key.before) && key.ends_with(row.key.after);
      }))
    return true;
  auto found = points_.find(key);
  return found != points_.end() && std::holds_alternative<SetStamped>(found->second);
}

bool WriteSet::unreadable(const KeyRange& range) const {
  for (const StampedRow& row : stamped_) {
    // Any stamp may still come, so the row may land anywhere among the keys that begin with `before`.
    BytesView before = row.key.before, begin = range.begin;
    if ((range.end.empty() || before < range.end) && begin.substr(0, before.size()) <= before) return true;
  }
  for (auto at = points_.lower_bound(range.begin); at != points_.end() && range.contains(at->first); ++at)
    if (std::holds_alternative<SetStamped>(at->second)) return true;
  return false;
}

bool WriteSet::cleared_after(const StampedRow& row, BytesView key) const {
  return std::any_of(cleared_.begin() + static_cast<std::ptrdiff_t>(row.clears_before), cleared_.end(),
                     [key](const KeyRange& range) { return range.contains(key); });
}

}  // namespace perdure
