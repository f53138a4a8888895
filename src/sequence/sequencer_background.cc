// The flusher and the actualizer; see sequencer_impl.h.
#include <algorithm>

#include "base/assert.h"
#include "base/seeded_bug.h"
#include "sequence/sequencer_impl.h"
#include "store/report.h"

namespace perdure {
namespace {

/// A part of the log is no larger than this, in entries and in numbers: so much memory it takes, and so much is read
/// again after a crash.
constexpr std::uint64_t kScanEntriesMax = 100'000;
constexpr std::size_t kScanNumbersMax = 10'000;

}  // namespace

bool SequencerImpl::may_retry(const Error& error) {
  bool final = error.code == ErrorCode::kStaleToken || error.code == ErrorCode::kClosed;
  bool first;
  Task ready;
  {
    MutexLock lock(mutex_);
    first = !problem_;
    ++failures_;
    if (phase_ != Phase::kLost) problem_ = error;
    if (final && phase_ != Phase::kClosed) phase_ = Phase::kLost;
    final = phase_ == Phase::kLost || phase_ == Phase::kClosed;
    ready = take_ready();
  }
  if (first)
    log(StoreAccess::impl(store_).options(), LogLevel::kWarning, "sequence",
        (final ? "a sequencer lost its partition: " : "the storage of a sequencer fails, and is tried again: ") +
            to_string(error),
        {});
  tell(std::move(ready));
  return !final;
}

// The flusher.

void SequencerImpl::plan_flush() {
  bool hurry = is_full();
  if (flushing_ || phase_ != Phase::kReady || unflushed_offset_ == 0) return;
  if (flush_timer_ != 0 && (hurried_ || !hurry)) return;
  auto use = enter();
  if (!use) return;
  cancel_flush();
  SteadyTime when = scheduler_.now() + (hurry ? Duration::zero() : params_.flush_timeout);
  flush_timer_ = at(std::max(when, flush_from_), [this] { write_behind(); });
  hurried_ = hurry;
}

void SequencerImpl::cancel_flush() {
  if (flush_timer_ == 0) return;
  if (auto use = enter()) scheduler_.cancel(flush_timer_);
  flush_timer_ = 0;
}

void SequencerImpl::write_behind() {
  std::vector<SeqValue> values;
  LogOffset offset;
  {
    MutexLock lock(mutex_);
    if (flushing_ || phase_ != Phase::kReady || unflushed_offset_ == 0) return;
    cancel_flush();
    flushing_ = true;
    values.reserve(unflushed_.size());
    for (auto& [key, number] : unflushed_) values.push_back({key, number});
    offset = unflushed_offset_;
  }
  storage_->write(values, offset,
                  answer<void>([this, values, offset](const Result<void>& done) { written(values, offset, done); }));
}

void SequencerImpl::written(const std::vector<SeqValue>& values, LogOffset offset, const Result<void>& result) {
  if (!result) may_retry(result.error());
  bool actualize;
  Task ready;
  {
    MutexLock lock(mutex_);
    flushing_ = false;
    actualize = phase_ == Phase::kActualizing;
    if (result) {
      is_well();
      ++flushes_;
      flushed_offset_ = offset;
      // What has grown since is still to be written.
      for (const SeqValue& value : values) {
        auto found = unflushed_.find(value.key);
        bool same = found != unflushed_.end() && found->second == value.number;
        if (same || (found != unflushed_.end() && seeded(SeededBug::kForgetWhatGrew))) unflushed_.erase(found);
      }
      if (unflushed_offset_ == offset) unflushed_offset_ = 0;
    } else {
      flush_from_ = scheduler_.now() + params_.retry;
    }
    plan_flush();
    ready = take_ready();
  }
  tell(std::move(ready));
  if (actualize) read_offset();
}

// The actualizer.

void SequencerImpl::read_offset() {
  storage_->read_offset(answer<LogOffset>([this](Result<LogOffset> offset) {
    if (offset) return *offset == UINT64_MAX ? actualized(*offset) : scan(*offset + 1);
    if (may_retry(offset.error())) again([this] { read_offset(); });
  }));
}

SeqStorage::More SequencerImpl::Scan::take(std::span<const SeqValue> values, LogOffset offset) {
  check(offset >= from && offset > last, "the storage of a sequencer gave entries of the log in the wrong order");
  last = offset;
  ++entries;
  for (const SeqValue& value : values) {
    Number& most = numbers[value.key];
    most = seeded(SeededBug::kLastInsteadOfMost) ? value.number : std::max(most, value.number);
  }
  enough = entries >= kScanEntriesMax || numbers.size() >= kScanNumbersMax;
  return enough ? SeqStorage::More::kEnough : SeqStorage::More::kGoOn;
}

void SequencerImpl::scan(LogOffset from) {
  auto scan = std::make_shared<Scan>(from);
  storage_->scan_log(
      from, [scan](std::span<const SeqValue> values, LogOffset offset) { return scan->take(values, offset); },
      answer<void>([this, scan](const Result<void>& result) { scanned(scan, result); }));
}

void SequencerImpl::scanned(const ScanPtr& scan, const Result<void>& result) {
  {
    MutexLock lock(mutex_);
    scanned_ += scan->entries;
    if (result) is_well();
  }
  if (!result) {
    if (may_retry(result.error())) again([this, from = scan->from] { this->scan(from); });
    return;
  }
  if (scan->entries == 0) return actualized(scan->from - 1);
  merge(scan);
}

void SequencerImpl::merge(const ScanPtr& scan) {
  if (scan->numbers.empty()) return write_scan(scan, {});
  std::vector<SeqKey> keys;
  for (auto& [key, number] : scan->numbers) keys.push_back(key);
  storage_->read_numbers(keys, answer<std::vector<Number>>([this, scan, keys](Result<std::vector<Number>> stored) {
                           merged(scan, keys, std::move(stored));
                         }));
}

void SequencerImpl::merged(const ScanPtr& scan, const std::vector<SeqKey>& keys, Result<std::vector<Number>> stored) {
  if (!stored) {
    if (may_retry(stored.error())) again([this, scan] { merge(scan); });
    return;
  }
  check(stored->size() == keys.size(), "the storage of a sequencer answered with too many numbers or too few");
  std::vector<SeqValue> values;
  // An entry may have brought a number from elsewhere that is below the last one.
  for (std::size_t i = 0; i < keys.size(); ++i)
    values.push_back({keys[i], std::max(scan->numbers.at(keys[i]), (*stored)[i])});
  write_scan(scan, std::move(values));
}

void SequencerImpl::write_scan(const ScanPtr& scan, std::vector<SeqValue> values) {
  // Also without values: the offset bounds what is read the next time.
  storage_->write(values, scan->last, answer<void>([this, scan, values](const Result<void>& done) {
                    if (done) return scan_written(scan, values);
                    if (may_retry(done.error())) again([this, scan, values] { write_scan(scan, values); });
                  }));
}

void SequencerImpl::scan_written(const ScanPtr& scan, const std::vector<SeqValue>& values) {
  {
    MutexLock lock(mutex_);
    is_well();
    ++flushes_;
    flushed_offset_ = scan->last;
    for (const SeqValue& value : values) cache_.put(value.key, value.number);
  }
  if (!scan->enough || scan->last == UINT64_MAX) return actualized(scan->last);
  at(scheduler_.now() + params_.batch_pause, [this, from = scan->last + 1] { this->scan(from); });
}

void SequencerImpl::actualized(LogOffset last) {
  Task ready;
  {
    MutexLock lock(mutex_);
    if (phase_ != Phase::kActualizing) return;
    phase_ = Phase::kReady;
    offset_ = flushed_offset_ = last;
    ready = take_ready();
  }
  tell(std::move(ready));
}

}  // namespace perdure
