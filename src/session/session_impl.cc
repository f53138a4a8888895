#include "session/session_impl.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "store/report.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure {
namespace {

constexpr std::size_t kSweepRows = 100;
constexpr std::size_t kSweptAtOnce = 16;

/// How much earlier than its TTL a session stops believing in itself: steady clocks of two machines need not run at
/// quite the same pace.
Duration margin(const SessionOptions& options) {
  return std::min(options.ttl / 10, (options.ttl - options.renew) / 2);
}

Error ended_by_another() {
  return {ErrorCode::kStaleToken, "the session was ended by another, which had not seen it renewed for its whole TTL"};
}

/// Frees what is left of the leases of a session that is over, a bounded number of them; true if that was all.
bool sweep_some(Transaction& txn, SessionId dead) {
  Bytes prefix = session::held_prefix(dead);
  auto rows = txn.snapshot().get_range(tuple::extensions(prefix), {.limit = kSweepRows});
  for (const Row& row : rows) {
    txn.clear(row.key);
    auto name = tuple::unpack_after<std::string>(prefix, row.key);
    if (!name) continue;
    auto lease = session::read_lease(txn, std::get<0>(*name));
    if (lease && (lease->session == dead || seeded(SeededBug::kSweepBlindly)))
      txn.clear(session::lease_key(std::get<0>(*name)));
  }
  if (rows.size() == kSweepRows) return false;
  txn.clear(session::ended_key(dead));
  return true;
}

/// From here on everything that the session holds is free.
void end_rows(Transaction& txn, SessionId id) {
  txn.clear(session::open_key(id));
  txn.clear(session::beat_key(id));
  txn.set(session::ended_key(id), {});
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
        [id = id_](Transaction& txn) {
          SystemAccess access(txn);
          if (!session::is_open(txn, id)) return;
          end_rows(txn, id);
          sweep_some(txn, id);
        },
        [](Result<void>) {}, {.timeout = options_.ttl, .body = Body::kShort, .reserve = Reserve::kMayUse});
  }
  StoreAccess::impl(store_).forget_before_close(before_close);
  leases_.close({ErrorCode::kClosed, "the session is gone"});
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
    StoreImpl::Use store;
  };
  auto store = StoreAccess::impl(store_).use();
  if (!store) return {};
  return gate_.enter(std::make_shared<Owner>(shared_from_this(), std::move(*store)));
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
  for (Done& waiter : waiters) waiter({});
  if (options_.on_lost) options_.on_lost(why);
}

// Looking at the others.

void SessionImpl::follow(SessionId holder) {
  {
    MutexLock lock(mutex_);
    if (!followed_.insert(holder).second) return;
  }
  look();
}

void SessionImpl::look() {
  std::set<SessionId> followed;
  {
    MutexLock lock(mutex_);
    if (is_over()) return;
    look_again_ = looking_;
    if (std::exchange(looking_, true)) return;
    followed = followed_;
  }
  transact(
      [this, followed = std::move(followed)](Transaction& txn) {
        SystemAccess access(txn);
        View view;
        view.open = session::is_open(txn, id_);
        Watch watch = txn.watch(session::open_key(id_));
        Reader snapshot = txn.snapshot();
        for (const Row& row : snapshot.get_range(session::table_range("open"))) {
          auto id = session::id_of("open", row.key);
          auto open = session::OpenRow::decode(row.value);
          if (id && open && *id != id_) view.others.push_back({*id, 0, std::move(*open)});
        }
        for (Sight& other : view.others) {
          Bytes key = session::beat_key(other.id);
          other.beat = static_cast<std::uint64_t>(decode_counter(snapshot.get(key)));
          if (followed.contains(other.id)) view.watches.push_back(txn.watch(key));
        }
        for (const Row& row : snapshot.get_range(session::table_range("ended"), {.limit = kSweptAtOnce}))
          if (auto id = session::id_of("ended", row.key)) view.ended.push_back(*id);
        {
          MutexLock lock(mutex_);
          std::swap(watch_, watch);
        }
        watch.cancel();
        return view;
      },
      [this](Result<View> view, Receipt) { looked(std::move(view)); }, Body::kOptimistic);
}

