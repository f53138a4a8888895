// The leases that one session holds or waits for.
//
// For each name at most one transaction of the session is under way, and callers in this process queue behind it: who
// waits costs the store nothing. A lease that another session holds is waited for by watches on two rows, whichever
// changes first: the lease, and the holder's open row, which is gone when it ends. Whether the holder is dead is looked
// after by the session, once for all who wait, so that thousands of them cost no more than one.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "perdure/lease.h"
#include "perdure/session.h"
#include "runtime/gate.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "session/cancel_source.h"
#include "session/rows.h"

namespace perdure {

class SessionImpl;

class LeaseState {
 public:
  LeaseState(SessionImpl& session, std::string name, Token token);

  const std::string name;
  const Token token;
  CancelSource cancel;

  bool held();
  void fence(Transaction& txn);
  void release(std::move_only_function<void(Result<void>)> done);
  /// Whether blocking would be waiting for oneself.
  bool must_not_block();
  /// It is on its way back, or lost: from now on it is not held.
  void let_go() { let_go_ = true; }

 private:
  const std::weak_ptr<SessionImpl> session_;
  const SessionId session_id_;
  std::atomic<bool> let_go_ = false;
};

class Leases {
 public:
  using AcquireDone = std::move_only_function<void(Result<Lease>)>;
  using ReleaseDone = std::move_only_function<void(Result<void>)>;

  explicit Leases(SessionImpl& session) : session_(session) {}

  void acquire(std::string_view name, Duration timeout, AcquireDone done) PERDURE_EXCLUDES(mutex_);
  void release(LeaseState& lease, ReleaseDone done) PERDURE_EXCLUDES(mutex_);
  /// Takes no more requests, and answers those that wait, with `why`.
  void refuse_new(const Error& why) PERDURE_EXCLUDES(mutex_);
  /// The end of a simulated process: nobody is answered, and no signal is given.
  void forget(const Error& why) PERDURE_EXCLUDES(mutex_);
  /// Gives the cancel signal of every lease.
  void cancel_all() PERDURE_EXCLUDES(mutex_);
  /// The sessions that hold what is waited for here.
  std::set<SessionId> awaited() PERDURE_EXCLUDES(mutex_);
  /// Whether none is held or on its way back.
  bool none_held() PERDURE_EXCLUDES(mutex_);
  /// The session is over: nobody gets a lease any more, and those that are held are lost.
  /// Answers how many those were.
  std::size_t close(const Error& why) PERDURE_EXCLUDES(mutex_);

 private:
  struct Request {
    std::uint64_t number;
    SteadyTime deadline;
    Executor::TimerId timer;
    AcquireDone done;
  };
  enum class Phase {
    kIdle,      ///< Nobody wants it.
    kTrying,    ///< A transaction to take it is under way.
    kWaiting,   ///< Held by another session, or the store cannot be reached: waits for a watch or a timer.
    kHeld,      ///< By this session.
    kReleasing  ///< On its way back: goes on until that is known to have happened, or the session is over.
  };
  struct Entry {
    Phase phase = Phase::kIdle;
    /// Counts the phases, so that a late timer or watch of an earlier one is known.
    std::uint64_t round = 0;
    std::deque<Request> queue;
    /// How many of them may have asked without a timeout, so that no timer ends their waiting.
    std::size_t impatient = 0;
    std::shared_ptr<LeaseState> held;
    std::vector<Watch> watches;
    /// While it waits for another session.
    std::optional<SessionId> holder = {};
    std::vector<ReleaseDone> release_waiters;
    /// Whether an earlier attempt to release may have taken effect.
    bool release_unknown = false;
    unsigned failures = 0;
    /// Why those who wait do not have it yet.
    Error problem = {ErrorCode::kDeadline, ""};
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  struct Attempt;
  struct Answer {
    AcquireDone done;
    Result<Lease> result;
  };

  void attempt(const std::string& name);
  void attempted(const std::string& name, Result<Attempt> attempt, Receipt receipt) PERDURE_EXCLUDES(mutex_);
  void taken(const std::string& name, Token token) PERDURE_EXCLUDES(mutex_);
  void held_by_other(const std::string& name, Attempt attempt) PERDURE_EXCLUDES(mutex_);
  void could_not_try(const std::string& name, Error why) PERDURE_EXCLUDES(mutex_);
  void wake(const std::string& name, std::uint64_t round) PERDURE_EXCLUDES(mutex_);
  void expire(const std::string& name, std::uint64_t number) PERDURE_EXCLUDES(mutex_);
  void send_release(const std::string& name, Token token);
  void released(const std::string& name, Token token, Result<void> result) PERDURE_EXCLUDES(mutex_);
  /// Enters the next phase and forgets what the last one waited for.
  std::uint64_t enter(Entry& entry, Phase phase) PERDURE_REQUIRES(mutex_);
  /// Takes out those whose time is up; only looks if there are some without a timer.
  std::vector<Answer> expired(Entry& entry) PERDURE_REQUIRES(mutex_);
  /// After a hold or an attempt has ended: the next in line, if any. True if `attempt` is to be called.
  bool next_attempt(const std::string& name, Entry& entry) PERDURE_REQUIRES(mutex_);
  static Error why_not_yet(const Entry& entry);
  static bool may_be_ours(const Entry& entry);
  void answer(std::vector<Answer> answers);
  Duration back_off(Entry& entry) PERDURE_REQUIRES(mutex_);

  SessionImpl& session_;
  Mutex mutex_;
  std::optional<Error> refusing_ PERDURE_GUARDED_BY(mutex_);
  std::optional<Error> closed_ PERDURE_GUARDED_BY(mutex_);
  Entries entries_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t last_request_ PERDURE_GUARDED_BY(mutex_) = 0;
};

}  // namespace perdure
