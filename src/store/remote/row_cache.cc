#include "store/remote/row_cache.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/seeded_bug.h"
#include "store/remote/overlay.h"

namespace perdure::remote {
namespace {

/// Behind every key that there can be: what ranges without an end end at.
const Bytes kBehindAll(1024, '\xff');
/// What an entry costs beside its bytes.
constexpr std::size_t kEntryBytes = 160;
/// What is kept for views at most; those that need more have been open for too long.
constexpr std::size_t kOldBytesMax = 32 << 20;

const Bytes& end_of(const KeyRange& range) {
  return range.end.empty() ? kBehindAll : range.end;
}

/// Whether what a server says goes on from what is known here. Each entry names the one before it, so an answer is a
/// chain, and so is what this process has read: where both know an entry, it is the same.
class Chain {
 public:
  /// `begin` is where the answer begins, `link` that of the entry there, if it is known; `mine` is how far this process
  /// has come.
  Chain(Version begin, std::optional<Link> link, const LogEnd& mine) : at_(begin), link_(link), mine_(mine) {
    if (at_ == mine_.version) link_ = mine_.link;
  }

  Result<void> add(const LogEntry& entry) {
    if (link_ && link_before(entry.batch) != *link_) return broken(entry);
    if (at_ < mine_.version && mine_.version < entry.version) return on_top_of_others(entry);
    at_ = entry.version;
    link_ = link_of(entry.batch);
    if (at_ == mine_.version && *link_ != mine_.link)
      return std::unexpected(lost_commits("its " + name_of(entry) + " is another one"));
    within_ = true;
    return {};
  }

  Result<void> end(const Moment& moment) const {
    if (moment.end.version != at_ || moment.folded > at_)
      return fail(ErrorCode::kCorrupt, "the log ends at " + std::to_string(moment.end.version.number) +
                                           ", its entries at " + std::to_string(at_.number) +
                                           ", and what is folded at " + std::to_string(moment.folded.number) +
                                           "; restore from a backup");
    if (!link_ || *link_ == moment.end.link) return {};
    if (within_) return fail(ErrorCode::kCorrupt, "the log does not end with its last entry; restore from a backup");
    return std::unexpected(lost_commits("its entry " + std::to_string(at_.number) + " is another one"));
  }

 private:
  static std::string name_of(const LogEntry& entry) { return "entry " + std::to_string(entry.version.number); }

  static std::unexpected<Error> on_top_of_others(const LogEntry& entry) {
    return std::unexpected(lost_commits("its " + name_of(entry) + " is on top of others"));
  }

  /// An answer is of one moment, so it is damage if it does not hang together in itself.
  std::unexpected<Error> broken(const LogEntry& entry) const {
    if (auto sound = decode_batch(entry.batch, entry.version); !sound) return std::unexpected(std::move(sound.error()));
    if (!within_ && at_ > Version{}) return on_top_of_others(entry);
    return fail(ErrorCode::kCorrupt,
                name_of(entry) + " of the log was not appended to the one before it; restore from a backup");
  }

