#include "actor/actors_impl.h"

#include <algorithm>

#include "actor/mailbox.h"
#include "base/time_math.h"
#include "runtime/guarded_handler.h"
#include "runtime/thread_pool.h"
#include "store/report.h"
#include "store/store_access.h"

namespace perdure {

using actor::Caller;
using actor::Request;
using actor::ServedKind;
using actor::Waiter;

namespace {

HandlerPool::Options handler_threads(const ActorsOptions& options) {
  unsigned threads = options.handler_threads > 0 ? options.handler_threads : std::max(2U, ThreadPool::cores());
  return {
      .name = "perdure-handler", .eager = threads, .most = std::max(threads, options.handler_threads_max), .spare = 64};
}

HandlerPool::Options locked_threads(const ActorsOptions& options) {
  unsigned threads = std::max(1U, options.locked_max);
  return {.name = "perdure-locked", .eager = threads, .most = threads, .spare = 0};
}

ValueDone as_value_done(VoidDone done) {
  return [done = std::move(done)](Result<Value> result) mutable {
    if (result)
      done({});
    else
      done(std::unexpected(std::move(result.error())));
  };
}

Result<void> check_options(const KindOptions& options) {
  auto wrong = [](std::string_view what) { return fail(ErrorCode::kInvalidArgument, std::string(what)); };
  if (options.limit <= Duration::zero()) return wrong("the limit of a handler must be more than nothing");
  if (options.attempts_max < 1) return wrong("attempts_max must be at least 1");
  if (options.back_off < Duration::zero() || options.back_off_max < options.back_off)
    return wrong("back_off must not be negative, nor larger than back_off_max");
  if (options.batch_time < Duration::zero() || options.batch_time > std::chrono::hours(1))
    return wrong("batch_time must be from nothing to an hour");
  if (options.batch_max == 0 || options.batch_max > 4096) return wrong("batch_max must be from 1 to 4096");
  if (options.mailbox_max == 0) return wrong("mailbox_max must be at least 1");
  return {};
}

}  // namespace

// Opening and closing.

void ActorsImpl::open(Store store, ActorsOptions options, OpenDone done) {
  if (auto good = actor::check_short_name(options.space, "the space"); !good)
    return done(std::unexpected(std::move(good.error())), std::move(store));
  SessionOptions session = options.session;
  // The keeper borrows the store, which is kept until it has answered. Then it goes with the answer, for its last
  // handle must not be dropped in a callback.
  auto kept = std::make_shared<Store>(std::move(store));
  Store& borrowed = *kept;
  auto opened = [kept, options = std::move(options),
                 done = std::move(done)](Result<std::shared_ptr<SessionKeeper>> keeper) mutable {
    Store taken = std::move(*kept);
    if (!keeper) return done(std::unexpected(std::move(keeper.error())), std::move(taken));
    std::string space = options.space;
    auto impl = std::make_shared<ActorsImpl>(taken, std::move(options), std::move(*keeper));
    impl->start();
    // Handles share an owner of their own: callbacks may keep the object for a moment longer. They keep the store open
    // as well, so that it is closed where the last of them is dropped.
    ActorsImpl* raw = impl.get();
    std::shared_ptr<ActorsImpl> handle(raw, [impl = std::move(impl), taken](ActorsImpl* actors) { actors->abandon(); });
    done(Actors(std::move(handle), std::move(space)), std::move(taken));
  };
  SessionKeeper::open(borrowed, std::move(session), std::move(opened));
}

ActorsImpl::ActorsImpl(Store& store, ActorsOptions options, std::shared_ptr<SessionKeeper> keeper)
    : StorePart(store, "the actors of this node"),
      options_(std::move(options)),
      clock_(store_),
      keeper_(std::move(keeper)),
      handlers_(std::make_shared<HandlerPool>(scheduler_, handler_threads(options_))),
      locked_handlers_(std::make_shared<HandlerPool>(scheduler_, locked_threads(options_))),
      held_(options_.held) {}

ActorsImpl::~ActorsImpl() = default;

void ActorsImpl::start() {
  auto weak = weak_from_this();
  keeper_->add_sweeper(std::string(actor::kHeldServer), [](Transaction& txn, SessionId dead, BytesView rest,
                                                           BytesView) { actor::sweep_server(txn, dead, rest); });
  keeper_->add_sweeper(std::string(actor::kHeldLock),
                       [weak](Transaction& txn, SessionId dead, BytesView rest, BytesView) {
                         auto self = weak.lock();
                         Reader snapshot = txn.snapshot();
                         actor::sweep_lock(txn, dead, rest, self ? self->now() : StoreClock::read(snapshot));
                       });
  keeper_->add_listener({.opened =
                             [weak](std::shared_ptr<SessionImpl> session) {
                               if (auto self = weak.lock()) self->session_opened(session);
                             },
                         .over =
                             [weak] {
                               if (auto self = weak.lock()) self->slots_.cancel_locked();
                             }});
  std::uint64_t before_close = StoreAccess::impl(store_).before_close([weak] {
    if (auto self = weak.lock()) self->store_closing();
  });
  {
    MutexLock lock(mutex_);
    before_close_ = before_close;
  }
  if (before_close == 0) return store_closing();
  housekeeping_.start();
}

void ActorsImpl::store_closing() {
  if (StoreAccess::impl(store_).muted()) return;
  stop_all();
  handlers_->close([] {});
  locked_handlers_->close([] {});
  callers_.close(closed_error());
  closed({});
}

void ActorsImpl::session_opened(const std::shared_ptr<SessionImpl>& session) {
  {
    MutexLock lock(mutex_);
    identity_ = session->id().stamp;
  }
  // How whoever was here before came to its end is not known.
  careful_from(session->id().stamp.version.number);
  for (auto& dispatcher : all_dispatchers()) dispatcher->announce();
}

std::vector<std::shared_ptr<actor::Dispatcher>> ActorsImpl::all_dispatchers() {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<actor::Dispatcher>> all;
  for (auto& [name, dispatcher] : dispatchers_) all.push_back(dispatcher);
  return all;
}

// What moves time asks.

std::optional<WallTime> ActorsImpl::next_due(Reader& reader) {
  return actor::first_delayed(reader);
}

bool ActorsImpl::has_work(Reader& reader, WallTime now) {
  if (next_due(reader).value_or(WallTime::max()) <= now) return true;
  if (held()) return false;
  for (auto& dispatcher : all_dispatchers()) {
    const ServedKind& kind = *dispatcher->kind();
    if (!kind.options.consume) continue;
    if (!reader.get_range(tuple::extensions(actor::ready_prefix(kind.space, kind.name)), {.limit = 1}).empty())
      return true;
  }
  return false;
}

TimedPart::Activity ActorsImpl::activity_now() {
  Activity activity = slots_.activity();
  // What actors do after their commits.
  activity.busy = activity.busy || !handlers_->idle();
  return activity;
}

void ActorsImpl::look() {
  if (auto use = enter()) housekeeping_.look();
}

void ActorsImpl::release() {
  auto use = enter();
  if (!held_.exchange(false) || !use) return;
  slots_.advance_all();
  for (auto& dispatcher : all_dispatchers()) dispatcher->look_again();
}

void ActorsImpl::careful_from(std::uint64_t version) {
  std::uint64_t known = careful_version_;
  while (known < version && !careful_version_.compare_exchange_weak(known, version)) {
  }
}

bool ActorsImpl::is_told_of_deaths() {
  const Capabilities& engine = StoreAccess::impl(store_).engine().capabilities();
  return !engine.remote && !engine.far_reads;
}

Stamp ActorsImpl::identity() {
  MutexLock lock(mutex_);
  return identity_;
}

void ActorsImpl::stop_all() {
  std::map<KindName, std::shared_ptr<actor::Dispatcher>> dispatchers;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    dispatchers.swap(dispatchers_);
  }
  for (auto& [name, dispatcher] : dispatchers) dispatcher->stop();
  slots_.close(closed_error());
  slots_.cancel_locked();
}

