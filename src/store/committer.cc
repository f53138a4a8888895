#include "store/committer.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "store/ranges.h"
#include "store/unknown_commit.h"

namespace perdure {
namespace {

/// Transactions in one batch: enough to make the sync cheap for each, few enough to answer soon.
constexpr std::size_t kBatchMax = 4096;
/// Answers handed to one task of the scheduler.
constexpr std::size_t kDeliveriesPerTask = 32;
/// So few are applied in less time than it takes them to come again.
constexpr std::size_t kFewCallers = 16;
constexpr Duration kGatherMax = std::chrono::microseconds(500);
constexpr Duration kBackOffMax = std::chrono::milliseconds(50);

}  // namespace

Committer::Committer(Engine& engine, Scheduler& scheduler, WatchRegistry& watches, const StoreOptions& options)
    : engine_(engine),
      scheduler_(scheduler),
      watches_(watches),
      options_(options),
      batch_key_(Bytes(kSystemKeys) + "batch/" + encode_counter(static_cast<std::int64_t>(scheduler.random()))),
      timers_(scheduler.lane("perdure-timers")) {}

Committer::~Committer() {
  stop();
}

void Committer::stop() {
  std::unique_ptr<Executor> timers;
  {
    MutexLock lock(mutex_);
    timers = std::move(timers_);
  }
  timers.reset();  // Waits for one that is running.
}

void Committer::submit(std::shared_ptr<Call> call) {
  Error refused;
  {
    MutexLock lock(mutex_);
    if (!failure_ && queue_.size() < options_.pending_max) {
      call->phase = Call::Phase::kQueued;
      watch_deadline(call->deadline());
      queue_.push_back(std::move(call));
      if (state_ == State::kIdle) start_or_gather();
      return;
    }
    refused = failure_ ? *failure_
                       : Error{ErrorCode::kLimitExceeded, "the store has " + std::to_string(options_.pending_max) +
                                                              " transactions waiting to commit; slow down"};
  }
  deliver({{std::move(call), Result<Receipt>(std::unexpected(std::move(refused)))}});
}

Executor::TimerId Committer::at_deadline(SteadyTime when, Task task) {
  MutexLock lock(mutex_);
  return timers_ ? timers_->at(when, std::move(task)) : 0;
}

void Committer::forget_deadline(Executor::TimerId timer) {
  MutexLock lock(mutex_);
  if (timers_) timers_->cancel(timer);
}

std::optional<Error> Committer::failure() {
  if (!failed_) return std::nullopt;
  MutexLock lock(mutex_);
  return failure_;
}

void Committer::start_or_gather() {
  if (queue_.empty()) return;
  // Those that were answered just now are likely to come again. Of many it begins with a quarter: the others come while
  // these are applied.
  std::size_t enough = expected_ < kFewCallers ? expected_ : expected_ / 4;
  bool wait = queue_.size() < enough && scheduler_.now() < gather_until_;
  if (!wait) {
    start();
  } else if (!gathering_) {
    gathering_ = true;
    timer(gather_until_, &Committer::end_gathering);
  }
}

void Committer::end_gathering() {
  MutexLock lock(mutex_);
  gathering_ = false;
  if (state_ == State::kIdle && !queue_.empty()) start();
}

void Committer::start() {
  state_ = State::kCommitting;
  batch_most_ = alone_ > 0 ? 1 : kBatchMax;
  if (alone_ > 0) --alone_;
  started_ = scheduler_.now();
  ++batch_number_;
  engine_.commit(*this);
}

bool Committer::take_more() {
  MutexLock lock(mutex_);
  // No end would come of taking whatever arrives meanwhile.
  if (!batch_.empty() && batch_.size() >= std::min(expected_, batch_most_)) return false;
  std::size_t before = batch_.size();
  while (!queue_.empty() && batch_.size() < batch_most_) {
    queue_.front()->phase = Call::Phase::kTaken;
    batch_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  verdicts_.resize(batch_.size());
  return batch_.size() > before;
}

Result<Applied> Committer::apply(CommitView& view) {
  {
    MutexLock lock(mutex_);
    applying_ = true;
  }
  // A second apply of the same batch begins with the calls that the first has taken.
  verdicts_.assign(batch_.size(), {});
  batch_bytes_ = 0;
  changes_.clear();
  changed_keys_.clear();
  auto applied = Applied::kNothingToTell;
  Result<void> result;
  if (engine_.capabilities().unknown_commits) result = advance_batch_row(view);
  for (std::size_t i = 0; result && (i < batch_.size() || (!view.confirmed() && take_more())); ++i) {
    if (batch_[i]->phase == Call::Phase::kAnswered) continue;
    if (batch_bytes_ > engine_.capabilities().batch_bytes_max) {
      verdicts_[i].refusal = Refusal::kLater;
      continue;
    }
    auto verdict = apply_one(*batch_[i], view);
    if (!verdict) {
      result = std::unexpected(std::move(verdict.error()));
    } else {
      if (verdict->receipt.version != Version{})
        applied = Applied::kSomething;
      else if (verdict->refusal == Refusal::kFinal && applied == Applied::kNothingToTell)
        applied = Applied::kNothing;
      verdicts_[i] = std::move(*verdict);
    }
  }
  {
    MutexLock lock(mutex_);
    applying_ = false;
  }
  if (!result) return std::unexpected(std::move(result.error()));
  if (seeded(SeededBug::kLoseBell)) changes_.clear();
  if (seeded(SeededBug::kAnswerBeforeSync)) answer_early();
  for (const auto& change : changes_) changed_keys_.push_back(change.key_hash);
  return applied;
}

void Committer::answer_early() {
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      if (batch_[i]->phase != Call::Phase::kTaken || verdicts_[i].refused || verdicts_[i].refusal != Refusal::kFinal)
        continue;
      batch_[i]->phase = Call::Phase::kAnswered;
      deliveries.push_back({batch_[i], Result<Receipt>(verdicts_[i].receipt)});
    }
  }
  deliver(std::move(deliveries));
}