void SessionImpl::looked(Result<View> view) {
  bool again;
  std::vector<Watch> watches;
  std::set<SessionId> awaited = leases_.awaited();
  {
    MutexLock lock(mutex_);
    looking_ = false;
    again = look_again_;
    std::erase_if(followed_, [&](SessionId id) { return !awaited.contains(id); });
    if (view) {
      for (Watch& old : beat_watches_) old.cancel();
      beat_watches_ = view->watches;
      watches = std::move(view->watches);
      watches.push_back(watch_);
      std::vector<SessionId> known;
      for (const Sight& other : view->others) known.push_back(other.id);
      observer_.keep_only(known);
    }
  }
  // Without a view the next renewal looks again.
  if (!view) return;
  if (!view->open && !seeded(SeededBug::kBelieveAfterRefusal)) return lose(ended_by_another());
  Duration next = options_.renew;
  for (const Sight& other : view->others) {
    Duration left = saw(other);
    if (left == Duration::zero())
      end(other, [](const Result<void>&) {});
    else
      next = std::min(next, left);
  }
  // A renewal looks as well.
  if (next < options_.renew) look_within(next);
  for (SessionId dead : view->ended) sweep(dead);
  for (Watch& watch : watches) watch.then(guarded([this] { look(); }));
  if (again) look();
}

void SessionImpl::look_within(Duration delay) {
  SteadyTime when = scheduler_.now() + delay;
  {
    MutexLock lock(mutex_);
    if (next_look_ <= when) return;
    next_look_ = when;
  }
  at(when, [this, when] {
    {
      MutexLock lock(mutex_);
      if (next_look_ != when) return;
      next_look_ = SteadyTime::max();
    }
    look();
  });
}

SteadyTime SessionImpl::observer_now() {
  if (seeded(SeededBug::kTrustWallClock)) return SteadyTime(scheduler_.wall_now().time_since_epoch());
  return scheduler_.now();
}

Duration SessionImpl::saw(const Sight& sight) {
  if (StoreAccess::impl(store_).engine().is_gone(sight.open.presence)) return Duration::zero();
  MutexLock lock(mutex_);
  observer_.contact(observer_now());
  observer_.saw(sight.id, sight.beat, sight.open.ttl);
  return observer_.left(sight.id);
}

void SessionImpl::end(const Sight& dead, std::move_only_function<void(Result<void>)> then) {
  if (!believes()) return;
  bool gone = StoreAccess::impl(store_).engine().is_gone(dead.open.presence);
  transact(
      [dead, gone](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, dead.id)) return false;
        // Who is gone may have renewed itself once more before; who is not must not have.
        bool unchanged = decode_counter(txn.get(session::beat_key(dead.id))) == static_cast<std::int64_t>(dead.beat);
        if (!gone && !unchanged && !seeded(SeededBug::kEndWithoutCompare)) return false;
        end_rows(txn, dead.id);
        return true;
      },
      [this, dead, then = std::move(then)](Result<bool> ended, Receipt) mutable {
        if (ended && *ended)
          log(StoreAccess::impl(store_).options(), LogLevel::kInfo, "session", "ended the session of a dead process",
              {{"session", dead.id.to_string()}, {"name", dead.open.name}});
        if (ended) sweep(dead.id);
        Result<void> result;
        if (!ended) result = std::unexpected(std::move(ended.error()));
        then(std::move(result));
      });
}

void SessionImpl::sweep(SessionId dead) {
  if (seeded(SeededBug::kForgetTheEnded)) return;
  {
    MutexLock lock(mutex_);
    if (is_over() || !sweeping_.insert(dead).second) return;
  }
  transact(
      [dead](Transaction& txn) {
        SystemAccess access(txn);
        // Renewed after all.
        if (session::is_open(txn, dead)) return true;
        return sweep_some(txn, dead);
      },
      [this, dead](Result<bool> all, Receipt) {
        {
          MutexLock lock(mutex_);
          sweeping_.erase(dead);
        }
        // After an error the next look finds it again.
        if (all && !*all) sweep(dead);
      });
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
      [id = id_](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, id)) return;
        end_rows(txn, id);
        sweep_some(txn, id);
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
  if (StoreAccess::impl(store_).muted()) return leases_.forget(store_closed());
  leases_.close(store_closed());
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