void ActorsImpl::close(Duration grace, VoidDone done) {
  auto end = std::make_shared<Waiter>(as_value_done(std::move(done)));
  auto use = enter();
  bool first, over;
  {
    MutexLock lock(mutex_);
    over = closed_ || !use;
    first = closers_.empty();
    if (!over) closers_.push_back(end);
  }
  // A closed store has seen to everything already.
  if (over) return (void)end->answer(Value());
  if (SteadyTime now = scheduler_.now(); grace < SteadyTime::max() - now)
    at(now + grace, [this, end] {
      if (!end->answer(fail(ErrorCode::kDeadline, "something still runs under a lock; it is left behind"))) return;
      callers_.close(closed_error());
      keeper_->close_async(Duration::zero(), [](const Result<void>&) {});
    });
  if (!first) return;
  unregister_all([this](const Result<void>&) {
    stop_all();
    auto left = std::make_shared<std::atomic<int>>(2);
    auto idle = [this, left] {
      // What the last handlers did is still to be committed, under this session.
      if (--*left == 0) slots_.when_idle(guarded([this] { end_session(); }));
    };
    handlers_->close(guarded(idle));
    locked_handlers_->close(guarded(idle));
  });
}

void ActorsImpl::end_session() {
  callers_.close(closed_error());
  keeper_->close_async(Duration::zero(), [weak = weak_from_this()](Result<void> stopped) {
    if (auto self = weak.lock()) self->closed(std::move(stopped));
  });
}

