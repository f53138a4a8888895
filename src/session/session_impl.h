// One session of this process: it renews itself, looks at the others, ends those that are dead, and sweeps what the
// ended held.
//
// Everything here is driven by timers, by answers of the store and by one watch, on the session's own open row. That
// watch fires when another has ended this session, and also, as every watch does, when the engine notices a death:
// so the death of a process on the same store is acted upon at once. Nothing else is waited for.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "perdure/session.h"
#include "runtime/gate.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "session/leases.h"
#include "session/observer.h"
#include "session/rows.h"
#include "session/sweep.h"

namespace perdure {

class SessionImpl : public std::enable_shared_from_this<SessionImpl> {
 public:
  /// Gets the store back, so that its last handle need not be dropped in a callback.
  using OpenDone = std::move_only_function<void(Result<Session>, Store)>;
  using Done = std::move_only_function<void(Result<void>)>;

  /// Opens one, and ends `replaces` in the same transaction.
  static void open(Store store, SessionOptions options, std::optional<SessionId> replaces, OpenDone done);

  /// `store` is kept open by the Session.
  SessionImpl(Store& store, SessionOptions options, SessionId id, std::uint64_t store_number, SteadyTime sent);

  void start();
  /// The Session goes: ends it without waiting for the answer, if it has not ended yet. What is under way may go on for
  /// a moment; waits for that where it can.
  void abandon();
  void stop(Duration grace, Done done) PERDURE_EXCLUDES(mutex_);
  /// `listener` is called once when this process is to stop acting in its name: it is lost, was told to stop, is
  /// abandoned, or its store is closing. That is when the cancel signals of its leases are given, and before the user's
  /// on_lost; at once, in this call, if that moment has been. Never in a simulated process that has died. No lock may
  /// be held.
  void on_over(Task listener) PERDURE_EXCLUDES(mutex_);
  /// Whether this process may believe in it. For those who keep it longer than the Session, or than the store is open.
  bool alive() PERDURE_EXCLUDES(mutex_);
  /// Nothing will be answered any more: whoever waits is told so. For the store, and for who closes before it.
  void store_closing() PERDURE_EXCLUDES(mutex_);
  /// Whether it is lost, and so may be replaced.
  bool is_lost() PERDURE_EXCLUDES(mutex_);
  const SessionOptions& options() const { return options_; }
  /// Whether a blocking call would wait for this very thread: in callbacks, and where the host polls the store.
  bool must_not_block();

  // For its leases.
  SessionId id() const { return id_; }
  std::uint64_t store_number() const { return store_number_; }
  Scheduler& scheduler() { return scheduler_; }
  Leases& leases() { return leases_; }
  /// Keeps this object and its open store from going away; empty once either is closed. Who is not called by the
  /// session itself enters before anything else that is not said to be for all.
  Gate::Use enter();
  /// Whether it may believe in itself, and so may write.
  bool believes() PERDURE_EXCLUDES(mutex_);
  static Error store_closed();
  static Error ended_by_another();
  /// Why not, as an error.
  Error why_not() PERDURE_EXCLUDES(mutex_);

  /// A transaction whose answer finds the session alive as an object. False if it was not sent, and will not be
  /// answered, because the session or its store is going away: then its leases are closed. No lock may be held.
  template <class Body, class Answered>
  bool transact(Body body, Answered answered, perdure::Body kind = perdure::Body::kShort);
  /// Runs `task` on one of the store's threads; here if the store is closed and has none any more.
  void post(Task task);
  void cancel(Executor::TimerId timer);
  void after(Duration delay, Task task) { at(scheduler_.now() + delay, std::move(task)); }
  Executor::TimerId at(SteadyTime when, Task task);
  /// A task that runs only if the session is still there.
  Task guarded(Task task);

  struct Sight {
    SessionId id;
    std::uint64_t beat = 0;
    session::OpenRow open;
  };
  /// Takes note of another session as it was just read. Zero if it is dead.
  Duration saw(const Sight& sight) PERDURE_EXCLUDES(mutex_);
  /// Ends a session that is dead, unless it has been renewed since; then sweeps what it held.
  void end(const Sight& dead, std::move_only_function<void(Result<void>)> then);
  /// Somebody waits for what that session holds: from now on its renewals are looked at as they come, so that its end
  /// is noticed a TTL after the last of them, and not a period later.
  void follow(SessionId holder) PERDURE_EXCLUDES(mutex_);
  /// The same for those who wait without asking for a lease; each call is taken back by one of `stop_following`. Both
  /// are for all, and do nothing on a session that is over.
  void keep_following(SessionId holder) PERDURE_EXCLUDES(mutex_);
  void stop_following(SessionId holder) PERDURE_EXCLUDES(mutex_);
  /// From now on this session sweeps held rows of that kind as well, and looks again at what it had to leave.
  void add_sweeper(std::string kind, session::Sweeper sweeper) PERDURE_EXCLUDES(mutex_);
  /// Final. What was under way comes to nothing.
  void lose(Error why) PERDURE_EXCLUDES(mutex_);
  /// A lease was released: somebody may be waiting for the last one.
  void lease_released() PERDURE_EXCLUDES(mutex_);

