#include "perdure/transaction.h"

#include <utility>

#include "base/endian.h"
#include "store/ranges.h"
#include "store/system_access.h"
#include "store/transaction_state.h"

namespace perdure {

std::int64_t decode_counter(const std::optional<Bytes>& value) {
  if (!value || value->size() != sizeof(std::int64_t)) return 0;
  return static_cast<std::int64_t>(load_little<std::uint64_t>(value->data()));
}

Bytes encode_counter(std::int64_t value) {
  Bytes bytes(sizeof value, '\0');
  store_little(bytes.data(), static_cast<std::uint64_t>(value));
  return bytes;
}

SystemAccess::SystemAccess(Reader& txn) : state_(*txn.state_), before_(std::exchange(state_.system_access_, true)) {}

SystemAccess::~SystemAccess() {
  state_.system_access_ = before_;
}

std::uint32_t SystemAccess::next_order() {
  return state_.next_order_++;
}

void SystemAccess::note(const ChangeNote& change) {
  if (notes()) state_.notes_.add(change);
}

void SystemAccess::observe(Metric metric, Duration duration) {
  state_.observed_.emplace_back(metric, duration);
}

std::size_t SystemAccess::room() const {
  std::size_t max = state_.engine_.capabilities().limits.transaction_bytes_max, written = state_.writes_.bytes();
  return max - std::min(max, written);
}

bool SystemAccess::is_full() const {
  constexpr std::size_t kBeside = 64 << 10;
  return room() < state_.engine_.capabilities().limits.value_bytes_max + kBeside;
}

bool SystemAccess::notes() const {
  return state_.feed_ == TransactionState::Feed::kOn;
}

void SystemAccess::refuse(Error error) {
  state_.abandon(std::move(error));
}

std::optional<Bytes> Reader::get(BytesView key) {
  return state_->get(key, conflicts_ == Conflicts::kRecorded);
}

std::vector<std::optional<Bytes>> Reader::get_many(std::span<const Bytes> keys) {
  return state_->get_many(keys, conflicts_ == Conflicts::kRecorded);
}

std::vector<Row> Reader::get_range(const KeyRange& range, const RangeOptions& options) {
  return state_->get_range({range, options}, conflicts_ == Conflicts::kRecorded);
}

std::vector<std::vector<Row>> Reader::get_ranges(std::span<const RangeRead> reads) {
  return state_->get_ranges(reads, conflicts_ == Conflicts::kRecorded);
}

void Transaction::add_read_conflict(BytesView key) {
  state_->note_read(key);
}

void Transaction::add_read_conflict(const KeyRange& range) {
  state_->note_read(range);
}

void Transaction::set(BytesView key, BytesView value) {
  state_->set(key, value);
}

void Transaction::clear(BytesView key) {
  state_->clear(key);
}

void Transaction::clear_range(const KeyRange& range) {
  state_->clear_range(range);
}

void Transaction::add(BytesView key, std::int64_t delta) {
  state_->add(key, delta);
}

void Transaction::set_stamped(const Stamped& key, BytesView value) {
  state_->set_stamped({key, Bytes(value)});
}

void Transaction::set_stamped(BytesView key, const Stamped& value) {
  state_->set_stamped(Bytes(key), value);
}

void Transaction::set_stamped(const Stamped& key, const Stamped& value) {
  state_->set_stamped({key, value});
}

Watch Transaction::watch(BytesView key) {
  return state_->watch(key);
}

// Writes only take note; a write over the limits is remembered and fails the commit, so that bodies read plainly.

void TransactionState::set(BytesView key, BytesView value) {
  if (check_key(key) && check_value(key, value.size())) writes_.set(key, value);
  check_total();
}

void TransactionState::clear(BytesView key) {
  if (check_key(key)) writes_.clear(key);
  check_total();
}

void TransactionState::clear_range(const KeyRange& range) {
  KeyRange user = within_allowed_keys(range);
  if (!user.empty()) writes_.clear_range(user);
  check_total();
}

void TransactionState::add(BytesView key, std::int64_t delta) {
  if (check_key(key) && check_counter(key)) writes_.add(key, delta);
  check_total();
}

void TransactionState::set_stamped(Bytes key, const Stamped& value) {
  if (check_key(key) && check_value(key, value.before.size() + Stamp::kSize + value.after.size()))
    writes_.set_stamped(key, value);
  check_total();
}

void TransactionState::set_stamped(WriteSet::StampedRow row) {
  Bytes sample = row.key.before + Bytes(Stamp::kSize, '\0') + row.key.after;
  std::size_t value_bytes =
      std::holds_alternative<Bytes>(row.value)
          ? std::get<Bytes>(row.value).size()
          : std::get<Stamped>(row.value).before.size() + Stamp::kSize + std::get<Stamped>(row.value).after.size();
  if (writes_.has_stamped_key(row.key))
    fail_commit({ErrorCode::kInvalidArgument, "the transaction stamps two rows that would get the same key, " +
                                                  printable(row.key.before) + " and the stamp of order " +
                                                  std::to_string(row.key.order) + "; give each its own order"});
  if (check_key(sample) && check_value(sample, value_bytes)) writes_.set_stamped_key(std::move(row));
  check_total();
}

bool TransactionState::check_key(BytesView key) {
  std::size_t max = engine_.capabilities().limits.key_bytes_max;
  if (key.empty()) {
    fail_commit({ErrorCode::kInvalidArgument, "a key must have at least one byte"});
  } else if (!system_access_ && key.starts_with(kSystemKeys)) {
    fail_commit(
        {ErrorCode::kInvalidArgument, "the key " + printable(key) + " begins with \\xff: such keys are perdure's own"});
  } else if (key.size() > max) {
    fail_commit({ErrorCode::kTooLarge, "the key " + printable(key) + " has " + std::to_string(key.size()) +
                                           " bytes; at most " + std::to_string(max) + " are allowed"});
  } else {
    return true;
  }
  return false;
}

/// What the transaction itself wrote; what is stored is looked at by the commit.
bool TransactionState::check_counter(BytesView key) {
  const WriteSet::Write* write = writes_.find(key);
  if (!write || std::holds_alternative<WriteSet::Clear>(*write) || std::holds_alternative<WriteSet::Add>(*write))
    return true;
  const auto* set = std::get_if<WriteSet::Set>(write);
  if (set && set->value.size() == sizeof(std::int64_t)) return true;
  fail_commit({ErrorCode::kInvalidArgument, "the key " + printable(key) +
                                                " cannot be added to: the transaction has given it a value that is not "
                                                "a counter of 8 bytes"});
  return false;
}

bool TransactionState::check_value(BytesView key, std::size_t bytes) {
  std::size_t max = engine_.capabilities().limits.value_bytes_max;
  if (system_access_) max += max / 4;
  if (bytes <= max) return true;
  fail_commit({ErrorCode::kTooLarge, "the value for key " + printable(key) + " has " + std::to_string(bytes) +
                                         " bytes; at most " + std::to_string(max) + " are allowed, split it"});
  return false;
}

void TransactionState::check_total() {
  std::size_t max = engine_.capabilities().limits.transaction_bytes_max;
  if (writes_.bytes() > max)
    fail_commit({ErrorCode::kTooLarge, "the transaction writes more than " + std::to_string(max) +
                                           " bytes; do the work in several transactions"});
}

void TransactionState::check_readable(BytesView key) {
  if (writes_.unreadable(key))
    abandon({ErrorCode::kInvalidArgument,
             "the transaction reads " + printable(key) + ", which it wrote with a stamp that it gets at the commit"});
}

void TransactionState::check_readable(const KeyRange& range) {
  if (writes_.unreadable(range))
    abandon({ErrorCode::kInvalidArgument, "the transaction reads a range from " + printable(range.begin) +
                                              ", where it wrote a row that has no stamp until the commit"});
}

KeyRange TransactionState::within_allowed_keys(const KeyRange& range) {
  KeyRange user = range;
  if (!system_access_ && (user.end.empty() || user.end > kSystemKeys)) user.end = Bytes(kSystemKeys);
  if (user.begin.empty()) user.begin = Bytes(1, '\0');
  return user;
}

}  // namespace perdure