void ActorsImpl::closed(const Result<void>& result) {
  std::vector<std::shared_ptr<Waiter>> closers;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    closers.swap(closers_);
  }
  for (const auto& closer : closers) {
    if (result)
      closer->answer(Value());
    else
      closer->answer(std::unexpected(result.error()));
  }
}

/// Who goes in peace is not taken for dead: nobody need be careful because of it.
void ActorsImpl::unregister_all(VoidDone done) {
  std::vector<std::shared_ptr<ServedKind>> kinds;
  {
    MutexLock lock(mutex_);
    for (auto& [name, dispatcher] : dispatchers_)
      if (dispatcher->kind()->options.consume) kinds.push_back(dispatcher->kind());
  }
  unregister(std::move(kinds), std::move(done));
}

void ActorsImpl::unregister(std::vector<std::shared_ptr<ServedKind>> kinds, VoidDone done) {
  auto session = session_id();
  if (kinds.empty() || !session) return done({});
  transact(
      [kinds, id = *session](Transaction& txn) {
        SystemAccess access(txn);
        for (const auto& kind : kinds) {
          txn.clear(tuple::pack_onto(actor::server_prefix(kind->space, kind->name), id.stamp));
          txn.clear(session::held_key(id, actor::kHeldServer, kind->space, kind->name));
          txn.add(actor::servers_bell_key(kind->space, kind->name), 1);
        }
      },
      [done = std::move(done)](Result<void> result, Receipt) mutable { done(std::move(result)); },
      {.timeout = std::chrono::seconds(1), .body = Body::kShort, .reserve = Reserve::kMayUse});
}

