// Reads that see the transaction's own writes.
#include <algorithm>

#include "store/ranges.h"
#include "store/transaction_state.h"

namespace perdure {
namespace {

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// What the reader sees of a key: `stored`, changed by the pending write.
std::optional<Bytes> see(const WriteSet::Write* write, std::optional<Bytes> stored) {
  if (!write) return stored;
  if (const auto* set = std::get_if<WriteSet::Set>(write)) return set->value;
  if (const auto* add = std::get_if<WriteSet::Add>(write))
    return encode_counter(wrapping_add(decode_counter(stored), add->delta));
  return std::nullopt;
}

/// Whether the pending write leaves the stored value visible, so that reading the key depends on it.
bool needs_stored(const WriteSet::Write* write) {
  return !write || std::holds_alternative<WriteSet::Add>(*write);
}

}  // namespace

/// Walks the stored rows and the pending writes of a range side by side, in the direction of the read.
class TransactionState::Merge {
 public:
  Merge(TransactionState& txn, KeyRange range, const RangeOptions& options)
      : txn_(txn), range_(std::move(range)), options_(options) {}

  std::vector<Row> run() {
    KeyRange rest = range_;
    auto epoch = txn_.epoch_;
    while (!done_ && !rest.empty()) {
      std::size_t want = options_.limit - rows_.size();
      auto stored = txn_.reading(
          [&](ReadView& view) { return view.get_range({rest, {.limit = want, .direction = options_.direction}}); });
      if (!seen_.empty() && txn_.epoch_ != epoch) {
        // The snapshot was replaced in the middle: what was seen before is of another moment.
        rows_.clear();
        seen_.clear();
        rest = range_;
        epoch = txn_.epoch_;
        continue;
      }
      epoch = txn_.epoch_;
      bool all = stored.size() < want;
      KeyRange covered = rest;
      if (!all) cut_off_beyond(stored.back().key, covered, rest);
      merge(stored, covered);
      if (all) break;
    }
    return std::move(rows_);
  }

  /// What the answer depends on: the part of the range that was looked at, and the stored rows in it.
  RangeReadNote note(bool conflicts) {
    KeyRange covered = range_;
    KeyRange ignored = range_;
    if (done_) cut_off_beyond(last_key_, covered, ignored);
    if (!forward()) std::ranges::reverse(seen_);
    Fingerprint fingerprint;
    for (const auto& [key, version] : seen_) fingerprint.add(key, version);
    return {std::move(covered), fingerprint, conflicts};
  }

 private:
  bool forward() const { return options_.direction == Direction::kForward; }
  bool before(BytesView a, BytesView b) const { return forward() ? a < b : b < a; }

  /// Splits at `key`: `covered` ends with it, `rest` begins beyond it.
  void cut_off_beyond(BytesView key, KeyRange& covered, KeyRange& rest) const {
    if (forward()) {
      covered.end = next_key(key);
      rest.begin = covered.end;
    } else {
      covered.begin = Bytes(key);
      rest.end = Bytes(key);
    }
  }

  void merge(std::vector<Row>& stored, const KeyRange& covered) {
    std::vector<const WriteSet::Points::value_type*> pending;
    const auto& points = txn_.writes_.points();
    for (auto at = points.lower_bound(covered.begin); at != points.end() && covered.contains(at->first); ++at)
      pending.push_back(&*at);
    if (!forward()) std::ranges::reverse(pending);
    auto row = stored.begin();
    auto point = pending.begin();
    while (!done_ && (row != stored.end() || point != pending.end())) {
      bool take_row = point == pending.end() || (row != stored.end() && !before((*point)->first, row->key));
      bool take_point = row == stored.end() || (point != pending.end() && !before(row->key, (*point)->first));
      if (take_row) seen_.push_back({row->key, row->version});
      if (take_point)
        emit((*point)->first, see(&(*point)->second, take_row ? std::optional(row->value) : std::nullopt), Version{});
      else if (const WriteSet::Write* cleared = txn_.writes_.find(row->key); !cleared)
        emit(row->key, std::move(row->value), row->version);
      if (take_row) ++row;
      if (take_point) ++point;
    }
  }

  void emit(BytesView key, std::optional<Bytes> value, Version version) {
    if (!value) return;
    rows_.push_back({Bytes(key), std::move(*value), version});
    done_ = rows_.size() == options_.limit;
    if (done_) last_key_ = rows_.back().key;
  }

  TransactionState& txn_;
  const KeyRange range_;
  const RangeOptions options_;
  std::vector<Row> rows_;
  std::vector<std::pair<Bytes, Version>> seen_;
  /// The limit was reached, with this key.
  bool done_ = false;
  Bytes last_key_;
};

std::optional<Bytes> TransactionState::get(BytesView key, bool record) {
  if (!check_key(key)) abandon(*error_);
  check_readable(key);
  const WriteSet::Write* write = writes_.find(key);
  if (!needs_stored(write)) return see(write, std::nullopt);
  auto stored = reading([&](ReadView& view) { return view.get(key); });
  record_key(key, stored ? stored->version : Version{}, record);
  return see(write, stored ? std::optional(std::move(stored->value)) : std::nullopt);
}

std::vector<std::optional<Bytes>> TransactionState::get_many(std::span<const Bytes> keys, bool record) {
  for (const Bytes& key : keys) {
    if (!check_key(key)) abandon(*error_);
    check_readable(key);
  }
  auto stored = reading([&](ReadView& view) { return view.get_many(keys); });
  std::vector<std::optional<Bytes>> values;
  values.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const WriteSet::Write* write = writes_.find(keys[i]);
    if (needs_stored(write)) record_key(keys[i], stored[i] ? stored[i]->version : Version{}, record);
    values.push_back(see(write, stored[i] ? std::optional(std::move(stored[i]->value)) : std::nullopt));
  }
  return values;
}

std::vector<Row> TransactionState::get_range(const RangeRead& read, bool record) {
  KeyRange range = within_allowed_keys(read.range);
  if (range.empty() || read.options.limit == 0) return {};
  check_readable(range);
  Merge merge(*this, std::move(range), read.options);
  auto rows = merge.run();
  if (!commit_view_) range_reads_.push_back(merge.note(record));
  return rows;
}

std::vector<std::vector<Row>> TransactionState::get_ranges(std::span<const RangeRead> reads, bool record) {
  std::vector<std::vector<Row>> answers;
  answers.reserve(reads.size());
  for (const RangeRead& read : reads) answers.push_back(get_range(read, record));
  return answers;
}

}  // namespace perdure
