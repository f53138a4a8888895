#pragma once

#include <memory>

#include "perdure/store.h"
#include "runtime/latch.h"
#include "runtime/scheduler.h"
#include "store/transaction_state.h"

namespace perdure {

/// One call of transact: its body, its present run, and the way to its caller. It is run by one thread at a time, and
/// handed from the runner to the Committer and back.
class Call : public std::enable_shared_from_this<Call> {
 public:
  using BodyFn = TransactionState::BodyFn;

  using Feed = TransactionState::Feed;

  Call(Engine& engine, WatchRegistry& watches, Feed feed, BodyFn body, const TransactOptions& options,
       SteadyTime deadline)
      : body_(std::move(body)), options_(options), deadline_(deadline), state_(engine, watches, feed) {}
  virtual ~Call() = default;

  BodyFn& body() { return body_; }
  const TransactOptions& options() const { return options_; }
  SteadyTime deadline() const { return deadline_; }
  TransactionState& state() { return state_; }
  int conflicts() const { return conflicts_; }
  void count_conflict() { ++conflicts_; }
  /// Snapshots that are taken from now on are newer than the call.
  void note_fresh() { fresh_ = true; }
  bool fresh() const { return fresh_; }

  /// The end: the caller gets its answer. At most once.
  virtual void answer(Result<Receipt> result) = 0;
  /// The body is to be run again, at `when`.
  virtual void rerun(SteadyTime when) = 0;
  /// Whether `answer` and `rerun` run the user's code, and so must not be called on the commit thread.
  virtual bool runs_user_code() const = 0;

  /// Guarded by the committer's mutex.
  enum class Phase {
    kOutside,  ///< Not with the committer.
    kQueued,   ///< Waits for a batch: may be taken out without effect.
    kTaken,    ///< In the batch that is being committed.
    kAnswered  ///< Its caller has its answer already; the batch only carries it along.
  };
  Phase phase = Phase::kOutside;

 private:
  BodyFn body_;
  const TransactOptions options_;
  const SteadyTime deadline_;
  TransactionState state_;
  int conflicts_ = 0;
  bool fresh_ = false;
};

}  // namespace perdure
