#include "session/session_keeper.h"

#include <algorithm>

#include "session/session_access.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure {
namespace {

constexpr Duration kBackOffMin = std::chrono::milliseconds(10);
constexpr unsigned kBackOffDoublings = 7;

}  // namespace

SessionKeeper::SessionKeeper(Store& store, SessionOptions options)
    : store_(StoreAccess::borrow(store)),
      options_(std::move(options)),
      scheduler_(StoreAccess::impl(store_).scheduler()) {}

SessionKeeper::~SessionKeeper() {
  abandon();
}

// Opening.

void SessionKeeper::open(Store& store, SessionOptions options, OpenDone done) {
  auto use = StoreAccess::impl(store).use();
  if (!use) return done(std::unexpected(std::move(use.error())));
  auto keeper = std::make_shared<SessionKeeper>(store, std::move(options));
  // Reopening comes after the user's own callback, so that what that one sees is the loss.
  keeper->options_.on_lost = [weak = keeper->weak_from_this(),
                              on_lost = std::move(keeper->options_.on_lost)](const Error& why) {
    if (on_lost) on_lost(why);
    auto self = weak.lock();
    if (!self) return;
    if (auto inside = self->enter()) self->reopen_if_lost();
  };
  auto closing = [weak = keeper->weak_from_this()] {
    if (auto self = weak.lock()) self->store_closing();
  };
  std::uint64_t before_close = StoreAccess::impl(store).before_close(closing);
  if (before_close == 0) return done(std::unexpected(SessionImpl::store_closed()));
  {
    MutexLock lock(keeper->mutex_);
    keeper->before_close_ = before_close;
  }
  keeper->attempt([keeper, done = std::move(done)](Result<void> opened) mutable {
    if (!opened) {
      keeper->abandon();
      return done(std::unexpected(std::move(opened.error())));
    }
    done(std::move(keeper));
  });
}

void SessionKeeper::attempt(std::move_only_function<void(Result<void>)> answered) {
  std::optional<SessionId> replaces;
  {
    MutexLock lock(mutex_);
    attempting_ = true;
    replaces = replaces_;
  }
  SessionImpl::open(store_, options_, replaces,
                    [weak = weak_from_this(), answered = std::move(answered)](Result<Session> opened, Store) mutable {
                      // Otherwise the session, if there is one, goes as it came.
                      auto self = weak.lock();
                      if (!self) return;
                      Result<void> result = std::unexpected(SessionImpl::store_closed());
                      if (auto inside = self->enter()) result = self->take(std::move(opened));
                      answered(std::move(result));
                    });
}

Result<void> SessionKeeper::take(Result<Session> opened) {
  std::shared_ptr<SessionImpl> session;
  session::Sweepers sweepers;
  bool unwanted;
  {
    MutexLock lock(mutex_);
    attempting_ = false;
    if (!opened) return std::unexpected(std::move(opened.error()));
    if (state_ == State::kClosed) return std::unexpected(SessionImpl::store_closed());
    session = SessionAccess::impl(*opened);
    session_.emplace(std::move(*opened));
    unwanted = state_ == State::kClosing;
    if (!unwanted) state_ = State::kOpen;
    failures_ = 0;
    sweepers = sweepers_;
  }
  if (unwanted) {
    stop(*session, Duration::zero());
    return {};
  }
  for (auto& [kind, sweeper] : sweepers) session->add_sweeper(kind, std::move(sweeper));
  publish(session);
  return {};
}

void SessionKeeper::publish(const std::shared_ptr<SessionImpl>& session) {
  {
    MutexLock lock(mutex_);
    if (!session_ || SessionAccess::impl(*session_) != session) return;
    current_ = session;
    tell(session);
  }
  session->on_over([weak = weak_from_this(), session] {
    if (auto self = weak.lock()) self->over(session);
  });
  deliver();
  // It may have been lost before there was anybody to notice.
  reopen_if_lost();
}

// Losing it, and the next one.

void SessionKeeper::over(const std::shared_ptr<SessionImpl>& session) {
  {
    MutexLock lock(mutex_);
    if (current_ != session) return;
    current_ = nullptr;
    tell(nullptr);
  }
  deliver();
}

void SessionKeeper::reopen_if_lost() {
  std::optional<Session> lost;  // Dies outside of the lock.
  {
    MutexLock lock(mutex_);
    if (state_ != State::kOpen || !SessionAccess::impl(*session_)->is_lost()) return;
    state_ = State::kReopening;
    replaces_ = session_->id();
    lost.swap(session_);
  }
  reopen();
}

void SessionKeeper::reopen() {
  attempt([weak = weak_from_this()](Result<void> result) {
    if (auto self = weak.lock()) self->reopened(std::move(result));
  });
}

void SessionKeeper::reopened(const Result<void>& result) {
  auto inside = enter();
  if (result || !inside) return;
  bool closing;
  Duration pause = {};
  {
    MutexLock lock(mutex_);
    closing = state_ == State::kClosing;
    if (state_ == State::kReopening)
      pause = kBackOffMin * (1 << std::min(failures_++, kBackOffDoublings));
    else if (!closing)
      return;
  }
  if (closing) return closed({});
  pause += pause * static_cast<Duration::rep>(scheduler_.random() % 100) / 100;
  log(StoreAccess::impl(store_).options(), LogLevel::kWarning, "session", "no session in the place of a lost one yet",
      {{"name", options_.name}, {"why", result.error().message}});
  scheduler_.at(scheduler_.now() + pause, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    if (auto again = self->enter()) self->reopen_in_time();
  });
}

