// Keeps one session of this process open, for parts that outlive a lost one.
//
// A session that is lost never comes back. A part that serves for as long as its process runs wants the next one then:
// the keeper opens it, as often as that takes, and tells those who listen which session they have, and when they have
// none.
//
//     open { opened over } [ opened [ over ] ]      what a listener hears, whatever happens, in this order
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "perdure/session.h"
#include "runtime/gate.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "session/session_impl.h"
#include "session/sweep.h"

namespace perdure {

/// Thread-safe. It borrows its store: whoever drops the last reference from outside still holds a handle of the store
/// then, and calls `abandon` first if nothing may be called afterwards. A store that closes first is fine.
class SessionKeeper : public std::enable_shared_from_this<SessionKeeper> {
 public:
  using OpenDone = std::move_only_function<void(Result<std::shared_ptr<SessionKeeper>>)>;
  using Done = std::move_only_function<void(Result<void>)>;
  struct Listener {
    /// There is a session: the first one, and each that came in the place of a lost one.
    std::function<void(std::shared_ptr<SessionImpl>)> opened = {};
    /// Nothing may be done any more in the name of the one that was told of last; see SessionImpl::on_over.
    std::function<void()> over = {};
  };

  /// Opens the first session. `done` is called once, on one of the store's threads, in this call if the options are
  /// refused or the store is closed; never in a simulated process that has died. The caller keeps a handle of the store
  /// until then.
  /// Errors: those of Session::open. Then nothing is tried again.
  static void open(Store& store, SessionOptions options, OpenDone done);

  /// For `open` only, which makes it shared.
  SessionKeeper(Store& store, SessionOptions options);
  ~SessionKeeper();
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  /// The session that may be believed in; null if there is none just now.
  std::shared_ptr<SessionImpl> current() PERDURE_EXCLUDES(mutex_);
  /// Its id; nothing if there is none.
  std::optional<SessionId> id() PERDURE_EXCLUDES(mutex_);

  /// Calls come one at a time, on the thread where it happens, or where another such call has just ended. `opened` is
  /// called at once if there is a session. No lock may be held that a listener takes.
  void add_listener(Listener listener) PERDURE_EXCLUDES(mutex_);
  /// Put on the present session and on every later one; see SessionImpl::add_sweeper.
  void add_sweeper(std::string kind, session::Sweeper sweeper) PERDURE_EXCLUDES(mutex_);

  /// Stops the session as Session::stop does, and opens none any more. `done` is called once, on one of the store's
  /// threads, in this call if the store is closed. May be called again, and then answers with the first.
  /// Errors: those of Session::stop.
  void close_async(Duration grace, Done done) PERDURE_EXCLUDES(mutex_);
  /// Ends the session without waiting for the answer, if there is one, and opens none any more. Waits for calls of
  /// listeners that are under way, except in a callback of the store. Idempotent; the destructor does it as well.
  void abandon() PERDURE_EXCLUDES(mutex_);

 private:
  enum class State {
    kOpening,    ///< The first session is under way; nobody has the keeper yet.
    kOpen,       ///< `session_` is there, though it may be over by now.
    kReopening,  ///< It was lost: an attempt to open the next one is under way, or waits for its time.
    kClosing,    ///< close_async: the session is stopping, or the attempt under way is waited for.
    kClosed,     ///< Final: by close_async, by abandon, or with the store.
  };
  /// One call of one listener: `opened`, or `over` if there is no session.
  struct Event {
    std::shared_ptr<const Listener> listener;
    std::shared_ptr<SessionImpl> opened;
  };

  void attempt(std::move_only_function<void(Result<void>)> answered);
  Result<void> take(Result<Session> session) PERDURE_EXCLUDES(mutex_);
  /// Tells of the session that has just been put in its place.
  void publish(const std::shared_ptr<SessionImpl>& session) PERDURE_EXCLUDES(mutex_);
  void over(const std::shared_ptr<SessionImpl>& session) PERDURE_EXCLUDES(mutex_);
  void reopen_if_lost() PERDURE_EXCLUDES(mutex_);
  void reopen();
  void reopened(const Result<void>& result) PERDURE_EXCLUDES(mutex_);
  /// The pause after a failed attempt is over.
  void reopen_in_time() PERDURE_EXCLUDES(mutex_);
  void deliver() PERDURE_EXCLUDES(mutex_);
  void stop(SessionImpl& session, Duration grace);
  void closed(Result<void> result) PERDURE_EXCLUDES(mutex_);
  static void closed_if_there(const std::weak_ptr<SessionKeeper>& keeper, Result<void> result);
  void store_closing() PERDURE_EXCLUDES(mutex_);
  void tell(const std::shared_ptr<SessionImpl>& opened) PERDURE_REQUIRES(mutex_);
  /// As SessionImpl::enter.
  Gate::Use enter();

  /// Borrowed: used only inside of the gate, and when it is known to be there.
  Store store_;
  SessionOptions options_;
  Scheduler& scheduler_;
  Gate gate_;

  Mutex mutex_;
  State state_ PERDURE_GUARDED_BY(mutex_) = State::kOpening;
  /// On the borrowed store, so it goes before that does.
  std::optional<Session> session_ PERDURE_GUARDED_BY(mutex_);
  /// The one that was told of and is not over.
  std::shared_ptr<SessionImpl> current_ PERDURE_GUARDED_BY(mutex_);
  /// The last one that was lost, which the next one ends.
  std::optional<SessionId> replaces_ PERDURE_GUARDED_BY(mutex_);
  bool attempting_ PERDURE_GUARDED_BY(mutex_) = false;
  unsigned failures_ PERDURE_GUARDED_BY(mutex_) = 0;
  session::Sweepers sweepers_ PERDURE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Listener>> listeners_ PERDURE_GUARDED_BY(mutex_);
  /// What listeners are still to be told, in order; one thread at a time is at it.
  std::deque<Event> events_ PERDURE_GUARDED_BY(mutex_);
  bool delivering_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<Done> closers_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
};

}  // namespace perdure
