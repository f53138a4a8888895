#include "store/unknown_commit.h"

#include "base/assert.h"
#include "base/endian.h"
#include "base/seeded_bug.h"

namespace perdure {

Result<Committer::BatchRow> Committer::BatchRow::read(const Committer& committer, ReadView& view) {
  auto row = view.get(committer.batch_key_);
  if (!row) return std::unexpected(std::move(row.error()));
  if (!*row) return BatchRow{};
  const Bytes& bytes = (*row)->value;
  check(bytes.size() == 16, "a batch row of 16 bytes");
  return BatchRow{load_little<std::uint64_t>(bytes.data()), load_little<std::uint64_t>(bytes.data() + 8)};
}

Result<void> Committer::BatchRow::write(const Committer& committer, CommitView& view) const {
  char bytes[16];
  store_little(bytes, applied);
  store_little(bytes + 8, fence);
  // A version of its own, so that engines which compare versions see that the row has changed.
  return view.put(committer.batch_key_, BytesView(bytes, sizeof bytes), Version{view.last_version().number + 1});
}

Result<Applied> Committer::Resolver::apply(CommitView& view) {
  auto row = BatchRow::read(committer_, view);
  if (!row) return std::unexpected(std::move(row.error()));
  applied_ = row->applied >= committer_.batch_number_;
  // What was applied needs no fence, for which a server that is full by now may have no room.
  const bool is_settled = applied_ && committer_.engine_.capabilities().what_is_read_lasts;
  if (is_settled || seeded(SeededBug::kSkipUnknownFence)) return Applied::kNothing;
  row->fence = committer_.batch_number_;
  if (auto put = row->write(committer_, view); !put) return std::unexpected(std::move(put.error()));
  return Applied::kSomething;
}

void Committer::Resolver::done(Result<void> outcome) {
  if (outcome)
    committer_.resolved(applied_);
  else
    committer_.resolved(std::unexpected(std::move(outcome.error())));
}

Result<void> Committer::advance_batch_row(CommitView& view) {
  auto row = BatchRow::read(*this, view);
  if (!row) return std::unexpected(std::move(row.error()));
  if (row->fence >= batch_number_) return fail(ErrorCode::kConflict, "this batch was given up before it arrived");
  return BatchRow{batch_number_, batch_number_}.write(*this, view);
}

void Committer::resolve() {
  {
    MutexLock lock(mutex_);
    if (!timers_) return;  // Stopped.
    state_ = State::kResolving;
  }
  if (seeded(SeededBug::kRetryUnknown)) return resolved(false);
  if (!resolver_) resolver_ = std::make_unique<Resolver>(*this);
  engine_.commit(*resolver_);
}

void Committer::resolved(Result<bool> applied) {
  if (!applied && applied.error().code == ErrorCode::kStoreFailed) return fail_for_good(std::move(applied.error()));
  if (!applied) {
    // Callers that run out of time meanwhile are told that they do not know; nobody else may commit before we do.
    auto pause = std::chrono::milliseconds(1) * (1 << std::min(resolve_attempts_++, 10));
    MutexLock lock(mutex_);
    timer(scheduler_.now() + pause, &Committer::resolve);
    return;
  }
  resolve_attempts_ = 0;
  resolver_.reset();
  if (*applied) {
    watches_.notify(changes_);
    finish({});
    return;
  }
  // Not applied, and never will be: the same calls go again in the next batch.
  MutexLock lock(mutex_);
  for (std::size_t i = batch_.size(); i-- > 0;) {
    bool answered = batch_[i]->phase == Call::Phase::kAnswered;
    batch_[i]->phase = answered ? Call::Phase::kOutside : Call::Phase::kQueued;
    if (!answered) queue_.push_front(std::move(batch_[i]));
  }
  batch_.clear();
  state_ = State::kIdle;
  if (!queue_.empty()) start();
}

}  // namespace perdure
