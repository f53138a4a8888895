// Group commit.
//
// Transactions that are ready to commit wait in a queue. One batch at a time goes to the engine: inside its commit each
// transaction of the batch is validated on top of those before it, and either joins or is sent back as a conflict; one
// sync then makes all of them durable, and only then are their callers answered. Bodies that promise to be short are
// run right there, on top of the batch, so that they cannot lose to their neighbours.
//
// While a batch is being synced the next one gathers. Callers that have just been answered tend to come back at once.
// If the committer did not wait for them, two half-sized crowds would take turns at the disk for ever. So it waits a
// moment for a part of as many as it has just served, at most a quarter of what the last commit took, and takes the
// others into the batch while that is being applied.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "store/call.h"
#include "store/engine.h"
#include "store/watches.h"

namespace perdure {

class Committer final : private CommitJob {
 public:
  Committer(Engine& engine, Scheduler& scheduler, WatchRegistry& watches, const StoreOptions& options);
  ~Committer() override;

  /// Takes a call whose body has run (or that is Body::kShort and has not), and answers it or has it rerun.
  void submit(std::shared_ptr<Call> call) PERDURE_EXCLUDES(mutex_);
  /// No timer of the committer runs after this, and it asks the engine for nothing more: the engine is about to go. No
  /// call is with the committer any more, but a batch whose callers were all answered may still be with the engine.
  void stop() PERDURE_EXCLUDES(mutex_);
  /// Runs `task` at `when`, whatever callbacks do with the threads of the scheduler, unless it is taken back.
  Executor::TimerId at_deadline(SteadyTime when, Task task) PERDURE_EXCLUDES(mutex_);
  void forget_deadline(Executor::TimerId timer) PERDURE_EXCLUDES(mutex_);
  /// The error of a store that has failed for good.
  std::optional<Error> failure() PERDURE_EXCLUDES(mutex_);

 private:
  enum class State {
    kIdle,        ///< Nothing queued, or gathering.
    kCommitting,  ///< The engine has our batch; ends with done().
    kResolving,   ///< The outcome of the batch is unknown; ends when the resolver has found out.
    kFailed       ///< The engine is gone for good. Final.
  };
  enum class Refusal {
    kFinal,   ///< The caller is told. An error of the body's own is final, whatever its code.
    kBeaten,  ///< The body is run again.
    kLater    ///< It was not looked at, and goes into a later batch as it is.
  };
  /// What apply decided about one call of the batch.
  struct Verdict {
    Receipt receipt = {};
    std::optional<Error> refused = {};
    Refusal refusal = Refusal::kFinal;
  };
  /// What a caller is told once the committer is out of its locks: an answer, or when to run the body again.
  struct Delivery {
    std::shared_ptr<Call> call;
    std::variant<Result<Receipt>, SteadyTime> what;
  };
  using Calls = std::vector<std::shared_ptr<Call>>;

  // CommitJob: called by the engine.
  Result<Applied> apply(CommitView& view) override PERDURE_EXCLUDES(mutex_);
  std::span<const std::uint64_t> changed_keys() const override { return changed_keys_; }
  void done(Result<void> outcome) override;

  void start_or_gather() PERDURE_REQUIRES(mutex_);
  void start() PERDURE_REQUIRES(mutex_);
  /// Takes what waits into the batch; whether there was anything.
  bool take_more() PERDURE_EXCLUDES(mutex_);
  Result<void> advance_batch_row(CommitView& view);
  Result<Verdict> apply_one(Call& call, CommitView& view);
  Result<void> write(Call& call, CommitView& view, Version version);
  Result<void> check_writes(Call& call, CommitView& view);

  /// What SeededBug::kAnswerBeforeSync does.
  void answer_early() PERDURE_EXCLUDES(mutex_);
  /// The batch has ended: durable, or without effect.
  void finish(const Result<void>& outcome) PERDURE_EXCLUDES(mutex_);
  void fail_for_good(Error error) PERDURE_EXCLUDES(mutex_);
  void resolve();
  void resolved(Result<bool> applied) PERDURE_EXCLUDES(mutex_);
  Result<Receipt> unknown(const std::string& why) const;
  SteadyTime back_off(Call& call);
  void deliver(std::vector<Delivery> deliveries);

  // To the sinks, without a lock.
  void report_batch(std::size_t transactions, Duration took, SteadyTime now) PERDURE_EXCLUDES(mutex_);
  void report_outcomes(const std::vector<Delivery>& deliveries) const PERDURE_EXCLUDES(mutex_);
  /// Does what the options say of a failed store, and so may not return.
  void report_failure(const Error& error) PERDURE_EXCLUDES(mutex_);

  void watch_deadline(SteadyTime deadline) PERDURE_REQUIRES(mutex_);
  void answer_overdue() PERDURE_EXCLUDES(mutex_);
  Executor::TimerId timer(SteadyTime when, void (Committer::*run)()) PERDURE_REQUIRES(mutex_);
  /// Puts calls of Refusal::kLater back to the front of the queue; null is left in the batch.
  void requeue_later_ones() PERDURE_REQUIRES(mutex_);
  void end_gathering() PERDURE_EXCLUDES(mutex_);

  struct BatchRow;
  /// Finds out, and settles for ever, whether the batch of an unknown outcome was applied.
  class Resolver;

  Engine& engine_;
  Scheduler& scheduler_;
  WatchRegistry& watches_;
  const StoreOptions& options_;
  const Bytes batch_key_;

  Mutex mutex_;
  State state_ PERDURE_GUARDED_BY(mutex_) = State::kIdle;
  std::deque<std::shared_ptr<Call>> queue_ PERDURE_GUARDED_BY(mutex_);
  /// How many callers were under way when the last batch ended, and until when to wait for them.
  std::size_t expected_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime gather_until_ PERDURE_GUARDED_BY(mutex_);
  bool gathering_ PERDURE_GUARDED_BY(mutex_) = false;
  SteadyTime started_ PERDURE_GUARDED_BY(mutex_);
  bool applying_ PERDURE_GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ PERDURE_GUARDED_BY(mutex_);
  /// Whether there is a failure_: asked before every run of a body.
  std::atomic<bool> failed_ = false;
  Executor::TimerId deadline_timer_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime deadline_timer_at_ PERDURE_GUARDED_BY(mutex_);
  /// Not the scheduler's own: callbacks that block there must not keep a batch from starting, or a deadline from being
  /// kept. Null once stopped.
  std::unique_ptr<Executor> timers_ PERDURE_GUARDED_BY(mutex_);
  /// How many calls are still to be committed one by one, after their batch did not fit.
  std::size_t alone_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// How many the batch under way may take.
  std::size_t batch_most_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime slow_record_from_ PERDURE_GUARDED_BY(mutex_);

  // The batch under way: touched by one thread at a time, whoever the engine calls, ordered by the engine.
  Calls batch_;
  std::vector<Verdict> verdicts_;
  std::vector<WatchRegistry::Change> changes_;
  std::vector<std::uint64_t> changed_keys_;
  std::size_t batch_bytes_ = 0;
  std::uint64_t batch_number_ = 0;
  int resolve_attempts_ = 0;
  std::unique_ptr<Resolver> resolver_;
};

}  // namespace perdure