void Committer::done(Result<void> outcome) {
  if (outcome) {
    watches_.notify(changes_);
    finish(outcome);
  } else if (outcome.error().code == ErrorCode::kStoreFailed) {
    fail_for_good(std::move(outcome.error()));
  } else if (outcome.error().code == ErrorCode::kCommitUnknown) {
    resolve();
  } else {
    finish(outcome);
  }
}

void Committer::finish(const Result<void>& outcome) {
  std::vector<Delivery> deliveries;
  deliveries.reserve(batch_.size());
  MutexLock lock(mutex_);
  bool did_not_fit =
      !outcome && (outcome.error().code == ErrorCode::kStoreFull || outcome.error().code == ErrorCode::kTooLarge);
  if (did_not_fit && batch_.size() > 1) {
    // One large transaction must not take those down that would still fit: each is tried alone.
    alone_ = batch_.size();
    verdicts_.assign(batch_.size(), {.refusal = Refusal::kLater});
    requeue_later_ones();
  }
  if (outcome) requeue_later_ones();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    auto& call = batch_[i];
    if (!call) continue;
    bool answered = call->phase == Call::Phase::kAnswered;
    call->phase = Call::Phase::kOutside;
    if (answered) continue;
    // A batch that the engine refused before or within apply has no verdicts that count.
    const auto& refused = outcome ? verdicts_[i].refused : std::optional(outcome.error());
    if (!refused) {
      call->state().arm_watches(verdicts_[i].receipt.version);
      deliveries.push_back({std::move(call), Result<Receipt>(verdicts_[i].receipt)});
    } else if (outcome ? verdicts_[i].refusal == Refusal::kBeaten : refused->code == ErrorCode::kConflict) {
      SteadyTime when = back_off(*call);
      deliveries.push_back({std::move(call), when});
    } else {
      deliveries.push_back({std::move(call), Result<Receipt>(std::unexpected(*refused))});
    }
  }
  // Without a batch the engine failed before it took one: trying again at once would only spin.
  if (batch_.empty() && !outcome) {
    for (auto& call : queue_) {
      call->phase = Call::Phase::kOutside;
      deliveries.push_back({std::move(call), Result<Receipt>(std::unexpected(outcome.error()))});
    }
    queue_.clear();
  }
  std::size_t taken = batch_.size();
  batch_.clear();
  state_ = State::kIdle;
  SteadyTime now = scheduler_.now();
  Duration took = now - started_;
  expected_ = deliveries.size() + queue_.size();
  gather_until_ = now + std::min(took / 4, kGatherMax);
  lock.unlock();
  report_batch(taken, took, now);
  report_outcomes(deliveries);
  deliver(std::move(deliveries));
  lock.lock();
  if (state_ == State::kIdle) start_or_gather();
}