void ActorsImpl::abandon() {
  bool may_wait = false;
  if (auto use = enter()) may_wait = !StoreAccess::impl(store_).must_not_block() && !HandlerPool::runs_here();
  unregister_all([](const Result<void>&) {});
  stop_all();
  handlers_->close([] {});
  locked_handlers_->close([] {});
  if (may_wait) {
    // Handlers come to their end, or are given up at their limit; what runs under a lock may take longer than that.
    handlers_->wait();
    handlers_->join();
    locked_handlers_->leave_behind();
    locked_handlers_->join();
  }
  callers_.close(closed_error());
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

Result<void> ActorsImpl::may_block() {
  if (HandlerPool::runs_here())
    return fail(
        ErrorCode::kInvalidArgument,
        "a blocking call was made in a handler, which would wait for itself; send a message by the Turn instead");
  return StorePart::may_block();
}

// Kinds.

Result<void> ActorsImpl::serve(const std::string& space, std::string_view kind, std::shared_ptr<Behaviour> behaviour,
                               const KindOptions& options) {
  if (auto good = actor::check_short_name(space, "the space"); !good) return good;
  if (auto good = actor::check_short_name(kind, "the kind"); !good) return good;
  if (auto good = check_options(options); !good) return good;
  if (!behaviour) return fail(ErrorCode::kInvalidArgument, "the behaviour is null");
  auto made = std::make_shared<ServedKind>(ServedKind{space, std::string(kind), std::move(behaviour), options});
  auto dispatcher = std::make_shared<actor::Dispatcher>(*this, made);
  std::shared_ptr<actor::Dispatcher> before;
  {
    MutexLock lock(mutex_);
    if (closing_) return std::unexpected(closed_error());
    auto& place = dispatchers_[{space, std::string(kind)}];
    before = std::exchange(place, dispatcher);
  }
  if (before) before->stop();
  slots_.replace_kind(made);
  transact(
      [made](Transaction& txn) {
        SystemAccess access(txn);
        actor::write_kind(txn, made->space, made->name, made->options);
      },
      [](const Result<void>&, Receipt) {}, {.body = Body::kShort});
  dispatcher->announce();
  return {};
}

void ActorsImpl::stop_serving(const std::string& space, std::string_view kind) {
  std::shared_ptr<actor::Dispatcher> dispatcher;
  {
    MutexLock lock(mutex_);
    auto found = dispatchers_.find({space, std::string(kind)});
    if (found == dispatchers_.end()) return;
    dispatcher = std::move(found->second);
    dispatchers_.erase(found);
  }
  dispatcher->stop();
  slots_.stop_kind(dispatcher->kind());
  unregister({dispatcher->kind()}, [](const Result<void>&) {});
}

std::shared_ptr<ServedKind> ActorsImpl::served(const ActorId& actor) {
  MutexLock lock(mutex_);
  auto found = dispatchers_.find({actor.space, actor.kind});
  return found == dispatchers_.end() ? nullptr : found->second->kind();
}

// Messages.

Result<void> ActorsImpl::accepts(const ActorId& actor) {
  {
    MutexLock lock(mutex_);
    if (closing_) return std::unexpected(closed_error());
  }
  return actor.check();
}

void ActorsImpl::send(const ActorId& actor, Request request, Way way, Duration timeout) {
  auto refuse = [&](Error error) { request.waiter->answer(std::unexpected(std::move(error))); };
  bool died = false;
  auto use = enter(&died);
  if (!use && died) return;
  if (!use) return refuse(closed_error());
  if (auto good = accepts(actor); !good) return refuse(std::move(good.error()));
  if (request.what == Request::What::kMessage) {
    if (auto good = actor::check_message(request.message); !good) return refuse(std::move(good.error()));
    if (auto good = session::check_traceparent(request.traceparent); !good) return refuse(std::move(good.error()));
  }
  auto kind = served(actor);
  bool past_mailbox = way == Way::kPriority;
  if (past_mailbox && !kind)
    return refuse({ErrorCode::kInvalidArgument, "this node does not serve the kind " + actor.kind +
                                                    ", and only a node that does can handle a message at once"});
  if (request.type == MessageType::kCall && request.what == Request::What::kMessage) {
    request.caller = callers_.make_caller();
    callers_.set_timer(actor, *request.caller, request.waiter, timeout);
  }
  if (past_mailbox || (kind && kind->options.consume)) return slots_.request(actor, kind, std::move(request), way);
  std::vector<Request> one;
  one.push_back(std::move(request));
  callers_.push(actor, std::move(one));
}

void ActorsImpl::call(const ActorId& actor, Value message, const CallOptions& options, ValueDone done) {
  Request request{.type = MessageType::kCall,
                  .message = std::move(message),
                  .caller = {},
                  .waiter = std::make_shared<Waiter>(std::move(done)),
                  .traceparent = options.traceparent};
  send(actor, std::move(request), options.way, options.timeout);
}

void ActorsImpl::cast(const ActorId& actor, Value message, const CastOptions& options, VoidDone done) {
  if (options.delay > Duration::zero()) {
    return transact([this, actor, message = std::move(message),
                     options](Transaction& txn) { cast_in(txn, actor, {message}, options.delay, options.traceparent); },
                    [done = std::move(done)](Result<void> result, Receipt) mutable { done(std::move(result)); },
                    {.body = Body::kShort});
  }
  Request request{.type = MessageType::kCast,
                  .message = std::move(message),
                  .caller = {},
                  .waiter = std::make_shared<Waiter>(as_value_done(std::move(done))),
                  .traceparent = options.traceparent};
  send(actor, std::move(request), options.way, Duration::max());
}

void ActorsImpl::cast_many(const ActorId& actor, std::vector<Value> messages, VoidDone done) {
  if (messages.empty()) return done({});
  transact([this, actor, messages = std::move(messages)](Transaction& txn) { cast_in(txn, actor, messages, {}); },
           [done = std::move(done)](Result<void> result, Receipt) mutable { done(std::move(result)); },
           {.body = Body::kShort});
}

void ActorsImpl::info(const ActorId& actor, Value message, VoidDone done) {
  Request request{.type = MessageType::kInfo,
                  .message = std::move(message),
                  .caller = {},
                  .waiter = std::make_shared<Waiter>(as_value_done(std::move(done)))};
  send(actor, std::move(request), Way::kPriority, Duration::max());
}

void ActorsImpl::reset(const ActorId& actor, VoidDone done) {
  Request request{.what = Request::What::kReset,
                  .type = MessageType::kInfo,
                  .message = {},
                  .caller = {},
                  .waiter = std::make_shared<Waiter>(as_value_done(std::move(done)))};
  send(actor, std::move(request), Way::kPriority, Duration::max());
}

void ActorsImpl::run_actions(std::vector<std::vector<Action>> actions, std::shared_ptr<Value> state) {
  auto run = [actions = std::move(actions), state = std::move(state)] {
    for (const auto& of_message : actions) {
      for (const Action& action : of_message) {
        auto next = guarded_handler([&]() -> Result<Next> { return action(*state); });
        if (!next || *next == Next::kHalt) break;
      }
    }
  };
  // One that hangs costs a thread, and holds up nobody.
  handlers_->run({.run = std::move(run), .limit = std::chrono::seconds(5)});
}

void ActorsImpl::warn(const std::string& what, const ActorId& actor) {
  log(StoreAccess::impl(store_).options(), LogLevel::kWarning, "actor", what, {{"actor", actor.to_string()}});
}

}  // namespace perdure
