#include "queue/queue_impl.h"

#include <algorithm>

#include "queue/inspect.h"
#include "queue/settle.h"
#include "runtime/latch.h"
#include "runtime/thread_pool.h"
#include "session/rows.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure {

using queue::Dispatcher;

namespace {

constexpr unsigned kSpareHandlers = 64;
constexpr unsigned kConcurrencyMax = 10'000;
constexpr Duration kRetry = std::chrono::milliseconds(200);

Result<void> check_options(const WorkOptions& options) {
  auto wrong = [](std::string_view what) { return fail(ErrorCode::kInvalidArgument, std::string(what)); };
  if (options.concurrency < 1 || options.concurrency > kConcurrencyMax)
    return wrong("the concurrency of a worker must be from 1 to 10000");
  if (options.timeout <= Duration::zero()) return wrong("the timeout of a worker must be more than nothing");
  if (options.retry) return queue::check_policy(*options.retry);
  return {};
}

}  // namespace

// Opening.

void QueueImpl::open(Store store, QueueOptions options, OpenDone done) {
  if (auto good = session::check_short_name(options.space, "the space"); !good)
    return done(std::unexpected(std::move(good.error())), std::move(store));
  SessionOptions session = options.session;
  // As in ActorsImpl::open: the store goes with the answer.
  auto kept = std::make_shared<Store>(std::move(store));
  Store& borrowed = *kept;
  auto opened = [kept, options = std::move(options),
                 done = std::move(done)](Result<std::shared_ptr<SessionKeeper>> keeper) mutable {
    Store taken = std::move(*kept);
    if (!keeper) return done(std::unexpected(std::move(keeper.error())), std::move(taken));
    std::string space = options.space;
    auto impl = std::make_shared<QueueImpl>(taken, std::move(options), std::move(*keeper));
    impl->start();
    QueueImpl* raw = impl.get();
    std::shared_ptr<QueueImpl> handle(raw, [impl = std::move(impl), taken](QueueImpl* node) { node->abandon(); });
    done(Queue(std::move(handle), std::move(space)), std::move(taken));
  };
  SessionKeeper::open(borrowed, std::move(session), std::move(opened));
}

QueueImpl::QueueImpl(Store& store, QueueOptions options, std::shared_ptr<SessionKeeper> keeper)
    : StorePart(store, "the queues of this node"),
      options_(std::move(options)),
      clock_(store_),
      keeper_(std::move(keeper)),
      handlers_(std::make_shared<HandlerPool>(
          scheduler_, HandlerPool::Options{"perdure-worker", std::max(2U, ThreadPool::cores()), 0, kSpareHandlers})),
      held_(options_.held),
      promoting_(*this, queue::timetable_bell(), queue::promote),
      expiring_(*this, queue::deadlines_bell(), queue::expire),
      forgetting_(*this, queue::forget_prefix(), queue::forget) {}

void QueueImpl::start() {
  auto weak = weak_from_this();
  keeper_->add_sweeper(std::string(queue::kHeldRecall), [](Transaction&, SessionId, BytesView, BytesView) {});
  keeper_->add_sweeper(std::string(queue::kHeldServer), [](Transaction& txn, SessionId dead, BytesView rest,
                                                           BytesView) { queue::sweep_server(txn, dead, rest); });
  keeper_->add_sweeper(std::string(queue::kHeldClaims),
                       [weak](Transaction& txn, SessionId dead, BytesView, BytesView value) {
                         auto self = weak.lock();
                         Reader snapshot = txn.snapshot();
                         queue::sweep_claims(txn, dead, value, self ? self->now() : StoreClock::read(snapshot));
                       });
  keeper_->add_listener({.opened =
                             [weak](std::shared_ptr<SessionImpl> session) {
                               if (auto self = weak.lock()) self->session_opened(session);
                             },
                         .over =
                             [weak] {
                               if (auto self = weak.lock()) self->session_over();
                             }});
  std::uint64_t before_close = StoreAccess::impl(store_).before_close([weak] {
    if (auto self = weak.lock()) self->store_closing();
  });
  {
    MutexLock lock(mutex_);
    before_close_ = before_close;
  }
  if (before_close == 0) return store_closing();
  if (!options_.dispatch) return;
  promoting_.start();
  expiring_.start();
  forgetting_.start();
}

void QueueImpl::session_opened(const std::shared_ptr<SessionImpl>& session) {
  store_number_ = session->store_number();
  follow_recalls(session->id());
  for (auto& dispatcher : all_dispatchers()) dispatcher->announce();
}

void QueueImpl::session_over() {
  for (auto& dispatcher : all_dispatchers()) dispatcher->session_over();
}