void SessionKeeper::reopen_in_time() {
  {
    MutexLock lock(mutex_);
    if (state_ != State::kReopening) return;
  }
  reopen();
}

// Telling.

std::shared_ptr<SessionImpl> SessionKeeper::current() {
  std::shared_ptr<SessionImpl> session;
  {
    MutexLock lock(mutex_);
    session = current_;
  }
  return session && session->alive() ? session : nullptr;
}

std::optional<SessionId> SessionKeeper::id() {
  auto session = current();
  if (!session) return std::nullopt;
  return session->id();
}

void SessionKeeper::add_listener(Listener listener) {
  {
    MutexLock lock(mutex_);
    listeners_.push_back(std::make_shared<const Listener>(std::move(listener)));
    if (current_) events_.push_back({listeners_.back(), current_});
  }
  deliver();
}

void SessionKeeper::add_sweeper(std::string kind, session::Sweeper sweeper) {
  std::shared_ptr<SessionImpl> session;
  {
    MutexLock lock(mutex_);
    sweepers_.insert_or_assign(kind, sweeper);
    if (session_) session = SessionAccess::impl(*session_);
  }
  if (session) session->add_sweeper(std::move(kind), std::move(sweeper));
}

void SessionKeeper::tell(const std::shared_ptr<SessionImpl>& opened) {
  for (const auto& listener : listeners_) events_.push_back({listener, opened});
}

void SessionKeeper::deliver() {
  MutexLock lock(mutex_);
  if (std::exchange(delivering_, true)) return;
  while (!events_.empty()) {
    Event event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    if (event.opened && event.listener->opened) event.listener->opened(event.opened);
    if (!event.opened && event.listener->over) event.listener->over();
    event = {};
    lock.lock();
  }
  delivering_ = false;
}

// Closing.

void SessionKeeper::close_async(Duration grace, Done done) {
  auto inside = enter();
  if (!inside) return done(std::unexpected(SessionImpl::store_closed()));
  std::shared_ptr<SessionImpl> session;
  bool idle = false;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kClosed) {
      closers_.push_back(std::move(done));
      if (state_ == State::kClosing) return;
      if (state_ == State::kOpen) session = SessionAccess::impl(*session_);
      idle = state_ == State::kReopening && !attempting_;
      state_ = State::kClosing;
    }
  }
  if (session) stop(*session, grace);
  if (idle) scheduler_.post([self = weak_from_this()] { closed_if_there(self, {}); });
  if (done) scheduler_.post([done = std::move(done)]() mutable { done({}); });
}

void SessionKeeper::stop(SessionImpl& session, Duration grace) {
  session.stop(grace, [self = weak_from_this()](Result<void> result) { closed_if_there(self, std::move(result)); });
}

void SessionKeeper::closed_if_there(const std::weak_ptr<SessionKeeper>& keeper, Result<void> result) {
  if (auto self = keeper.lock()) self->closed(std::move(result));
}

void SessionKeeper::closed(Result<void> result) {
  std::optional<Session> session;
  std::vector<Done> closers;
  {
    MutexLock lock(mutex_);
    state_ = State::kClosed;
    session.swap(session_);
    closers.swap(closers_);
  }
  session.reset();
  for (Done& closer : closers) closer(result);
}

void SessionKeeper::store_closing() {
  std::optional<Session> session;
  std::vector<Done> closers;
  bool muted = StoreAccess::impl(store_).muted();
  gate_.close();
  {
    MutexLock lock(mutex_);
    // A stop is still answered, by the session, but not to a process that has died.
    if (state_ == State::kClosing && session_ && !muted) return;
    state_ = State::kClosed;
    session.swap(session_);
    closers.swap(closers_);
  }
  if (session) SessionAccess::impl(*session)->store_closing();
  session.reset();
  if (muted) return;
  for (Done& closer : closers) closer(std::unexpected(SessionImpl::store_closed()));
}

void SessionKeeper::abandon() {
  std::optional<Session> session;
  std::vector<Done> closers;
  std::uint64_t before_close;
  {
    MutexLock lock(mutex_);
    state_ = State::kClosed;
    session.swap(session_);
    closers.swap(closers_);
    before_close = before_close_;
  }
  bool may_wait = false;
  if (auto inside = enter()) {
    StoreAccess::impl(store_).forget_before_close(before_close);
    may_wait = !StoreAccess::impl(store_).must_not_block();
  }
  // Who is still waiting has a stop under way, so that the store is there.
  bool tell_closers = !closers.empty() && !StoreAccess::impl(store_).muted();
  session.reset();
  if (tell_closers)
    for (Done& closer : closers) closer(fail(ErrorCode::kClosed, "the keeper of the session is gone"));
  gate_.close();
  if (may_wait) gate_.wait_until_empty();
}

Gate::Use SessionKeeper::enter() {
  // What is declared last goes first: the keeper, while its store is still there.
  struct Owner {
    std::optional<StoreImpl::Use> store;
    std::shared_ptr<SessionKeeper> keeper;
  };
  auto owner = std::make_shared<Owner>();
  owner->keeper = weak_from_this().lock();
  auto inside = gate_.enter(owner);
  if (!inside) return {};
  auto store = StoreAccess::impl(store_).use();
  if (!store) return {};
  owner->store.emplace(std::move(*store));
  return inside;
}

}  // namespace perdure