  Version at_;
  std::optional<Link> link_;
  const LogEnd mine_;
  bool within_ = false;
};

}  // namespace

std::size_t RowCache::size_of(const Entries::value_type& entry) {
  return kEntryBytes + entry.first.size() + (entry.second.row ? entry.second.row->value.size() : 0);
}

Version RowCache::open_view() {
  ++views_[version_];
  return version_;
}

void RowCache::close_view(Version at) {
  auto view = views_.find(at);
  if (--view->second > 0) return;
  views_.erase(view);
  forget_old(views_.empty() ? version_ : views_.begin()->first);
}

void RowCache::keep_old(BytesView key, Version until) {
  if (views_.empty()) return;
  Found found = find_now(key);
  bool known = found.known == Known::kYes;
  Old old{until, known, known && found.row ? std::optional(*found.row) : std::nullopt};
  old_bytes_ += kEntryBytes + key.size() + (old.row ? old.row->value.size() : 0);
  old_[Bytes(key)].push_back(std::move(old));
  old_order_.emplace_back(until, key);
}

void RowCache::forget_old(Version up_to) {
  for (; !old_order_.empty() && old_order_.front().first <= up_to; old_order_.pop_front()) {
    auto history = old_.find(old_order_.front().second);
    const Old& oldest = history->second.front();
    old_bytes_ -= kEntryBytes + history->first.size() + (oldest.row ? oldest.row->value.size() : 0);
    history->second.erase(history->second.begin());
    if (history->second.empty()) old_.erase(history);
  }
}

const RowCache::Old* RowCache::seen_by(Version view, const std::vector<Old>& history) {
  auto seen = std::ranges::find_if(history, [&](const Old& old) { return old.until > view; });
  return seen == history.end() ? nullptr : &*seen;
}

RowCache::Found RowCache::find(Version at, BytesView key) {
  if (at < views_from_) return {.known = Known::kLost};
  if (auto history = old_.find(key); at != version_ && history != old_.end())
    if (const Old* old = seen_by(at, history->second))
      return {.known = old->known ? Known::kYes : Known::kLost, .row = old->row ? &*old->row : nullptr};
  return find_now(key);
}

RowCache::Found RowCache::find_now(BytesView key) {
  auto entry = entries_.lower_bound(key);
  if (entry == entries_.end()) return {};
  Entry& at = entry->second;
  bool exact = entry->first == key;
  if (exact ? !at.known : !at.joined) return {};
  at.used = true;
  return {.known = Known::kYes, .row = exact && at.row ? &*at.row : nullptr};
}

RowCache::Known RowCache::walk(Version at, KeyRange& range, Direction direction, const Visit& visit) {
  if (at < views_from_) return Known::kLost;
  if (at == version_ || old_.empty()) return walk_now(range, direction, visit);
  auto then = differences(at, range);
  if (!then) return Known::kLost;
  Overlay overlay(*then, range, direction, visit);
  Known known = walk_now(range, direction, [&](BytesView key, const Versioned& row) { return overlay.row(key, row); });
  if (overlay.enough()) return Known::kYes;
  overlay.end(known == Known::kYes ? nothing_left() : range);
  return overlay.enough() ? Known::kYes : known;
}

std::optional<Writes> RowCache::differences(Version at, const KeyRange& range) const {
  Writes then;
  for (auto history = old_.lower_bound(range.begin); history != old_.end() && range.contains(history->first);
       ++history) {
    const Old* old = seen_by(at, history->second);
    if (!old) continue;
    if (!old->known) return std::nullopt;
    then.emplace_hint(then.end(), history->first, old->row);
  }
  return then;
}

RowCache::Known RowCache::walk_now(KeyRange& range, Direction direction, const Visit& visit) {
  if (range.empty()) return Known::kYes;
  return direction == Direction::kForward ? walk_forward(range, visit) : walk_back(range, visit);
}

RowCache::Known RowCache::walk_forward(KeyRange& range, const Visit& visit) {
  for (auto entry = entries_.lower_bound(range.begin);; ++entry) {
    // The stretch between what was seen and this entry.
    if (entry == entries_.end() || (entry->first != range.begin && !entry->second.joined)) return Known::kNo;
    entry->second.used = true;
    if (entry->first >= end_of(range)) return Known::kYes;
    range.begin = entry->first;
    if (!entry->second.known) return Known::kNo;
    if (entry->second.row && !visit(entry->first, *entry->second.row)) return Known::kYes;
    range.begin.push_back('\0');
    if (range.empty()) return Known::kYes;
  }
}

RowCache::Known RowCache::walk_back(KeyRange& range, const Visit& visit) {
  for (auto entry = entries_.lower_bound(end_of(range));;) {
    if (entry == entries_.end() || !entry->second.joined) return Known::kNo;
    --entry;
    if (entry->first < range.begin) return Known::kYes;
    entry->second.used = true;
    range.end = entry->first + '\0';
    if (!entry->second.known) return Known::kNo;
    if (entry->second.row && !visit(entry->first, *entry->second.row)) return Known::kYes;
    if (entry->first == range.begin) return Known::kYes;
    range.end = entry->first;
  }
}

Result<bool> RowCache::advance(const LogEnd& since, const Moment& moment, const News& news) {
  auto followed = follow(since, moment, news);
  if (followed) note_folded(moment.folded);
  return followed;
}

Error lost_commits(const std::string& how) {
  return {ErrorCode::kStoreFailed,
          "the server of the store has lost commits that this process knows of: " + how +
              "; it has failed over to a standby that lagged, or was restored; restart this process, which then begins "
              "with what the server has"};
}

Result<bool> RowCache::follow(const LogEnd& since, const Moment& moment, const News& news) {
  // Checked first, for what is half taken in cannot be taken back.
  std::vector<std::pair<LogEnd, Writes>> entries;
  // What was said begins where it was asked for, or behind what was folded. Others may have brought us further since,
  // but perhaps not as far.
  const bool whole = since.version >= moment.trimmed;
  const Version begin = whole ? since.version : moment.folded;
  const bool lost = version_ < begin;
  Chain chain(begin, whole ? std::optional(since.link) : std::nullopt, end());
  for (const LogEntry& entry : moment.log) {
    const bool is_news = entry.version > std::max(version_, begin);
    if (is_news) {
      auto writes = decode_batch(entry.batch, entry.version);
      if (!writes) return std::unexpected(std::move(writes.error()));
      entries.emplace_back(LogEnd{entry.version, link_of(entry.batch)}, std::move(*writes));
    }
    if (auto goes_on = chain.add(entry); !goes_on) return std::unexpected(std::move(goes_on.error()));
  }
  if (auto ends = chain.end(moment); !ends) return std::unexpected(std::move(ends.error()));
  if (lost) {
    entries_.clear();
    unfolded_.clear();
    bytes_ = unfolded_bytes_ = 0;
    version_ = folded_ = moment.folded;
    link_ = moment.end.link;
    forget_old(moment.end.version);
    views_from_ = moment.end.version;
  }
  for (auto& [entry, writes] : entries) {
    if (news && !lost) news(entry, writes);
    apply(std::move(writes), entry.version, entry.link);
  }
  return !lost;
}

void RowCache::apply(Writes writes, Version version, Link link) {
  if (version <= version_) return;
  version_ = version;
  link_ = link;
  for (auto& [key, row] : writes) {
    std::size_t bytes = kEntryBytes + key.size() + (row ? row->value.size() : 0);
    unfolded_.push_back({version, key, bytes});
    unfolded_bytes_ += bytes;
    keep_old(key, version);
    set(key, std::move(row), version);
  }
  if (old_bytes_ <= kOldBytesMax) return;
  views_from_ = version;
  forget_old(version);
}

void RowCache::set(BytesView key, std::optional<Versioned> row, Version changed) {
  auto entry = make(key);
  bytes_ -= size_of(*entry);
  bool joined = entry->second.joined;
  entry->second = {.known = true, .joined = joined, .changed = changed, .row = std::move(row)};
  bytes_ += size_of(*entry);
}

RowCache::Entries::iterator RowCache::make(BytesView key) {
  auto next = entries_.lower_bound(key);
  if (next != entries_.end() && next->first == key) return next;
  bool joined = next != entries_.end() && next->second.joined;
  auto entry = entries_.emplace_hint(next, Bytes(key), Entry{.joined = joined});
  bytes_ += size_of(*entry);
  return entry;
}

void RowCache::note_folded(Version folded) {
  if (folded <= folded_) return;
  folded_ = folded;
  for (; !unfolded_.empty() && unfolded_.front().version <= folded; unfolded_.pop_front()) {
    unfolded_bytes_ -= unfolded_.front().bytes;
    auto entry = entries_.find(unfolded_.front().key);
    if (entry != entries_.end()) drop_if_void(entry);
  }
}

std::vector<FoldedRow> RowCache::unfolded() const {
  std::set<BytesView> keys;
  for (const Unfolded& write : unfolded_) keys.insert(write.key);
  std::vector<FoldedRow> rows;
  rows.reserve(keys.size());
  for (BytesView key : keys) {
    auto entry = entries_.find(key);
    if (entry == entries_.end() && seeded(SeededBug::kForgetUnfolded)) continue;
    check(entry != entries_.end(), "a row that only the log has was forgotten");
    const auto& row = entry->second.row;
    rows.push_back({Bytes(key), row ? std::optional(Versioned{seal_value(key, *row), row->version}) : std::nullopt});
  }
  return rows;
}

bool RowCache::can_add(const Moment& moment) const {
  check(moment.end.version <= version_, "rows of a moment that the cache has not been told of");
  // What was folded after the moment is not in its rows, and here it may be forgotten already.
  return moment.folded >= folded_;
}

bool RowCache::add(const Moment& moment, BytesView key, std::optional<Versioned> row) {
  if (!can_add(moment)) return false;
  if (find_now(key).known != Known::kYes) set(key, std::move(row), Version{});
  return true;
}

bool RowCache::add(const Moment& moment, const KeyRange& range, std::vector<Row> rows) {
  if (!can_add(moment)) return false;
  // What is known here already goes before what the server says: it is as new, or newer.
  for (Row& row : rows) {
    auto entry = make(row.key);
    if (!entry->second.known) set(row.key, Versioned{std::move(row.value), row.version}, Version{});
  }
  auto begin = make(range.begin), end = make(end_of(range));
  begin->second.known = true;
  for (auto entry = std::next(begin); entry != end; ++entry) entry->second.known = entry->second.joined = true;
  end->second.joined = true;
  return true;
}

RowCache::Entries::iterator RowCache::drop_if_void(Entries::iterator entry) {
  auto next = std::next(entry);
  const Entry& at = entry->second;
  bool is_void = at.known && !at.row && !pinned(at) && at.joined && next != entries_.end() && next->second.joined;
  if (!is_void) return next;
  bytes_ -= size_of(*entry);
  return entries_.erase(entry);
}

RowCache::Entries::iterator RowCache::evict(Entries::iterator entry) {
  bytes_ -= size_of(*entry);
  auto next = entries_.erase(entry);
  if (next != entries_.end()) next->second.joined = false;
  return next;
}

void RowCache::trim() {
  if (bytes_ <= bytes_max_) return;
  // Twice around: the first time takes the marks of use away. Pinned entries stay whatever they take.
  std::size_t looks = 2 * entries_.size();
  auto entry = entries_.lower_bound(hand_);
  for (; looks > 0 && bytes_ > bytes_max_ - bytes_max_ / 8; --looks) {
    if (entry == entries_.end()) entry = entries_.begin();
    if (entry == entries_.end()) break;
    bool stays = pinned(entry->second) && !seeded(SeededBug::kForgetUnfolded);
    if (stays || std::exchange(entry->second.used, false))
      ++entry;
    else
      entry = evict(entry);
  }
  hand_ = entry == entries_.end() ? Bytes() : entry->first;
}

}  // namespace perdure::remote
