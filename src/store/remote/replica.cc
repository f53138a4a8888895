#include "store/remote/replica.h"

#include <algorithm>

#include "store/ranges.h"

namespace perdure::remote {
namespace {

/// Rows asked for at once, and at least, where a range is walked: a round trip costs as much as many rows.
constexpr std::size_t kPageRows = 1000;
constexpr std::size_t kPageRowsMin = 32;

Result<std::vector<Row>> opened(std::vector<Row> rows) {
  for (Row& row : rows) {
    auto value = open_value(row.key, {std::move(row.value), row.version});
    if (!value) return std::unexpected(std::move(value.error()));
    row.value = std::move(value->value);
  }
  return rows;
}

std::unexpected<Error> lost() {
  return fail(ErrorCode::kConflict, "the store has moved on too far since it was first read");
}

std::optional<Error> gone_back(const Asked& asked, const Moment& moment) {
  auto lost = [](const char* what, Version now, Version before) {
    return lost_commits(what + std::to_string(now.number) + ", and " + std::to_string(before.number) + " before");
  };
  if (moment.end.version < asked.since.version)
    return lost("its log ends at ", moment.end.version, asked.since.version);
  if (moment.folded < asked.folded) return lost("its rows are of ", moment.folded, asked.folded);
  return std::nullopt;
}

/// The part of the range that an answer of so many rows speaks of.
KeyRange covered(const RangeRead& read, const std::vector<Row>& rows) {
  KeyRange range = read.range;
  if (rows.size() < read.options.limit) return range;
  if (read.options.direction == Direction::kForward)
    range.end = next_key(rows.back().key);
  else
    range.begin = rows.back().key;
  return range;
}

}  // namespace

Replica::Replica(std::unique_ptr<ServerLink> server, std::size_t cache_bytes)
    : server_(std::move(server)), cache_(cache_bytes) {}

Replica::~Replica() = default;

Version Replica::version() {
  MutexLock lock(mutex_);
  return cache_.version();
}

Version Replica::open_view() {
  MutexLock lock(mutex_);
  return cache_.open_view();
}

void Replica::close_view(Version at) {
  MutexLock lock(mutex_);
  cache_.close_view(at);
}

template <class F>
Result<std::invoke_result_t<F, const Versioned*>> Replica::find(Version at, BytesView key, F use) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      auto found = cache_.find(at, key);
      if (found.known == RowCache::Known::kLost) return lost();
      if (found.known == RowCache::Known::kYes) return use(found.row);
    }
    Bytes wanted(key);
    if (auto loaded = load({&wanted, 1}, {}); !loaded) return std::unexpected(std::move(loaded.error()));
  }
}

Result<std::optional<Versioned>> Replica::get(Version at, BytesView key) {
  return find(at, key, [](const Versioned* row) { return row ? std::optional(*row) : std::nullopt; });
}

Result<Version> Replica::version_of(Version at, BytesView key) {
  return find(at, key, [](const Versioned* row) { return row ? row->version : Version{}; });
}

Result<void> Replica::fetch(Version at, std::span<const Bytes> keys, std::span<const RangeRead> reads) {
  std::vector<Bytes> unknown_keys;
  std::vector<RangeRead> unknown_ranges;
  {
    MutexLock lock(mutex_);
    for (const Bytes& key : keys)
      if (cache_.find(at, key).known == RowCache::Known::kNo) unknown_keys.push_back(key);
    for (const RangeRead& read : reads) {
      std::size_t left = read.options.limit;
      RangeRead rest = read;
      if (left == 0) continue;
      auto known =
          cache_.walk(at, rest.range, read.options.direction, [&](BytesView, const Versioned&) { return --left > 0; });
      rest.options.limit = std::clamp(left, kPageRowsMin, kPageRows);
      if (known == RowCache::Known::kNo) unknown_ranges.push_back(std::move(rest));
    }
  }
  if (unknown_keys.empty() && unknown_ranges.empty()) return {};
  return load(unknown_keys, unknown_ranges);
}

Result<void> Replica::scan(Version at, KeyRange range, const RangeOptions& wanted, const RowCache::Visit& visit) {
  std::size_t left = wanted.limit;
  while (left > 0 && !range.empty()) {
    {
      MutexLock lock(mutex_);
      auto known = cache_.walk(at, range, wanted.direction, [&](BytesView key, const Versioned& row) {
        --left;
        return visit(key, row) && left > 0;
      });
      if (known == RowCache::Known::kLost) return lost();
      if (known == RowCache::Known::kYes) return {};
    }
    RangeRead rest{range, {.limit = std::clamp(left, kPageRowsMin, kPageRows), .direction = wanted.direction}};
    if (auto loaded = load({}, {&rest, 1}); !loaded) return loaded;
  }
  return {};
}