void Committer::requeue_later_ones() {
  for (std::size_t i = batch_.size(); i-- > 0;) {
    if (verdicts_[i].refusal != Refusal::kLater || batch_[i]->phase != Call::Phase::kTaken) continue;
    batch_[i]->phase = Call::Phase::kQueued;
    queue_.push_front(std::move(batch_[i]));
  }
}

void Committer::fail_for_good(Error error) {
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    failure_ = error;
    failed_ = true;
    state_ = State::kFailed;
    for (auto& call : batch_) {
      if (call->phase != Call::Phase::kAnswered)
        deliveries.push_back({call, unknown("the store failed: " + error.message)});
      call->phase = Call::Phase::kOutside;
    }
    batch_.clear();
    for (auto& call : queue_) {
      call->phase = Call::Phase::kOutside;
      deliveries.push_back({std::move(call), Result<Receipt>(std::unexpected(error))});
    }
    queue_.clear();
  }
  report_outcomes(deliveries);
  deliver(std::move(deliveries));
  report_failure(error);
}

Result<Receipt> Committer::unknown(const std::string& why) const {
  return fail(ErrorCode::kCommitUnknown, "the transaction may or may not have committed: " + why);
}

SteadyTime Committer::back_off(Call& call) {
  call.count_conflict();
  // The first rerun is at once: most conflicts are with a commit that is over by now.
  if (call.conflicts() == 1) return scheduler_.now();
  Duration most =
      std::min<Duration>(std::chrono::microseconds(250) * (1 << std::min(call.conflicts(), 10)), kBackOffMax);
  return scheduler_.now() + Duration(static_cast<Duration::rep>(scheduler_.random() % most.count()));
}

void Committer::deliver(std::vector<Delivery> deliveries) {
  auto tell = [](Delivery& delivery) {
    if (auto* when = std::get_if<SteadyTime>(&delivery.what))
      delivery.call->rerun(*when);
    else
      delivery.call->answer(std::move(std::get<Result<Receipt>>(delivery.what)));
  };
  std::vector<Delivery> chunk;
  auto post_chunk = [&] {
    if (chunk.empty()) return;
    scheduler_.post([tell, deliveries = std::move(chunk)]() mutable {
      for (Delivery& delivery : deliveries) tell(delivery);
    });
    chunk = {};
  };
  for (Delivery& delivery : deliveries) {
    if (!delivery.call->runs_user_code()) {
      tell(delivery);
      continue;
    }
    chunk.push_back(std::move(delivery));
    if (chunk.size() == kDeliveriesPerTask) post_chunk();
  }
  post_chunk();
}

Executor::TimerId Committer::timer(SteadyTime when, void (Committer::*run)()) {
  if (!timers_) return 0;
  return timers_->at(when, [this, run] { (this->*run)(); });
}

void Committer::watch_deadline(SteadyTime deadline) {
  if (deadline_timer_ != 0 && deadline_timer_at_ <= deadline) return;
  if (deadline_timer_ != 0 && timers_) timers_->cancel(deadline_timer_);
  deadline_timer_at_ = deadline;
  deadline_timer_ = timer(deadline, &Committer::answer_overdue);
}

void Committer::answer_overdue() {
  std::vector<Delivery> deliveries;
  {
    MutexLock lock(mutex_);
    SteadyTime now = scheduler_.now();
    deadline_timer_ = 0;
    std::erase_if(queue_, [&](std::shared_ptr<Call>& call) {
      if (call->deadline() > now) return false;
      call->phase = Call::Phase::kOutside;
      deliveries.push_back(
          {std::move(call), Result<Receipt>(fail(ErrorCode::kUnavailable,
                                                 "the store did not take the transaction in time: another process may "
                                                 "hold it, or it is overloaded; try again"))});
      return true;
    });
    // While the batch is being applied its bodies may be running; it will not be long.
    SteadyTime next = applying_ ? now + std::chrono::milliseconds(10) : SteadyTime::max();
    for (auto& call : batch_) {
      if (call->phase != Call::Phase::kTaken) continue;
      if (!applying_ && call->deadline() <= now) {
        call->phase = Call::Phase::kAnswered;
        deliveries.push_back({call, unknown("its commit was still under way at the deadline")});
      } else if (call->deadline() > now) {
        next = std::min(next, call->deadline());
      }
    }
    for (auto& call : queue_) next = std::min(next, call->deadline());
    if (next != SteadyTime::max()) watch_deadline(next);
  }
  report_outcomes(deliveries);
  deliver(std::move(deliveries));
}

}  // namespace perdure
