#include "session/session_impl.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "store/report.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure {
namespace {

/// How much earlier than its TTL a session stops believing in itself: steady clocks of two machines need not run at
/// quite the same pace.
Duration margin(const SessionOptions& options) {
  return std::min(options.ttl / 10, (options.ttl - options.renew) / 2);
}

}  // namespace

SessionImpl::SessionImpl(Store& store, SessionOptions options, SessionId id, std::uint64_t store_number,
                         SteadyTime sent)
    : store_(StoreAccess::borrow(store)),
      options_(std::move(options)),
      id_(id),
      store_number_(store_number),
      scheduler_(StoreAccess::impl(store_).scheduler()),
      // A renewal that comes half a period late is still contact.
      observer_(options_.renew * 3 / 2) {
  believed_until_ = sent + options_.ttl - margin(options_);
}

void SessionImpl::abandon() {
  bool over;
  std::uint64_t before_close;
  {
    MutexLock lock(mutex_);
    before_close = before_close_;
    over = state_ != State::kAlive && state_ != State::kStopping;
    forget_watches();
  }
  if (auto use = enter(); use && !over && believes()) {
    // By itself: nobody is there any more to take the answer.
    store_.transact_async(
        [id = id_, sweepers = sweepers()](Transaction& txn) {
          SystemAccess access(txn);
          if (!session::is_open(txn, id)) return;
          session::end_rows(txn, id);
          session::sweep_some(txn, id, *sweepers);
        },
        [](Result<void>) {}, {.timeout = options_.ttl, .body = Body::kShort, .reserve = Reserve::kMayUse});
  }
  StoreAccess::impl(store_).forget_before_close(before_close);
  if (StoreAccess::impl(store_).muted()) {
    leases_.forget(store_closed());
    forget_over();
  } else {
    leases_.close({ErrorCode::kClosed, "the session is gone"});
    tell_over();
  }
  // In a callback, what is under way may be that very callback; a store that is closing waits for it itself. Asked
  // before the gate closes, for afterwards nobody can look any more.
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block();
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

void SessionImpl::start() {
  auto closing = [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->store_closing();
  };
  std::uint64_t before_close = StoreAccess::impl(store_).before_close(closing);
  if (before_close == 0) return store_closing();
  {
    MutexLock lock(mutex_);
    before_close_ = before_close;
  }
  after(options_.renew, [this] { renew(); });
  check_belief();
  look();
}

Error SessionImpl::store_closed() {
  return {ErrorCode::kClosed, "the store of the session was closed"};
}

Gate::Use SessionImpl::enter() {
  struct Owner {
    std::shared_ptr<SessionImpl> session;
    std::optional<StoreImpl::Use> store;
  };
  auto owner = std::make_shared<Owner>(shared_from_this());
  // First the gate: once it is closed, the store may be gone.
  auto inside = gate_.enter(owner);
  if (!inside) return {};
  auto store = StoreAccess::impl(store_).use();
  if (!store) return {};
  owner->store.emplace(std::move(*store));
  return inside;
}

bool SessionImpl::must_not_block() {
  auto use = enter();
  return use && StoreAccess::impl(store_).must_not_block();
}

void SessionImpl::post(Task task) {
  if (auto use = enter()) return scheduler_.post(std::move(task));
  task();
}

void SessionImpl::cancel(Executor::TimerId timer) {
  if (auto use = enter(); use && timer != 0) scheduler_.cancel(timer);
}

Executor::TimerId SessionImpl::at(SteadyTime when, Task task) {
  return scheduler_.at(when, guarded(std::move(task)));
}

Task SessionImpl::guarded(Task task) {
  return [weak = weak_from_this(), task = std::move(task)]() mutable {
    auto self = weak.lock();
    if (!self) return;
    if (auto use = self->enter()) task();
  };
}

// Renewing, and what may be believed.

void SessionImpl::renew() {
  std::uint64_t beat;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kAlive && state_ != State::kStopping) return;
    beat = ++beat_;
  }
  SteadyTime sent = scheduler_.now();
  transact(
      [id = id_, beat](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, id)) return Renewal::kRefused;
        txn.set(session::beat_key(id), encode_counter(static_cast<std::int64_t>(beat)));
        return Renewal::kDone;
      },
      [this, sent](Result<Renewal> result, Receipt receipt) { renewed(sent, std::move(result), receipt); });
}

void SessionImpl::renewed(SteadyTime sent, Result<Renewal> result, Receipt receipt) {
  SteadyTime now = scheduler_.now();
  if (!result) {
    // Within what is left of the time that it may believe in itself there may be a better moment.
    return after(options_.renew / 8, [this] { renew(); });
  }
  if (*result == Renewal::kRefused && !seeded(SeededBug::kBelieveAfterRefusal)) return lose(ended_by_another());
  believe_from(seeded(SeededBug::kBelieveFromReceipt) ? now : sent);
  StoreAccess::impl(store_).engine().catch_up(receipt.version);
  at(std::max(now, sent + options_.renew), [this] { renew(); });
  look();
}

void SessionImpl::believe_from(SteadyTime sent) {
  MutexLock lock(mutex_);
  // A renewal whose answer came too late does not bring a lost session back.
  if (!is_over()) believed_until_ = std::max(believed_until_, sent + options_.ttl - margin(options_));
}