Result<Asked> Replica::about_to_ask() {
  MutexLock lock(mutex_);
  if (failure_) return std::unexpected(*failure_);
  return Asked{cache_.end(), cache_.folded()};
}

Result<void> Replica::load(std::span<const Bytes> keys, std::span<const RangeRead> reads) {
  auto asked = about_to_ask();
  if (!asked) return std::unexpected(std::move(asked.error()));
  auto moment = server_->read(asked->since.version, keys, reads);
  if (!moment) return std::unexpected(std::move(moment.error()));
  if (auto taken = take_in(*asked, *moment); !taken) return taken;
  MutexLock lock(mutex_);
  return keep(*moment, keys, reads);
}

Result<void> Replica::keep(Moment& moment, std::span<const Bytes> keys, std::span<const RangeRead> reads) {
  cache_.trim();  // Before, for what is added now is about to be read.
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::optional<Versioned> row;
    if (moment.values[i]) {
      auto value = open_value(keys[i], std::move(*moment.values[i]));
      if (!value) return std::unexpected(std::move(value.error()));
      row = std::move(*value);
    }
    cache_.add(moment, keys[i], std::move(row));
  }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    auto rows = opened(std::move(moment.ranges[i]));
    if (!rows) return std::unexpected(std::move(rows.error()));
    KeyRange range = covered(reads[i], *rows);
    if (reads[i].options.direction == Direction::kReverse) std::ranges::reverse(*rows);
    cache_.add(moment, range, std::move(*rows));
  }
  return {};
}

Result<Version> Replica::follow() {
  auto asked = about_to_ask();
  if (!asked) return std::unexpected(std::move(asked.error()));
  auto moment = server_->read(asked->since.version, {}, {});
  if (!moment) return std::unexpected(std::move(moment.error()));
  if (auto taken = take_in(*asked, *moment); !taken) return std::unexpected(std::move(taken.error()));
  return moment->end.version;
}

Result<void> Replica::take_in(const Asked& asked, const Moment& moment) {
  std::vector<std::uint64_t> changed;
  Result<bool> followed;
  {
    MutexLock lock(mutex_);
    if (!failure_) failure_ = gone_back(asked, moment);
    if (failure_) return std::unexpected(*failure_);
    // Of its own this process hears by the answer to its append, and not as of something that others did. But others
    // may have appended the very same.
    std::vector<std::uint64_t> withheld;
    followed = cache_.advance(asked.since, moment, [&, own = appending_](const LogEnd& entry, const Writes& writes) {
      for (const auto& [key, row] : writes) (entry == own ? withheld : changed).push_back(watch_hash(key));
    });
    withheld_.insert(withheld_.end(), withheld.begin(), withheld.end());
    if (!followed && followed.error().code == ErrorCode::kStoreFailed) failure_ = followed.error();
  }
  if (!followed) return std::unexpected(std::move(followed.error()));
  if (*followed && changed.empty()) return {};
  MutexLock lock(listener_mutex_);
  if (!listener_) return {};
  if (*followed)
    listener_->keys_changed(changed);
  else
    listener_->anything_changed();
  return {};
}

void Replica::about_to_append(const LogEntry& entry) {
  MutexLock lock(mutex_);
  appending_ = {entry.version, link_of(entry.batch)};
}

void Replica::appended(Writes writes, const LogEntry& entry) {
  MutexLock lock(mutex_);
  cache_.apply(std::move(writes), entry.version, link_of(entry.batch));
  cache_.trim();
  withheld_.clear();
}

void Replica::not_appended() {
  std::vector<std::uint64_t> withheld;
  {
    MutexLock lock(mutex_);
    appending_ = {};
    withheld.swap(withheld_);
  }
  if (withheld.empty()) return;
  MutexLock lock(listener_mutex_);
  if (listener_) listener_->keys_changed(withheld);
}

std::size_t Replica::unfolded_bytes() {
  MutexLock lock(mutex_);
  return cache_.unfolded_bytes();
}

Fold Replica::next_fold() {
  MutexLock lock(mutex_);
  // What was folded before stays in the log once more, for those who are a little behind.
  return {.from = cache_.folded(), .to = cache_.end(), .trim = cache_.folded(), .rows = cache_.unfolded()};
}

void Replica::folded(Version to) {
  MutexLock lock(mutex_);
  cache_.note_folded(to);
}

void Replica::listen(ChangeListener* listener) {
  MutexLock lock(listener_mutex_);
  listener_ = listener;
}

}  // namespace perdure::remote
