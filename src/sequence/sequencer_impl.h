// How the sequencer works.
//
// In the foreground, under one mutex and without waiting: the event that was started, the numbers it has drawn
// (`drawn`), those of events that are in the log but not stored (`unflushed_`), and a cache of the latest numbers. A
// number is looked for in the cache, among the drawn, among the unflushed and in the storage, in this order, so that
// what is evicted from the cache is found where it is newest.
//
// In the background, one at a time, never both:
//
//     the actualizer   read_offset, then { scan_log, read_numbers, write } until the log has ended; then it is ready
//     the flusher      write, some time after a flush, or at once if there is too much
//
// The actualizer waits for a flush that is under way, so that the storage never sees two writes at once. Whatever fails
// is tried again after a while, but for what says that the partition is lost.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "perdure/sequencer.h"
#include "runtime/mutex.h"
#include "sequence/number_cache.h"
#include "store/store_part.h"

namespace perdure {

class SequencerImpl : public StorePart<SequencerImpl> {
 public:
  using NextDone = std::move_only_function<void(Result<Number>)>;

  static Result<std::shared_ptr<SequencerImpl>> open(Store store, SequencerParams params,
                                                     std::shared_ptr<SeqStorage> storage);
  /// `store` is kept open by the handle.
  SequencerImpl(Store& store, SequencerParams params, std::shared_ptr<SeqStorage> storage);

  /// Once it is shared.
  void begin() PERDURE_EXCLUDES(mutex_);
  Result<LogOffset> start(WorkspaceKind kind, WorkspaceId workspace) PERDURE_EXCLUDES(mutex_);
  Result<Number> next(SeqId seq) PERDURE_EXCLUDES(mutex_);
  void next(SeqId seq, NextDone done) PERDURE_EXCLUDES(mutex_);
  void flush() PERDURE_EXCLUDES(mutex_);
  void actualize() PERDURE_EXCLUDES(mutex_);
  void when_ready(Task ready) PERDURE_EXCLUDES(mutex_);
  SequencerStatus status() PERDURE_EXCLUDES(mutex_);
  Result<void> close(Duration grace) PERDURE_EXCLUDES(mutex_);
  /// The handle goes.
  void abandon();

 private:
  using Floors = std::map<SeqId, Number>;
  enum class Phase {
    kActualizing,  ///< From the beginning, and from `actualize`, until the log was read.
    kReady,        ///< Until `actualize`, or the partition is lost.
    kLost,         ///< For good: somebody else has it.
    kClosed,       ///< For good.
  };
  /// What `start` began.
  struct Event {
    WorkspaceId workspace;
    const Floors* floors;
    /// The last number that it drew from each sequence.
    std::vector<std::pair<SeqId, Number>> drawn = {};

    Number* find(SeqId seq);
  };
  /// A number that is being read.
  struct Reading {
    SeqId seq;
    NextDone done;
    /// Of the flushes, when it was last asked for.
    std::uint64_t flushes = 0;
  };
  /// A part of the log, as it is being read. Only the storage's callbacks touch it, one after the other.
  struct Scan {
    LogOffset from;
    LogOffset last = 0;
    std::uint64_t entries = 0;
    sequence::NumberMap numbers = {};
    bool enough = false;

    SeqStorage::More take(std::span<const SeqValue> values, LogOffset offset);
  };
  using ScanPtr = std::shared_ptr<Scan>;

  /// An answer of the storage, which does nothing once this is closed.
  template <class T, class F>
  SeqStorage::Done<T> answer(F then);
  /// Counts a failure, and says whether it is worth trying again; if not, the partition is lost, as `problem_` says.
  bool may_retry(const Error& error) PERDURE_EXCLUDES(mutex_);
  void again(Task task) { at(scheduler_.now() + params_.retry, std::move(task)); }
  /// The storage works.
  void is_well() PERDURE_REQUIRES(mutex_) {
    if (phase_ != Phase::kLost) problem_.reset();
  }
  void must_be_open() const PERDURE_REQUIRES(mutex_);
  void must_have_begun() const PERDURE_REQUIRES(mutex_);
  bool is_full() const PERDURE_REQUIRES(mutex_) { return unflushed_.size() > params_.unflushed_max; }
  /// The one who waits, if it is time to tell him.
  Task take_ready() PERDURE_REQUIRES(mutex_);
  /// As a task of its own, which may well end this. Only inside of the gate.
  void tell(Task ready) {
    if (ready) scheduler_.post(guarded(std::move(ready)));
  }

