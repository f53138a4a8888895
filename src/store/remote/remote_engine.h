// An engine whose rows are kept by a server across a network: PostgreSQL, or etcd.
//
// A batch is made on top of what this process knows of the store (replica.h) and appended to the server's log on the
// condition that nobody else was first: one round trip, and one sync of the server's, for all transactions of the
// batch. If somebody was, the server says what they did, and the batch is made again on top of that. So the store's
// versions are one line, whoever writes, and a process that was cut off or stopped cannot write a thing that rests on
// an old view.
//
// Reads need no round trip if what they want is known. That alone would let a process answer from the past, so an
// answer that comes without a commit waits until the server has confirmed, some time after the question, that nothing
// newer was there. One confirmation serves all who wait for one.
//
// Three lanes, each a thread in production: one makes and appends batches, one asks for news and confirms, one folds.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/seeded_bug.h"
#include "perdure/store.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "store/engine.h"
#include "store/remote/turns.h"
#include "store/remote/views.h"

namespace perdure::remote {

struct RemoteOptions {
  /// Of the log: so much is folded into rows together.
  std::size_t fold_bytes = std::size_t{4} << 20;
  /// With so much of it, commits wait for the folding; with four times as much they are refused, for it is all in
  /// memory.
  std::size_t unfolded_bytes_max = std::size_t{64} << 20;
  /// How long an append waits for that of another process which has asked for a turn.
  Duration courtesy = std::chrono::milliseconds(50);
};

class RemoteEngine final : public Engine {
 public:
  /// Asks the server where the store stands.
  static Result<std::unique_ptr<Engine>> open(std::unique_ptr<RowServer> server, Scheduler& scheduler,
                                              const StoreOptions& store_options, const RemoteOptions& options = {});
  /// Without asking yet.
  RemoteEngine(std::unique_ptr<ServerLink> server, Scheduler& scheduler, const StoreOptions& store_options,
               const RemoteOptions& options = {});
  ~RemoteEngine() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  bool was_new() const override { return was_new_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override { return std::make_unique<ReplicaSnapshot>(replica_); }
  /// Never known without asking.
  bool is_durable(std::uint64_t) override { return seeded(SeededBug::kAnswerFromThePast); }
  void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) override
      PERDURE_EXCLUDES(mutex_);
  void commit(CommitJob& job) override;
  void listen(ChangeListener* listener) override { replica_.listen(listener); }
  void catch_up(Version reached) override { news_of(reached); }
  Result<VerifyReport> verify(const std::function<void(double)>& progress) override;
  Result<void> backup(const std::string& path) override;

 private:
  struct Waiter {
    std::uint64_t epoch;
    std::move_only_function<void(Result<void>)> then;
  };

  // On the commit lane. A step of its own for each: others may come in between.
  void make_batch();
  /// Whether the batch has to wait until the folding is over, or somebody else has had a turn.
  bool park() PERDURE_EXCLUDES(mutex_);
  void unpark() PERDURE_REQUIRES(mutex_);
  void then(void (RemoteEngine::*step)()) PERDURE_EXCLUDES(mutex_);
  void append_batch() PERDURE_EXCLUDES(mutex_);
  void appended(Result<Appended> answer) PERDURE_EXCLUDES(mutex_);
  void confirm_nothing();
  void refuse_unfolded() PERDURE_EXCLUDES(mutex_);
  void finish(Result<void> outcome) PERDURE_EXCLUDES(mutex_);
  void begin_anew() PERDURE_EXCLUDES(mutex_);
  Result<void> catch_up_now();

  void heard(Ring ring) PERDURE_EXCLUDES(mutex_);
  /// The log has reached a version; 0: anything may have happened.
  void news_of(Version reached) PERDURE_EXCLUDES(mutex_);
  void ask_for_news() PERDURE_EXCLUDES(mutex_);
  /// What the bell has rung for is still not known: watches wait for it.
  void ask_again() PERDURE_EXCLUDES(mutex_);

  void fold_if_due() PERDURE_EXCLUDES(mutex_);
  void fold() PERDURE_EXCLUDES(mutex_);
  void folded(Version to, Result<bool> done) PERDURE_EXCLUDES(mutex_);

  const StoreOptions store_options_;
  const RemoteOptions options_;
  Scheduler& scheduler_;
  Replica replica_;
  const Capabilities capabilities_;
  bool was_new_ = false;

  /// Of the batch that is being appended: we learn of its end by the answer, and need not be told by the bell.
  std::atomic<std::uint64_t> appending_ = 0;

  // The batch under way: of the commit lane.
  CommitJob* job_ = nullptr;
  std::unique_ptr<BatchView> batch_;
  LogEntry entry_;
  Asked asked_;
  SteadyTime sent_;
  /// Where the log ended at a time after the batch was applied; 0 if it was applied for the first time.
  Version confirmed_;

  Mutex mutex_;
  bool closing_ PERDURE_GUARDED_BY(mutex_) = false;
  Turns turns_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ PERDURE_GUARDED_BY(mutex_);
  bool asking_ PERDURE_GUARDED_BY(mutex_) = false;
  bool asks_again_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Of the news lane alone: questions that have failed since the last that was answered.
  int asked_in_vain_ = 0;
  bool folding_ PERDURE_GUARDED_BY(mutex_) = false;
  /// After an attempt that came to nothing, none is made until then: each copies all that is not folded.
  SteadyTime no_fold_before_ PERDURE_GUARDED_BY(mutex_) = {};
  /// Attempts that failed since the last that did not.
  int folded_in_vain_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// Why the log could not be folded, when that was tried last.
  std::string fold_problem_ PERDURE_GUARDED_BY(mutex_);
  /// A batch waits before it is appended.
  bool parked_ PERDURE_GUARDED_BY(mutex_) = false;

  std::unique_ptr<Executor> commit_lane_;
  std::unique_ptr<Executor> news_lane_;
  std::unique_ptr<Executor> fold_lane_;
};

}  // namespace perdure::remote