void QueueImpl::follow_recalls(SessionId session) {
  transact(
      [session](Transaction& txn) {
        SystemAccess access(txn);
        return txn.watch(queue::recall_key(session));
      },
      [this, session](Result<Watch> watch, Receipt) {
        if (!watch && watch.error().code == ErrorCode::kClosed) return;
        auto current = session_id();
        if (current && *current != session) return;
        if (!watch || !current) {
          at(scheduler_.now() + kRetry, [this, session] { follow_recalls(session); });
          return;
        }
        Watch before = *watch;
        {
          MutexLock lock(mutex_);
          std::swap(before, recall_);
        }
        before.cancel();
        watch->then(guarded([this, session] { follow_recalls(session); }));
        // With the watch in its place: what comes after this look rings.
        for (auto& dispatcher : all_dispatchers()) dispatcher->check_claims();
      },
      {});
}

// Workers.

std::vector<QueueImpl::DispatcherPtr> QueueImpl::all_dispatchers() {
  MutexLock lock(mutex_);
  std::vector<DispatcherPtr> all = retired_;
  for (auto& [name, dispatcher] : dispatchers_) all.push_back(dispatcher);
  return all;
}

std::vector<QueueImpl::DispatcherPtr> QueueImpl::serving() {
  MutexLock lock(mutex_);
  std::vector<DispatcherPtr> serving;
  for (auto& [name, dispatcher] : dispatchers_) serving.push_back(dispatcher);
  return serving;
}

Result<void> QueueImpl::work(const std::string& space, std::string_view worker, Handler handler, WorkOptions options) {
  if (auto good = session::check_short_name(space, "the space"); !good) return good;
  if (auto good = queue::check_worker(worker); !good) return good;
  if (auto good = check_options(options); !good) return good;
  if (!options_.dispatch)
    return fail(ErrorCode::kInvalidArgument, "this queue was opened with dispatch off, and runs no handlers");
  auto made = std::make_shared<Dispatcher>(*this, space, std::string(worker), std::move(handler), std::move(options));
  DispatcherPtr before;
  unsigned most = 0;
  {
    MutexLock lock(mutex_);
    if (closing_) return std::unexpected(closed_error());
    before = std::exchange(dispatchers_[{space, std::string(worker)}], made);
    if (before) retired_.push_back(before);
    for (auto& [name, dispatcher] : dispatchers_) most += dispatcher->options().concurrency;
    // Their handlers have threads until they return.
    for (auto& dispatcher : retired_) most += dispatcher->options().concurrency;
  }
  handlers_->set_most(most);
  if (before) retire(before);
  made->announce();
  return {};
}

void QueueImpl::stop_working(const std::string& space, std::string_view worker) {
  DispatcherPtr before;
  {
    MutexLock lock(mutex_);
    auto found = dispatchers_.find({space, std::string(worker)});
    if (found == dispatchers_.end()) return;
    before = std::move(found->second);
    dispatchers_.erase(found);
    retired_.push_back(before);
  }
  unserve({before}, [](const Result<void>&) {});
  retire(before);
}

void QueueImpl::retire(const DispatcherPtr& dispatcher) {
  dispatcher->stop();
  dispatcher->when_settled(guarded([this, settled = dispatcher.get()] {
    MutexLock lock(mutex_);
    std::erase_if(retired_, [settled](const DispatcherPtr& other) { return other.get() == settled; });
  }));
}

void QueueImpl::unserve(const std::vector<DispatcherPtr>& dispatchers, VoidDone done) {
  auto session = session_id();
  if (dispatchers.empty() || !session) return done({});
  transact(
      [dispatchers, id = *session](Transaction& txn) {
        SystemAccess access(txn);
        for (const auto& dispatcher : dispatchers) queue::unserve(txn, dispatcher->space(), dispatcher->worker(), id);
      },
      [done = std::move(done)](Result<void> result, Receipt) mutable { done(std::move(result)); },
      {.timeout = std::chrono::seconds(1), .body = Body::kShort, .reserve = Reserve::kMayUse});
}

// Emitting.

Uuid QueueImpl::fresh_id() {
  constexpr std::uint64_t kNumbers = 1 << 12;
  std::int64_t ms = std::chrono::floor<std::chrono::milliseconds>(now()).time_since_epoch().count();
  std::uint64_t number;
  {
    MutexLock lock(mutex_);
    if (ms > id_ms_) {
      id_ms_ = ms;
      id_number_ = 0;
    } else if (++id_number_ == kNumbers) {
      ++id_ms_;
      id_number_ = 0;
    }
    ms = id_ms_;
    number = id_number_;
  }
  return queue::uuid_v7(ms, number, scheduler_.random());
}