  // Numbers.
  /// Nothing if the number has to be read.
  std::optional<Result<Number>> try_next(SeqId seq) PERDURE_REQUIRES(mutex_);
  Result<Number> draw(SeqId seq, Number last) PERDURE_REQUIRES(mutex_);
  std::vector<SeqKey> keys_of_event(SeqId first) const PERDURE_REQUIRES(mutex_);
  void begin_reading() PERDURE_EXCLUDES(mutex_);
  void read_numbers() PERDURE_EXCLUDES(mutex_);
  void numbers_read(const std::vector<SeqKey>& keys, Result<std::vector<Number>> numbers) PERDURE_EXCLUDES(mutex_);
  /// Refuses the number that is being read, if one is.
  void refuse_reading(const Error& why) PERDURE_EXCLUDES(mutex_);
  void store_closing() PERDURE_EXCLUDES(mutex_);
  Error closed_while_reading() const {
    return {ErrorCode::kClosed, "the sequencer was closed while a number was read"};
  }

  // The flusher.
  /// Sees to it that there is a timer, if there is something to write.
  void plan_flush() PERDURE_REQUIRES(mutex_);
  void cancel_flush() PERDURE_REQUIRES(mutex_);
  void write_behind() PERDURE_EXCLUDES(mutex_);
  void written(const std::vector<SeqValue>& values, LogOffset offset, const Result<void>& result)
      PERDURE_EXCLUDES(mutex_);

  // The actualizer.
  void read_offset();
  void scan(LogOffset from);
  void scanned(const ScanPtr& scan, const Result<void>& result) PERDURE_EXCLUDES(mutex_);
  void merge(const ScanPtr& scan);
  void merged(const ScanPtr& scan, const std::vector<SeqKey>& keys, Result<std::vector<Number>> stored);
  void write_scan(const ScanPtr& scan, std::vector<SeqValue> values);
  void scan_written(const ScanPtr& scan, const std::vector<SeqValue>& values) PERDURE_EXCLUDES(mutex_);
  void actualized(LogOffset last) PERDURE_EXCLUDES(mutex_);

  const SequencerParams params_;
  /// Used only inside of the gate, and let go of when that is closed: it may keep the store open.
  std::shared_ptr<SeqStorage> storage_;

  Mutex mutex_;
  Phase phase_ PERDURE_GUARDED_BY(mutex_) = Phase::kActualizing;
  std::optional<Event> event_ PERDURE_GUARDED_BY(mutex_);
  /// The offset that was last used, that of the event included; 0 while it is not known.
  LogOffset offset_ PERDURE_GUARDED_BY(mutex_) = 0;
  sequence::NumberCache cache_ PERDURE_GUARDED_BY(mutex_);
  /// Of events that are in the log; and the offset of the last of them, 0 if it is stored.
  sequence::NumberMap unflushed_ PERDURE_GUARDED_BY(mutex_);
  LogOffset unflushed_offset_ PERDURE_GUARDED_BY(mutex_) = 0;
  LogOffset flushed_offset_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// A write of the flusher is under way.
  bool flushing_ PERDURE_GUARDED_BY(mutex_) = false;
  Executor::TimerId flush_timer_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// The timer is one that does not wait for more.
  bool hurried_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Not before this, after a failure.
  SteadyTime flush_from_ PERDURE_GUARDED_BY(mutex_) = {};
  /// How many writes have ended well: what was read before the last of them may be older than what was written.
  std::uint64_t flushes_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::optional<Reading> reading_ PERDURE_GUARDED_BY(mutex_);
  Task ready_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t scanned_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t failures_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::optional<Error> problem_ PERDURE_GUARDED_BY(mutex_);
};

template <class T, class F>
SeqStorage::Done<T> SequencerImpl::answer(F then) {
  return [weak = weak_from_this(), then = std::move(then)](Result<T> result) mutable {
    auto self = weak.lock();
    if (!self) return;
    if (auto use = self->enter()) then(std::move(result));
  };
}

}  // namespace perdure
