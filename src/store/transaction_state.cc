#include "store/transaction_state.h"

#include <utility>

#include "base/assert.h"
#include "base/seeded_bug.h"
#include "store/ranges.h"

namespace perdure {

Result<void> TransactionState::run(BodyFn& body) {
  reset();
  ran_outside_ = true;
  return call(body);
}

Result<void> TransactionState::run_in(CommitView& view, BodyFn& body) {
  reset();
  commit_view_ = &view;
  auto result = call(body);
  commit_view_ = nullptr;
  return result;
}

/// The one boundary between perdure and the user's code in a transaction.
Result<void> TransactionState::call(BodyFn& body) {
  Result<void> returned;
  try {
    Transaction transaction(*this);
    returned = body(transaction);
    if (returned) write_notes();
  } catch (const Abandoned&) {
    check(error_.has_value(), "a body was abandoned without a reason");
  } catch (const std::exception& exception) {
    returned = fail(ErrorCode::kHandlerFailed, std::string("the body of a transaction threw: ") + exception.what());
  } catch (...) {
    returned = fail(ErrorCode::kHandlerFailed, "the body of a transaction threw something that is not an exception");
  }
  // A body that swallowed the exception, or failed because of what it could not read, is judged by the first cause.
  if (error_) return std::unexpected(*error_);
  return returned;
}

/// At the end, for a row that has no stamp yet cannot be read around.
void TransactionState::write_notes() {
  bool before = std::exchange(system_access_, true);
  for (const ChangeNotes::Encoded& row : notes_.take()) {
    set_stamped(
        {tuple::pack_stamped_onto(changes_prefix(row.space), tuple::IncompleteStamp{next_order_++}), row.value});
    add(changes_bell(row.space), 1);
  }
  system_access_ = before;
}

void TransactionState::reset() {
  for (PendingWatch& pending : watches_) pending.watch->cancel();
  watches_.clear();
  snapshot_.reset();
  epoch_.reset();
  ran_outside_ = false;
  key_reads_.clear();
  range_reads_.clear();
  writes_.reset();
  error_.reset();
  unanswered_ = false;
  next_order_ = 0;
  notes_.clear();
  observed_.clear();
}

void TransactionState::abandon(Error error) {
  fail_commit(std::move(error));
  throw Abandoned{};
}

void TransactionState::abandon_unanswered(Error error) {
  unanswered_ = !error_;
  abandon(std::move(error));
}

void TransactionState::fail_commit(Error error) {
  if (!error_) error_ = std::move(error);
}

std::optional<std::uint64_t> TransactionState::epoch() const {
  return epoch_;
}

ReadView& TransactionState::view() {
  if (commit_view_) return *commit_view_;
  if (!snapshot_) {
    auto taken = engine_.snapshot();
    if (!taken) abandon_unanswered(std::move(taken.error()));
    snapshot_ = std::move(*taken);
    epoch_ = snapshot_->epoch();
  }
  return *snapshot_;
}

void TransactionState::renew() {
  snapshot_.reset();
  auto valid = still_valid(view(), Reads::kAll);
  // This one was taken back too: it answers no read either, and the next one is validated in its turn.
  if (!valid && snapshot_->retired()) return;
  if (!valid) abandon_unanswered(std::move(valid.error()));
  if (!*valid) abandon({ErrorCode::kConflict, "something that the transaction read has changed while it was running"});
}

Result<bool> TransactionState::still_valid(ReadView& view, Reads which) const {
  for (const KeyRead& read : key_reads_) {
    if (which == Reads::kConflicting && !read.conflicts) continue;
    if (seeded(SeededBug::kSkipReadValidation)) continue;
    auto version = view.version_of(read.key);
    if (!version) return std::unexpected(std::move(version.error()));
    if (*version != read.version) return false;
  }
  for (const RangeReadNote& read : range_reads_) {
    if (which == Reads::kConflicting && !read.conflicts) continue;
    if (seeded(SeededBug::kDropReadRange)) continue;
    // One row more than was there is enough to see a difference.
    auto now = view.fingerprint(read.range, read.fingerprint.rows() + 1);
    if (!now) return std::unexpected(std::move(now.error()));
    if (*now != read.fingerprint) return false;
  }
  return true;
}

void TransactionState::record_key(BytesView key, Version version, bool conflicts) {
  if (!commit_view_) key_reads_.push_back({Bytes(key), version, conflicts});
}

void TransactionState::note_read(BytesView key) {
  if (!check_key(key)) return;
  record_key(key, reading([&](ReadView& view) { return view.version_of(key); }), true);
}

void TransactionState::note_read(const KeyRange& wanted) {
  KeyRange range = within_allowed_keys(wanted);
  if (range.empty() || commit_view_) return;
  auto fingerprint = reading([&](ReadView& view) { return view.fingerprint(range, UINT64_MAX); });
  range_reads_.push_back({std::move(range), fingerprint});
}

Watch TransactionState::watch(BytesView key) {
  if (!check_key(key)) return Watch();
  auto added = watches_registry_.add(key);
  if (!added) abandon_unanswered(std::move(added.error()));
  watches_.push_back({*added, Bytes(key)});
  if (!commit_view_) {
    // What changed between the snapshot and the registration was not told to the watch: look. A key that is absent in
    // both may have come and gone in between, so there only an unchanged store counts.
    Version seen = reading([&](ReadView& view) { return view.version_of(key); });
    auto fresh = engine_.snapshot();
    if (!fresh) abandon_unanswered(std::move(fresh.error()));
    auto now = (*fresh)->version_of(key);
    if (!now && !(*fresh)->retired()) abandon_unanswered(std::move(now.error()));
    bool same = now && seen == *now && (seen != Version{} || epoch_ == (*fresh)->epoch());
    if (!same) (*added)->changed(Version{UINT64_MAX});
  }
  return Watch(*added);
}

void TransactionState::arm_watches(Version version) {
  for (PendingWatch& pending : watches_) pending.watch->arm(writes_.find(pending.key) ? version : Version{});
  watches_.clear();
}

}  // namespace perdure