Result<std::vector<queue::Prepared>> QueueImpl::prepare(const std::string& space, std::vector<NewEvent> events) {
  constexpr std::size_t kEventsMax = 10'000;
  if (auto good = session::check_short_name(space, "the space"); !good) return std::unexpected(std::move(good.error()));
  if (events.size() > kEventsMax)
    return fail(ErrorCode::kTooLarge, std::to_string(events.size()) +
                                          " events are too many for one transaction; at "
                                          "most 10000 are allowed");
  auto use = enter();
  if (!use) return std::unexpected(closed_error());
  std::vector<queue::Prepared> prepared;
  prepared.reserve(events.size());
  std::vector<Uuid> own;
  for (NewEvent& event : events) {
    if (event.options.id) own.push_back(*event.options.id);
    Uuid fresh = event.options.id ? Uuid() : fresh_id();
    auto one = queue::prepare(std::move(event), fresh);
    if (!one) return std::unexpected(std::move(one.error()));
    prepared.push_back(std::move(*one));
  }
  std::ranges::sort(own);
  if (std::ranges::adjacent_find(own) != own.end())
    return fail(ErrorCode::kInvalidArgument, "two of the events have the same id");
  return prepared;
}

void QueueImpl::emit(const std::string& space, std::vector<NewEvent> events,
                     std::move_only_function<void(Result<std::vector<Emitted>>)> done) {
  auto prepared = prepare(space, std::move(events));
  if (!prepared) return done(std::unexpected(std::move(prepared.error())));
  if (prepared->empty()) return done(std::vector<Emitted>());
  transact(
      [this, space, prepared = std::move(*prepared)](Transaction& txn) {
        return queue::emit_all(txn, space, prepared, queue::is_timed(prepared) ? now(txn) : now());
      },
      [done = std::move(done)](Result<std::vector<Emitted>> emitted, Receipt) mutable { done(std::move(emitted)); },
      {.body = Body::kShort});
}

// Waiting for an end.

void QueueImpl::wait(const std::string& space, const Uuid& id, Duration timeout,
                     std::move_only_function<void(Result<EndedEvent>)> done) {
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  SteadyTime now = scheduler_.now();
  SteadyTime deadline = timeout < SteadyTime::max() - now ? now + timeout : SteadyTime::max();
  wait_for(space, id, deadline, false,
           std::make_shared<std::move_only_function<void(Result<EndedEvent>)>>(std::move(done)));
}

void QueueImpl::wait_for(std::string space, Uuid id, SteadyTime deadline, bool seen,
                         std::shared_ptr<std::move_only_function<void(Result<EndedEvent>)>> done) {
  struct Seen {
    Result<EndedEvent> ended;
    bool stored = false;
    Watch watch;
  };
  transact(
      [space, id](Transaction& txn) {
        Reader snapshot = txn.snapshot();
        Seen found{queue::get_ended(snapshot, space, id), false, {}};
        if (found.ended) return found;
        SystemAccess access(txn);
        found.watch = txn.watch(queue::event_key(space, id));
        found.stored = queue::load(snapshot, space, id).has_value();
        return found;
      },
      [this, space, id, deadline, seen, done](Result<Seen> found, Receipt) mutable {
        if (!found) return (*done)(std::unexpected(std::move(found.error())));
        bool over = found->ended || (!found->stored && !seen);
        if (over) return (*done)(std::move(found->ended));
        if (!found->stored)
          return (*done)(fail(ErrorCode::kNotFound, "event " + to_string(id) +
                                                        " has ended, and its worker keeps no "
                                                        "history"));
        Watch watch = found->watch;
        auto waiter = add_waiter([this, watch, done]() mutable {
          watch.cancel();
          (*done)(std::unexpected(closed_error()));
        });
        if (waiter == 0) return;
        auto timer = deadline == SteadyTime::max() ? 0 : at(deadline, [this, waiter, watch, id, done]() mutable {
          if (!remove_waiter(waiter)) return;
          watch.cancel();
          (*done)(fail(ErrorCode::kDeadline, "event " + to_string(id) + " has not ended yet"));
        });
        watch.then(guarded([this, space, id, deadline, done, waiter, timer]() mutable {
          if (!remove_waiter(waiter)) return;
          if (timer != 0) scheduler_.cancel(timer);
          wait_for(space, id, deadline, true, done);
        }));
      },
      {});
}

// Closing.

void QueueImpl::stop_serving() {
  std::map<Name, DispatcherPtr> dispatchers;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    dispatchers.swap(dispatchers_);
    for (auto& [name, dispatcher] : dispatchers) retired_.push_back(dispatcher);
  }
  for (auto& [name, dispatcher] : dispatchers) dispatcher->stop();
}

void QueueImpl::store_closing() {
  if (StoreAccess::impl(store_).muted()) return;
  stop_serving();
  handlers_->close([] {});
  closed({});
}

