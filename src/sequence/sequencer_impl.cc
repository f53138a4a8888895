#include "sequence/sequencer_impl.h"

#include <algorithm>

#include "base/assert.h"
#include "base/seeded_bug.h"
#include "runtime/latch.h"

namespace perdure {

Result<std::shared_ptr<SequencerImpl>> SequencerImpl::open(Store store, SequencerParams params,
                                                           std::shared_ptr<SeqStorage> storage) {
  check(params.cached_max >= 0, "a sequencer was opened with a negative cached_max");
  for (auto& [kind, floors] : params.kinds)
    for (auto& [seq, initial] : floors) check(initial >= 1, "a sequencer was opened with an initial value of 0");
  if (auto use = StoreAccess::impl(store).use(); !use) return std::unexpected(std::move(use.error()));
  auto impl = std::make_shared<SequencerImpl>(store, std::move(params), std::move(storage));
  impl->begin();
  // The handle has an owner of its own, as callbacks may keep the object for a moment longer. It keeps the store open
  // as well, so that it is closed where the handle is dropped.
  SequencerImpl* raw = impl.get();
  return std::shared_ptr<SequencerImpl>(
      raw, [impl = std::move(impl), store = std::move(store)](SequencerImpl* one) { one->abandon(); });
}

SequencerImpl::SequencerImpl(Store& store, SequencerParams params, std::shared_ptr<SeqStorage> storage)
    : StorePart(store, "the sequencers of this store"),
      params_(std::move(params)),
      storage_(std::move(storage)),
      cache_(static_cast<std::size_t>(params_.cached_max)) {}

void SequencerImpl::begin() {
  std::uint64_t number = StoreAccess::impl(store_).before_close([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->store_closing();
  });
  {
    MutexLock lock(mutex_);
    before_close_ = number;
  }
  if (number == 0) return store_closing();
  scheduler_.post(guarded([this] { read_offset(); }));
}

// The grammar.

void SequencerImpl::must_be_open() const {
  check(phase_ != Phase::kClosed, "a sequencer was used after it was closed");
}

void SequencerImpl::must_have_begun() const {
  must_be_open();
  check(event_.has_value(), "next, flush or actualize of a sequencer without start");
  check(!reading_, "a call of a sequencer while a number is being read");
}

Result<LogOffset> SequencerImpl::start(WorkspaceKind kind, WorkspaceId workspace) {
  MutexLock lock(mutex_);
  must_be_open();
  check(!event_, "start of a sequencer whose last event was neither flushed nor actualized");
  auto floors = params_.kinds.find(kind);
  check(floors != params_.kinds.end(), "start of a sequencer with a kind of workspace that it does not know");
  if (phase_ == Phase::kLost) return std::unexpected(*problem_);
  if (phase_ == Phase::kActualizing)
    return fail(ErrorCode::kUnavailable, "the sequencer is reading its log; try again when it is ready");
  // Whoever made it full has hurried the flusher.
  if (is_full())
    return fail(ErrorCode::kLimitExceeded, "the sequencer has " + std::to_string(unflushed_.size()) +
                                               " numbers that are not stored yet; try again when it is ready");
  if (offset_ == UINT64_MAX) return fail(ErrorCode::kTooLarge, "the log has no offset left: 2^64 - 1 was the last");
  event_.emplace(workspace, &floors->second);
  return ++offset_;
}

void SequencerImpl::flush() {
  MutexLock lock(mutex_);
  must_have_begun();
  for (auto [seq, number] : event_->drawn) unflushed_.insert_or_assign({event_->workspace, seq}, number);
  unflushed_offset_ = offset_;
  event_.reset();
  plan_flush();
}

void SequencerImpl::actualize() {
  {
    MutexLock lock(mutex_);
    must_have_begun();
    event_.reset();
    offset_ = 0;
    if (!seeded(SeededBug::kKeepTheCache)) cache_.clear();
    unflushed_.clear();
    unflushed_offset_ = 0;
    if (phase_ == Phase::kLost) return;
    phase_ = Phase::kActualizing;
    cancel_flush();
    // One write at a time: who ends it goes on here.
    if (flushing_) return;
  }
  if (auto use = enter()) scheduler_.post(guarded([this] { read_offset(); }));
}

// Numbers.

Number* SequencerImpl::Event::find(SeqId seq) {
  auto found = std::ranges::find(drawn, seq, &std::pair<SeqId, Number>::first);
  return found == drawn.end() ? nullptr : &found->second;
}

Result<Number> SequencerImpl::next(SeqId seq) {
  std::shared_ptr<Promise<Result<Number>>> promise;
  {
    MutexLock lock(mutex_);
    if (auto drawn = try_next(seq)) return std::move(*drawn);
    if (auto allowed = may_block(); !allowed) return std::unexpected(std::move(allowed.error()));
    promise = std::make_shared<Promise<Result<Number>>>();
    reading_.emplace(seq, [promise](Result<Number> number) { promise->set(std::move(number)); });
  }
  begin_reading();
  return promise->take();
}

void SequencerImpl::next(SeqId seq, NextDone done) {
  std::optional<Result<Number>> drawn;
  {
    MutexLock lock(mutex_);
    drawn = try_next(seq);
    if (!drawn) reading_.emplace(seq, std::move(done));
  }
  if (drawn) return done(std::move(*drawn));
  begin_reading();
}

void SequencerImpl::begin_reading() {
  if (auto use = enter()) return read_numbers();
  refuse_reading(closed_while_reading());
}

void SequencerImpl::refuse_reading(const Error& why) {
  std::optional<Reading> refused;
  {
    MutexLock lock(mutex_);
    refused.swap(reading_);
  }
  if (refused) refused->done(std::unexpected(why));
}

std::optional<Result<Number>> SequencerImpl::try_next(SeqId seq) {
  must_have_begun();
  if (!event_->floors->contains(seq))
    return fail(ErrorCode::kInvalidArgument, "the kind of this workspace has no sequence " +
                                                 std::to_string(static_cast<unsigned>(seq)) + "; nothing was drawn");
  SeqKey key{event_->workspace, seq};
  if (const Number* cached = cache_.find(key)) return draw(seq, *cached);
  if (const Number* drawn = event_->find(seq)) return draw(seq, *drawn);
  if (auto found = unflushed_.find(key); found != unflushed_.end()) return draw(seq, found->second);
  if (phase_ == Phase::kLost) return std::unexpected(*problem_);
  return std::nullopt;
}

Result<Number> SequencerImpl::draw(SeqId seq, Number last) {
  if (last == UINT64_MAX)
    return fail(ErrorCode::kTooLarge, "sequence " + std::to_string(static_cast<unsigned>(seq)) +
                                          " has no number left: 2^64 - 1 was the last; nothing was drawn");
  Number number = std::max(last + 1, event_->floors->at(seq));
  cache_.put({event_->workspace, seq}, number);
  if (Number* drawn = event_->find(seq))
    *drawn = number;
  else
    event_->drawn.emplace_back(seq, number);
  return number;
}

std::vector<SeqKey> SequencerImpl::keys_of_event(SeqId first) const {
  std::vector<SeqKey> keys = {{event_->workspace, first}};
  for (auto& [seq, initial] : *event_->floors)
    if (seq != first) keys.push_back({event_->workspace, seq});
  return keys;
}

void SequencerImpl::read_numbers() {
  std::vector<SeqKey> keys;
  {
    MutexLock lock(mutex_);
    if (!reading_) return;
    reading_->flushes = flushes_;
    keys = keys_of_event(reading_->seq);
  }
  storage_->read_numbers(keys, answer<std::vector<Number>>([this, keys](Result<std::vector<Number>> numbers) {
                           numbers_read(keys, std::move(numbers));
                         }));
}

void SequencerImpl::numbers_read(const std::vector<SeqKey>& keys, Result<std::vector<Number>> numbers) {
  if (!numbers && may_retry(numbers.error())) return again([this] { read_numbers(); });
  NextDone done;
  Result<Number> drawn = 0;
  {
    MutexLock lock(mutex_);
    if (!reading_) return;
    done = std::move(reading_->done);
    if (!numbers) {
      drawn = std::unexpected(*problem_);
    } else {
      check(numbers->size() == keys.size(), "the storage of a sequencer answered with too many numbers or too few");
      is_well();
      // Those beside it may be older than what was written since; itself was nowhere but in the storage.
      bool fresh = reading_->flushes == flushes_;
      for (std::size_t i = 1; i < keys.size(); ++i) {
        bool newer = cache_.find(keys[i]) || event_->find(keys[i].seq) || unflushed_.contains(keys[i]);
        if ((fresh && !newer) || seeded(SeededBug::kLoadOverNewer)) cache_.put(keys[i], (*numbers)[i]);
      }
      drawn = draw(reading_->seq, (*numbers)[0]);
    }
    reading_.reset();
  }
  // As a task of its own: it may end this, or come from a thread of the storage.
  scheduler_.post([done = std::move(done), drawn = std::move(drawn)]() mutable { done(std::move(drawn)); });
}

// Whoever waits.

void SequencerImpl::when_ready(Task ready) {
  {
    MutexLock lock(mutex_);
    must_be_open();
    // What was there before goes outside of the lock.
    ready.swap(ready_);
  }
  {
    MutexLock lock(mutex_);
    ready = take_ready();
  }
  if (ready) ready();
}

Task SequencerImpl::take_ready() {
  bool is_time = phase_ == Phase::kLost || (phase_ == Phase::kReady && !is_full());
  return is_time ? std::exchange(ready_, nullptr) : nullptr;
}

SequencerStatus SequencerImpl::status() {
  MutexLock lock(mutex_);
  return {.actualizing = phase_ == Phase::kActualizing,
          .unflushed = unflushed_.size(),
          .offset = offset_,
          .flushed_offset = flushed_offset_,
          .scanned = scanned_,
          .failures = failures_,
          .problem = problem_,
          .fenced = phase_ == Phase::kLost};
}

// The end.

void SequencerImpl::store_closing() {
  if (StoreAccess::impl(store_).muted()) return;
  Task ready;
  {
    MutexLock lock(mutex_);
    if (phase_ == Phase::kClosed) return;
    phase_ = Phase::kLost;
    if (!problem_ || problem_->code != ErrorCode::kStaleToken) problem_ = {ErrorCode::kClosed, "the store was closed"};
    ready = take_ready();
  }
  refuse_reading(closed_while_reading());
  if (ready) ready();
}

Result<void> SequencerImpl::close(Duration grace) {
  Task forgotten;
  std::optional<Reading> refused;
  std::uint64_t before_close;
  {
    MutexLock lock(mutex_);
    phase_ = Phase::kClosed;
    event_.reset();
    forgotten.swap(ready_);
    refused.swap(reading_);
    before_close = std::exchange(before_close_, 0);
  }
  // Whoever calls this still has a handle of the store.
  StoreAccess::impl(store_).forget_before_close(before_close);
  if (refused) refused->done(std::unexpected(closed_while_reading()));
  bool may_wait = may_block().has_value();
  gate_.close();
  if (!may_wait) return {};
  if (!gate_.wait_until_empty(grace))
    return fail(ErrorCode::kDeadline, "the sequencer is closed, but its storage has not returned from a call");
  std::shared_ptr<SeqStorage> storage;
  MutexLock lock(mutex_);
  storage.swap(storage_);
  return {};
}

void SequencerImpl::abandon() {
  if (StoreAccess::impl(store_).muted()) return gate_.close();
  (void)close(std::chrono::seconds(1));
}

}  // namespace perdure