 private:
  enum class State {
    kAlive,     ///< From its opening on.
    kStopping,  ///< `stop` was called: no new leases; those that are held have a grace. Goes on renewing.
    kEnding,    ///< The transaction that ends it is under way.
    kEnded,     ///< Final, by `stop`.
    kLost       ///< Final: ended by another, or not renewed in time.
  };
  enum class Renewal { kDone, kRefused };
  /// Of the sessions that ended, what one look reads. A few of them are swept, see choose_to_sweep.
  static constexpr std::size_t kEndedRead = 64;
  /// What `look` read.
  struct View {
    bool open = false;
    std::vector<Sight> others;
    /// Some of those that ended, in order, from behind this one on.
    std::optional<SessionId> ended_after;
    std::vector<SessionId> ended;
    /// On the renewals of those that are followed.
    std::vector<Watch> watches;
  };

  void renew();
  void renewed(SteadyTime sent, Result<Renewal> result, Receipt receipt) PERDURE_EXCLUDES(mutex_);
  void believe_from(SteadyTime sent) PERDURE_EXCLUDES(mutex_);
  void check_belief() PERDURE_EXCLUDES(mutex_);
  void look() PERDURE_EXCLUDES(mutex_);
  void looked(Result<View> view) PERDURE_EXCLUDES(mutex_);
  /// Which of the ended that `view` has read are to be swept now, and where the next look goes on.
  std::vector<SessionId> choose_to_sweep(const View& view) PERDURE_REQUIRES(mutex_);
  void sweep(SessionId dead) PERDURE_EXCLUDES(mutex_);
  std::shared_ptr<const session::Sweepers> sweepers() PERDURE_EXCLUDES(mutex_);
  void end_now() PERDURE_EXCLUDES(mutex_);
  void ended(Result<void> result) PERDURE_EXCLUDES(mutex_);
  /// Calls those of on_over, the first time.
  void tell_over() PERDURE_EXCLUDES(mutex_);
  /// The same in a simulated process that has died: forgets them.
  void forget_over() PERDURE_EXCLUDES(mutex_);
  /// At the latest when another session may have been seen unchanged for its whole TTL.
  void look_within(Duration delay) PERDURE_EXCLUDES(mutex_);
  void forget_watches() PERDURE_REQUIRES(mutex_);
  bool is_over() const PERDURE_REQUIRES(mutex_) { return state_ == State::kEnded || state_ == State::kLost; }
  SteadyTime observer_now();

  /// Borrowed: used only inside of the gate.
  Store store_;
  const SessionOptions options_;
  const SessionId id_;
  const std::uint64_t store_number_;
  Scheduler& scheduler_;
  Gate gate_;

  Mutex mutex_;
  State state_ PERDURE_GUARDED_BY(mutex_) = State::kAlive;
  std::optional<Error> lost_because_ PERDURE_GUARDED_BY(mutex_);
  SteadyTime believed_until_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t beat_ PERDURE_GUARDED_BY(mutex_) = 0;
  session::Observer observer_ PERDURE_GUARDED_BY(mutex_);
  bool looking_ PERDURE_GUARDED_BY(mutex_) = false;
  bool look_again_ PERDURE_GUARDED_BY(mutex_) = false;
  /// For which a timer is set; the largest time if there is none.
  SteadyTime next_look_ PERDURE_GUARDED_BY(mutex_) = SteadyTime::max();
  /// On the own open row.
  Watch watch_ PERDURE_GUARDED_BY(mutex_);
  std::set<SessionId> followed_ PERDURE_GUARDED_BY(mutex_);
  /// Followed by keep_following.
  std::multiset<SessionId> kept_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Watch> beat_watches_ PERDURE_GUARDED_BY(mutex_);
  /// Replaced as a whole, so that a transaction under way keeps those that it began with.
  std::shared_ptr<const session::Sweepers> sweepers_ PERDURE_GUARDED_BY(mutex_) = std::make_shared<session::Sweepers>();
  std::set<SessionId> sweeping_ PERDURE_GUARDED_BY(mutex_);
  /// Ended, and all that is left of them is of kinds that have no sweeper here.
  std::set<SessionId> left_to_others_ PERDURE_GUARDED_BY(mutex_);
  /// The next look reads the ended from behind this one on; from the first if there is none.
  std::optional<SessionId> ended_after_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Done> stop_waiters_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
  enum class Over {
    kNotYet,
    kTold,       ///< Listeners have been called, and later ones are at once.
    kForgotten,  ///< Nobody is told any more.
  };
  Over over_ PERDURE_GUARDED_BY(mutex_) = Over::kNotYet;
  std::vector<Task> over_listeners_ PERDURE_GUARDED_BY(mutex_);

  Leases leases_{*this};
};

template <class Body, class Answered>
bool SessionImpl::transact(Body body, Answered answered, perdure::Body kind) {
  auto use = enter();
  if (!use) return false;
  store_.transact_async(std::move(body),
                        [use = std::move(use), answered = std::move(answered)](auto result, Receipt receipt) mutable {
                          answered(std::move(result), receipt);
                        },
                        {.timeout = options_.ttl, .body = kind, .reserve = Reserve::kMayUse});
  return true;
}

}  // namespace perdure
