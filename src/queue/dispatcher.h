// Runs the events of one worker on this node.
//
//     ring -> turn -> handlers -> turn -> ...
//
// The dispatcher has `concurrency` places. Whenever some are free and there may be ready events, it takes a turn
// (turn.h), which claims as many and settles what has come to an end. It is told that there may be events by a watch on
// the worker's bell, armed by the very turn that found none, so that nothing is missed and nothing is polled.
//
// A handler runs on a thread of the pool, with no transaction open. What it returns is settled by a later turn; if it
// left bodies to be committed with the completion, by a transaction of its own. A settlement that fails is tried again,
// for as long as the claim is ours: until the session is over, when others take over.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "queue/turn.h"
#include "runtime/handler_pool.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure {
class QueueImpl;
}

namespace perdure::queue {

class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  Dispatcher(QueueImpl& home, std::string space, std::string worker, Handler handler, WorkOptions options)
      : home_(home),
        space_(std::move(space)),
        worker_(std::move(worker)),
        handler_(std::make_shared<const Handler>(std::move(handler))),
        options_(std::move(options)) {}

  const std::string& space() const { return space_; }
  const std::string& worker() const { return worker_; }
  const WorkOptions& options() const { return options_; }

  /// Makes it known that this node serves the worker, under the session that it has now, and begins to claim.
  void announce() PERDURE_EXCLUDES(mutex_);
  /// There may be something to claim.
  void ring() PERDURE_EXCLUDES(mutex_);
  /// From now on it claims nothing. What is running comes to its end.
  void stop() PERDURE_EXCLUDES(mutex_);
  /// The session is over, and with it every claim.
  void session_over() PERDURE_EXCLUDES(mutex_);
  /// Gives back what has not come to its end.
  void release_all() PERDURE_EXCLUDES(mutex_);
  /// Some claim of this node was taken away: finds out which.
  void check_claims() PERDURE_EXCLUDES(mutex_);
  /// Called once when nothing is claimed any more.
  void when_settled(Task settled) PERDURE_EXCLUDES(mutex_);
  QueueActivity activity() PERDURE_EXCLUDES(mutex_);
  /// Whether anything of it is under way: a turn, a handler, a settlement.
  bool is_busy() PERDURE_EXCLUDES(mutex_);
  /// When a rule, or the rate, lets it claim again.
  std::optional<WallTime> again_at() PERDURE_EXCLUDES(mutex_);

 private:
  using JobPtr = std::shared_ptr<JobState>;
  struct SentTurn {
    Turn turn;
    SessionId session;
    std::uint64_t rings = 0;
  };

  // Turns.
  void pump() PERDURE_EXCLUDES(mutex_);
  std::optional<SentTurn> next_turn() PERDURE_REQUIRES(mutex_);
  void send(SentTurn sent);
  void turned(SentTurn& sent, Result<TurnResult> result, Receipt receipt) PERDURE_EXCLUDES(mutex_);
  void turn_failed(SentTurn& sent, const Error& error) PERDURE_EXCLUDES(mutex_);
  void look_for_claims(SessionId session, std::uint64_t held_from, std::size_t claiming);
  void adopt(SessionId session, std::vector<ClaimedRow> rows, Version version, std::vector<JobPtr>& started)
      PERDURE_REQUIRES(mutex_);
  /// It is settled, one way or another.
  void forget(const JobPtr& job) PERDURE_REQUIRES(mutex_);
  void watch(std::vector<Watch> watches) PERDURE_EXCLUDES(mutex_);
  void ring_at(WallTime time) PERDURE_EXCLUDES(mutex_);
  void tell_if_settled() PERDURE_EXCLUDES(mutex_);
  bool is_settled() const PERDURE_REQUIRES(mutex_) { return jobs_.empty() && turns_ == 0 && alone_ == 0; }
  void stale(const JobPtr& job);

  // Jobs.
  /// Hands them to threads, once their values are loaded.
  void start(std::vector<JobPtr> jobs) PERDURE_EXCLUDES(mutex_);
  void load_value(const JobPtr& job);
  /// Whether its handler is still to be run; if not, its place is free again.
  bool may_run(JobState& job) PERDURE_EXCLUDES(mutex_);
  HandlerPool::Job pool_job(const JobPtr& job);
  void run(JobState& job, Result<Value>& result) const;
  void finished(const JobPtr& job, Result<Value> result) PERDURE_EXCLUDES(mutex_);
  void overrun(const JobPtr& job) PERDURE_EXCLUDES(mutex_);
  void returned(JobState& job) PERDURE_REQUIRES(mutex_);
  void decide(const JobPtr& job, Settlement settlement) PERDURE_REQUIRES(mutex_);
  Settlement failed(const JobPtr& job, std::string error);
  void settle_alone(const JobPtr& job, Bytes result);

  QueueImpl& home_;
  const std::string space_;
  const std::string worker_;
  const std::shared_ptr<const Handler> handler_;
  const WorkOptions options_;

  Mutex mutex_;
  bool stopped_ PERDURE_GUARDED_BY(mutex_) = false;
  std::optional<SessionId> session_ PERDURE_GUARDED_BY(mutex_);
  /// There may be something to claim, and how often that was said.
  bool hint_ PERDURE_GUARDED_BY(mutex_) = false;
  std::uint64_t rings_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// The turn that claimed last left some behind.
  bool more_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Places that are taken, by handlers that have not returned and by claims under way.
  std::size_t running_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t claiming_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t turns_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t alone_ PERDURE_GUARDED_BY(mutex_) = 0;
  bool backing_off_ PERDURE_GUARDED_BY(mutex_) = false;
  std::deque<Settlement> pending_ PERDURE_GUARDED_BY(mutex_);
  /// All that is claimed and not settled, by token: an event may be claimed anew before its last end is heard of.
  std::map<Stamp, JobPtr> jobs_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Bytes> emptied_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Watch> watches_ PERDURE_GUARDED_BY(mutex_);
  /// As the last turn that claimed was told.
  std::optional<WallTime> again_at_ PERDURE_GUARDED_BY(mutex_);
  /// A timer will ring, the first of them then.
  bool timer_ PERDURE_GUARDED_BY(mutex_) = false;
  SteadyTime timer_at_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Task> settled_ PERDURE_GUARDED_BY(mutex_);
  /// Nothing is to be begun any more: what is claimed goes back.
  bool releasing_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Handlers that were given up and have not come back.
  std::size_t hanging_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// So many turns settle one job each, and claim nothing: one of them is what no turn can settle.
  std::size_t one_by_one_ PERDURE_GUARDED_BY(mutex_) = 0;
};

/// The sweeper of the rows by which announce() makes itself known.
void sweep_server(Transaction& txn, SessionId dead, BytesView rest);
/// Takes them away.
void unserve(Transaction& txn, std::string_view space, std::string_view worker, SessionId session);

}  // namespace perdure::queue