void QueueImpl::close(Duration grace, VoidDone done) {
  auto use = enter();
  bool first, over;
  {
    MutexLock lock(mutex_);
    over = closed_ || !use;
    first = closers_.empty();
    if (!over) closers_.push_back(std::move(done));
  }
  if (over) return done({});
  if (SteadyTime now = scheduler_.now(); grace < SteadyTime::max() - now)
    at(now + grace, [this] {
      {
        MutexLock lock(mutex_);
        overran_ = overran_ || !ending_;
      }
      settle_and_end();
    });
  if (!first) return;
  std::vector<DispatcherPtr> serving = all_dispatchers();
  stop_serving();
  unserve(serving, [this](const Result<void>&) { handlers_->close(guarded([this] { settle_and_end(); })); });
}

void QueueImpl::settle_and_end() {
  std::vector<DispatcherPtr> left = all_dispatchers();
  {
    MutexLock lock(mutex_);
    if (std::exchange(ending_, true)) return;
  }
  handlers_->close([] {});
  handlers_->leave_behind();
  auto waiting = std::make_shared<std::atomic<std::size_t>>(left.size() + 1);
  auto one_less = [weak = weak_from_this(), waiting] {
    if (--*waiting > 0) return;
    auto self = weak.lock();
    if (!self) return;
    self->keeper_->close_async(Duration::zero(), [weak](Result<void> ended) {
      if (auto node = weak.lock()) node->closed(ended);
    });
  };
  for (auto& dispatcher : left) {
    dispatcher->release_all();
    dispatcher->when_settled(guarded(one_less));
  }
  one_less();
}

void QueueImpl::closed(const Result<void>& result) {
  std::vector<VoidDone> closers;
  std::map<std::uint64_t, WaiterTasks> waiters;
  bool overran;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    overran = overran_;
    closers.swap(closers_);
    waiters.swap(waiters_);
  }
  // From now on every call is refused, and the loops come to their end.
  gate_.close();
  for (auto& [number, waiter] : waiters) waiter.closed();
  for (VoidDone& done : closers) {
    if (!result)
      done(std::unexpected(result.error()));
    else if (overran)
      done(fail(ErrorCode::kDeadline, "a handler was still running when the grace was over; its event was given back"));
    else
      done({});
  }
}

std::uint64_t QueueImpl::add_waiter(Task closed) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      waiters_[++last_waiter_] = {std::move(closed)};
      return last_waiter_;
    }
  }
  closed();
  return 0;
}

bool QueueImpl::remove_waiter(std::uint64_t waiter) {
  WaiterTasks forgotten;
  MutexLock lock(mutex_);
  auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return false;
  forgotten = std::move(found->second);
  waiters_.erase(found);
  lock.unlock();
  return true;
}

void QueueImpl::when_woken(std::uint64_t waiter, Task woken, bool timed) {
  MutexLock lock(mutex_);
  auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  std::swap(found->second.woken, woken);
  found->second.timed = timed;
}

void QueueImpl::wake_waiter(std::uint64_t waiter) {
  Task woken;
  {
    MutexLock lock(mutex_);
    auto found = waiters_.find(waiter);
    if (found != waiters_.end()) std::swap(found->second.woken, woken);
  }
  if (woken) woken();
}

void QueueImpl::wake_waiters(Wake which) {
  std::vector<Task> woken;
  {
    MutexLock lock(mutex_);
    for (auto& [number, waiter] : waiters_)
      if (waiter.woken && (which == Wake::kAll || waiter.timed)) woken.push_back(std::exchange(waiter.woken, {}));
  }
  for (Task& wake : woken) wake();
}

// Holding.

void QueueImpl::release() {
  auto use = enter();
  if (!held_.exchange(false) || !use) return;
  for (auto& dispatcher : all_dispatchers()) dispatcher->ring();
  wake_waiters(Wake::kAll);
}

void QueueImpl::abandon() {
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block() && !HandlerPool::runs_here();
  if (may_wait) {
    auto ended = std::make_shared<Latch>();
    close(Duration::max(), [ended](const Result<void>&) { ended->set(); });
    ended->wait();
    handlers_->join();
  } else {
    unserve(all_dispatchers(), [](const Result<void>&) {});
    stop_serving();
    handlers_->close([] {});
    if (!StoreAccess::impl(store_).muted()) closed({});
  }
  keeper_->abandon();
  std::uint64_t before_close;
  {
    MutexLock lock(mutex_);
    before_close = before_close_;
  }
  // Whoever calls this still has a handle of the store.
  StoreAccess::impl(store_).forget_before_close(before_close);
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

QueueActivity QueueImpl::activity() {
  QueueActivity sum;
  for (auto& dispatcher : all_dispatchers()) {
    auto one = dispatcher->activity();
    sum.running += one.running;
    sum.settling += one.settling;
  }
  return sum;
}

void QueueImpl::warn(const std::string& what, const std::string& event) {
  log(StoreAccess::impl(store_).options(), LogLevel::kWarning, "queue", what, {{"event", event}});
}

}  // namespace perdure