void SessionImpl::check_belief() {
  SteadyTime until;
  {
    MutexLock lock(mutex_);
    if (is_over() || state_ == State::kEnding) return;
    until = believed_until_;
  }
  if (scheduler_.now() < until) {
    at(until, [this] { check_belief(); });
    return;
  }
  lose({ErrorCode::kStaleToken,
        "the session could not be renewed in time: the store did not answer, or this process "
        "was paused"});
}

bool SessionImpl::believes() {
  MutexLock lock(mutex_);
  return !is_over() && (scheduler_.now() < believed_until_ || seeded(SeededBug::kBelieveAfterRefusal));
}

bool SessionImpl::alive() {
  auto use = enter();
  return use && believes();
}

Error SessionImpl::why_not() {
  MutexLock lock(mutex_);
  if (lost_because_) return *lost_because_;
  if (state_ == State::kEnded) return {ErrorCode::kClosed, "the session was stopped"};
  return {ErrorCode::kStaleToken, "the session has not been renewed in time"};
}

void SessionImpl::forget_watches() {
  watch_.cancel();
  for (Watch& watch : beat_watches_) watch.cancel();
}

Error SessionImpl::ended_by_another() {
  return {ErrorCode::kStaleToken, "the session was ended by another, which had not seen it renewed for its whole TTL"};
}

bool SessionImpl::is_lost() {
  MutexLock lock(mutex_);
  return state_ == State::kLost;
}

void SessionImpl::lose(Error why) {
  std::vector<Done> waiters;
  {
    MutexLock lock(mutex_);
    // Who is ending itself finds its row gone before it has the answer; that is no loss.
    if (is_over() || state_ == State::kEnding) return;
    state_ = State::kLost;
    lost_because_ = why;
    waiters.swap(stop_waiters_);
    forget_watches();
  }
  const StoreOptions& sinks = StoreAccess::impl(store_).options();
  log(sinks, LogLevel::kWarning, "session", "a session is lost",
      {{"session", id_.to_string()}, {"name", options_.name}, {"why", why.message}});
  count(sinks, Metric::kLeasesLost, leases_.close(why));
  tell_over();
  for (Done& waiter : waiters) waiter({});
  if (options_.on_lost) options_.on_lost(why);
}

void SessionImpl::on_over(Task listener) {
  {
    MutexLock lock(mutex_);
    if (over_ == Over::kNotYet) over_listeners_.push_back(std::move(listener));
    if (over_ != Over::kTold) return;
  }
  listener();
}

void SessionImpl::tell_over() {
  std::vector<Task> listeners;
  {
    MutexLock lock(mutex_);
    if (over_ == Over::kNotYet) over_ = Over::kTold;
    listeners.swap(over_listeners_);
  }
  for (Task& listener : listeners) listener();
}

void SessionImpl::forget_over() {
  std::vector<Task> listeners;  // Die outside of the lock.
  MutexLock lock(mutex_);
  if (over_ == Over::kNotYet) over_ = Over::kForgotten;
  listeners.swap(over_listeners_);
}

// Stopping.

void SessionImpl::stop(Duration grace, Done done) {
  Result<void> over;
  {
    MutexLock lock(mutex_);
    if (!is_over())
      stop_waiters_.push_back(std::move(done));
    else if (lost_because_ && lost_because_->code == ErrorCode::kClosed)
      over = std::unexpected(*lost_because_);
    if (state_ == State::kAlive) state_ = State::kStopping;
  }
  if (done) return post([done = std::move(done), over]() mutable { done(over); });
  leases_.refuse_new({ErrorCode::kClosed, "the session is stopping"});
  leases_.cancel_all();
  tell_over();
  if (grace <= Duration::zero() || leases_.none_held()) return end_now();
  if (grace < SteadyTime::max() - scheduler_.now()) after(grace, [this] { end_now(); });
}

void SessionImpl::lease_released() {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kStopping) return;
  }
  if (leases_.none_held()) end_now();
}

void SessionImpl::end_now() {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kStopping) return;
    state_ = State::kEnding;
  }
  leases_.close({ErrorCode::kClosed, "the session was stopped"});
  bool sent = transact(
      [id = id_, sweepers = sweepers()](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, id)) return;
        session::end_rows(txn, id);
        session::sweep_some(txn, id, *sweepers);
      },
      [this](Result<void> result, Receipt) { ended(std::move(result)); });
  if (!sent) ended(std::unexpected(store_closed()));
}

void SessionImpl::store_closing() {
  std::vector<Done> waiters;
  {
    MutexLock lock(mutex_);
    // An end that is under way is still answered.
    if (is_over() || state_ == State::kEnding) return;
    state_ = State::kLost;
    lost_because_ = store_closed();
    waiters.swap(stop_waiters_);
  }
  if (StoreAccess::impl(store_).muted()) {
    forget_over();
    return leases_.forget(store_closed());
  }
  leases_.close(store_closed());
  tell_over();
  for (Done& waiter : waiters) waiter(std::unexpected(store_closed()));
}

void SessionImpl::ended(Result<void> result) {
  std::vector<Done> waiters;
  {
    MutexLock lock(mutex_);
    if (!is_over()) state_ = State::kEnded;
    waiters.swap(stop_waiters_);
    forget_watches();
  }
  for (Done& waiter : waiters) waiter(result);
}

}  // namespace perdure
