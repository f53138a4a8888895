#include "store/remote/memory_server.h"

#include <algorithm>

namespace perdure::remote {

Moment MemoryLog::read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) {
  MutexLock lock(mutex_);
  Moment moment{.end = end_, .folded = folded_, .trimmed = trimmed_, .log = {}, .values = {}, .ranges = {}};
  auto entry = log_.upper_bound(since >= trimmed_ ? since : folded_);
  for (; entry != log_.end(); ++entry) moment.log.push_back({entry->first, entry->second});
  for (const Bytes& key : keys) {
    auto row = rows_.find(key);
    moment.values.push_back(row == rows_.end() ? std::nullopt : std::optional(row->second));
  }
  for (const RangeRead& read : ranges) moment.ranges.push_back(range(read));
  return moment;
}

std::vector<Row> MemoryLog::range(const RangeRead& read) const {
  std::vector<Row> rows;
  if (read.range.empty() || read.options.limit == 0) return rows;
  auto first = rows_.lower_bound(read.range.begin);
  auto last = read.range.end.empty() ? rows_.end() : rows_.lower_bound(read.range.end);
  while (first != last && rows.size() < read.options.limit) {
    auto row = read.options.direction == Direction::kForward ? first++ : --last;
    rows.push_back({row->first, row->second.value, row->second.version});
  }
  return rows;
}

bool MemoryLog::append(const LogEnd& expected, const LogEntry& entry) {
  MutexLock lock(mutex_);
  if (end_ != expected) return false;
  end_ = {entry.version, link_of(entry.batch)};
  log_.emplace(entry.version, entry.batch);
  return true;
}

bool MemoryLog::fold(const Fold& fold) {
  MutexLock lock(mutex_);
  auto last = log_.find(fold.to.version);
  bool has_it = fold.to.version == fold.from || (last != log_.end() && link_of(last->second) == fold.to.link);
  if (folded_ != fold.from || !has_it) return false;
  for (const FoldedRow& row : fold.rows) {
    if (row.row)
      rows_.insert_or_assign(row.key, *row.row);
    else
      rows_.erase(row.key);
  }
  folded_ = fold.to.version;
  trimmed_ = fold.trim;
  log_.erase(log_.begin(), log_.upper_bound(fold.trim));
  return true;
}

void MemoryLog::restore(MemoryLog& earlier) {
  MutexLock theirs(earlier.mutex_);
  MutexLock lock(mutex_);
  end_ = earlier.end_;
  folded_ = earlier.folded_;
  trimmed_ = earlier.trimmed_;
  log_ = earlier.log_;
  rows_ = earlier.rows_;
}

void MemoryBells::listen(const void* who, Bell bell) {
  MutexLock lock(mutex_);
  if (bell)
    bells_.insert_or_assign(who, std::move(bell));
  else
    bells_.erase(who);
}

void MemoryBells::ring(Version version) {
  MutexLock lock(mutex_);
  for (auto& [who, bell] : bells_) bell({.reached = version});
}

void MemoryBells::ask_for_turn(const void* who) {
  MutexLock lock(mutex_);
  for (auto& [other, bell] : bells_)
    if (other != who) bell({.turn_wanted = true});
}

Result<Appended> MemoryServer::append(const LogEnd& expected, const LogEntry& entry) {
  if (entry.batch.size() > limits_.entry_bytes_max) return fail(ErrorCode::kTooLarge, "the entry is too large");
  if (!store_->log.append(expected, entry)) return Appended{};
  store_->bells.ring(entry.version);
  return Appended{.done = true};
}

}  // namespace perdure::remote
