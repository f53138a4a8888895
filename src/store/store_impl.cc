#include "store/store_impl.h"

#include <atomic>

#include "base/assert.h"
#include "store/report.h"

namespace perdure {
namespace {

/// Whether this thread is running a body: a transaction inside of a transaction would wait for itself.
thread_local bool in_body = false;

struct InBody {
  InBody() { in_body = true; }
  ~InBody() { in_body = before; }
  const bool before = in_body;
};

Error closed_error() {
  return {ErrorCode::kClosed, "the store was closed"};
}

Error forked_error() {
  return {ErrorCode::kInvalidArgument,
          "the store was opened before fork(), and belongs to the parent; open it again in the child"};
}

ManualScheduler* manual_of(const StoreOptions& options, const Scheduler& scheduler) {
  if (!options.executor) return nullptr;
  ManualScheduler& manual = ManualExecutorAccess::scheduler(*options.executor);
  return &manual == &scheduler ? &manual : nullptr;
}

Result<Receipt> too_late(const Call& call, const Capabilities& engine) {
  const bool waited = call.options().timeout > Duration::zero();
  if (engine.far_reads && waited && call.conflicts() == 0)
    return fail(ErrorCode::kUnavailable,
                "the store did not answer in time: its server may be away, or overloaded; try again");
  return fail(ErrorCode::kDeadline,
              "the transaction did not commit in time: its body took too long, or lost too often (" +
                  std::to_string(call.conflicts()) + " conflicts)");
}

/// Marks the thread while the body runs, wherever that is: on a pool thread, the caller's, or the commit thread.
Call::BodyFn marked(Call::BodyFn body) {
  return [body = std::move(body)](Transaction& txn) mutable {
    InBody mark;
    return body(txn);
  };
}

}  // namespace

class StoreImpl::AsyncCall final : public Call {
 public:
  using Done = std::move_only_function<void(Result<Receipt>)>;

  AsyncCall(StoreImpl& store, BodyFn body, Done done, const TransactOptions& options)
      : Call(*store.engine_, *store.watches_, store.feed(), std::move(body), options, store.deadline_of(options)),
        store_(store),
        done_(std::move(done)) {}

  /// In a task of the scheduler the first run needs no task of its own; nor anywhere, if the body is run by the commit.
  void start() {
    if (in_body || !(store_.runs_in_commit(options()) || store_.scheduler_.runs_here())) return rerun(SteadyTime{});
    auto result = store_.advance(shared_from_this());
    if (!result) return;
    // Never inside the call: callbacks that start the next transaction would pile up on the stack.
    store_.scheduler_.post(
        [self = shared_from_this(), result = std::move(*result)]() mutable { self->answer(std::move(result)); });
  }

  void answer(Result<Receipt> result) override {
    state().reset();
    // What it holds may be a handle of the user's: gone before whoever waits for the answer can drop the others, so
    // that the last one is not left to this thread of the store.
    body() = nullptr;
    if (!store_.muted_) done_(std::move(result));
    done_ = nullptr;
    store_.leave();
  }
  void rerun(SteadyTime when) override {
    auto task = [self = shared_from_this(), this] {
      if (auto result = store_.advance(self)) answer(std::move(*result));
    };
    if (when <= store_.scheduler_.now())
      store_.scheduler_.post(std::move(task));
    else
      store_.scheduler_.at(when, std::move(task));
  }
  bool runs_user_code() const override { return true; }

 private:
  StoreImpl& store_;
  Done done_;
};

/// The caller's own thread runs the body and sleeps in between.
class StoreImpl::BlockingCall final : public Call {
 public:
  BlockingCall(StoreImpl& store, BodyFn body, const TransactOptions& options)
      : Call(*store.engine_, *store.watches_, store.feed(), std::move(body), options, store.deadline_of(options)) {}

  void answer(Result<Receipt> result) override {
    MutexLock lock(mutex_);
    result_ = std::move(result);
    changed_.notify_one();
  }
  void rerun(SteadyTime when) override {
    MutexLock lock(mutex_);
    rerun_at_ = when;
    changed_.notify_one();
  }
  bool runs_user_code() const override { return false; }

  Result<Receipt> drive(StoreImpl& store) {
    for (;;) {
      if (auto result = store.advance(shared_from_this())) return std::move(*result);
      MutexLock lock(mutex_);
      while (!result_ && !rerun_at_) changed_.wait(lock);
      while (!result_ && store.scheduler_.now() < *rerun_at_) changed_.wait_until(lock, *rerun_at_);
      if (result_) return std::move(*result_);
      rerun_at_.reset();
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<Result<Receipt>> result_ PERDURE_GUARDED_BY(mutex_);
  std::optional<SteadyTime> rerun_at_ PERDURE_GUARDED_BY(mutex_);
};

class StoreImpl::Callbacks final : public Executor {
 public:
  explicit Callbacks(StoreImpl& store) : store_(store) {}

  void post(Task task) override {
    {
      MutexLock lock(store_.mutex_);
      ++store_.inside_;
    }
    store_.scheduler_.post([this, task = std::move(task)]() mutable {
      if (!store_.muted_) task();
      task = nullptr;
      store_.leave();
    });
  }
  TimerId at(SteadyTime, Task) override { die("watches have no timers"); }
  bool cancel(TimerId) override { die("watches have no timers"); }

 private:
  StoreImpl& store_;
};

StoreImpl::StoreImpl(std::unique_ptr<Engine> engine, Scheduler& scheduler, std::unique_ptr<Scheduler> owned,
                     StoreOptions options)
    : options_(std::move(options)),
      limits_(engine->capabilities().limits),
      blocking_calls_(engine->capabilities().blocking_calls),
      owned_scheduler_(std::move(owned)),
      scheduler_(scheduler),
      manual_(manual_of(options_, scheduler)),
      callbacks_(std::make_unique<Callbacks>(*this)),
      watches_(std::make_shared<WatchRegistry>(*callbacks_, options_.watches_max, fork_mark_)),
      engine_(std::move(engine)),
      committer_(std::make_unique<Committer>(*engine_, scheduler_, *watches_, options_)) {
  engine_->listen(watches_.get());
}

StoreImpl::~StoreImpl() {
  auto closed = close(Duration::max());
  check(closed.has_value(), closed ? "" : "the last handle of a store was dropped: " + closed.error().message);
}

std::shared_ptr<StoreImpl> StoreImpl::shared(std::unique_ptr<StoreImpl> store) {
  return {store.release(), [](StoreImpl* impl) {
            if (!impl->fork_mark_->forked()) delete impl;
          }};
}

bool StoreImpl::must_not_block() const {
  return in_body || manual_ || !blocking_calls_ || scheduler_.runs_here();
}

Result<Receipt> StoreImpl::run(Call::BodyFn body, const TransactOptions& options) {
  if (in_body)
    return fail(ErrorCode::kInvalidArgument,
                "transact was called inside the body of a transaction; use the transaction that the body was given");
  if (InSink::here())
    return fail(ErrorCode::kInvalidArgument, "transact was called in a sink of the store, which must not use it");
  if (!blocking_calls_)
    return fail(ErrorCode::kInvalidArgument,
                "transact was called on a simulated store, where nothing may block; use transact_async");
  if (auto entered = enter(); !entered) return std::unexpected(std::move(entered.error()));
  auto result = std::make_shared<BlockingCall>(*this, marked(std::move(body)), options)->drive(*this);
  leave();
  return result;
}

void StoreImpl::run_async(Call::BodyFn body, std::move_only_function<void(Result<Receipt>)> done,
                          const TransactOptions& options) {
  if (auto entered = enter(); !entered) {
    // Inside the call, for the scheduler may be gone with the store.
    done(std::unexpected(std::move(entered.error())));
    return;
  }
  auto call = std::make_shared<AsyncCall>(*this, marked(std::move(body)), std::move(done), options);
  call->start();
}

bool StoreImpl::runs_in_commit(const TransactOptions& options) const {
  const Capabilities& engine = engine_->capabilities();
  return options.body == Body::kShort && !engine.remote && !engine.far_reads;
}

std::optional<Result<Receipt>> StoreImpl::advance(const std::shared_ptr<Call>& call) {
  if (muted_) return std::unexpected(closed_error());
  if (auto failure = committer_->failure()) return std::unexpected(std::move(*failure));
  if (scheduler_.now() >= call->deadline()) return too_late(*call, engine_->capabilities());
  if (runs_in_commit(call->options())) {
    committer_->submit(call);
    return std::nullopt;
  }
  TransactionState& state = call->state();
  auto ran = state.run(call->body());
  if (!ran && state.beaten()) {
    call->count_conflict();
    count(options_, Metric::kConflicts, 1);
    call->rerun(scheduler_.now() + std::chrono::microseconds(scheduler_.random() % 1000));
    return std::nullopt;
  }
  if (!ran && state.unanswered()) return std::unexpected(std::move(ran.error()));
  state.release_snapshot();
  if (ran && !state.writes().empty()) {
    // Here it surely has no effect; once submitted, that might no longer be known.
    if (scheduler_.now() >= call->deadline()) return too_late(*call, engine_->capabilities());
    committer_->submit(call);
    return std::nullopt;
  }
  if (!state.epoch() || call->fresh() || engine_->is_durable(*state.epoch())) return finish_read(*call, std::move(ran));
  wait_until_durable(call, std::move(ran));
  return std::nullopt;
}

void StoreImpl::wait_until_durable(const std::shared_ptr<Call>& call, Result<void> ran) {
  // The deadline holds the call only through this, and so not for longer than it takes.
  struct Waiting {
    std::atomic<bool> over = false;
    std::shared_ptr<Call> call;
    Result<void> ran;
  };
  auto waiting = std::make_shared<Waiting>();
  waiting->call = call;
  waiting->ran = std::move(ran);
  auto answer = [this, waiting](Result<void> durable) {
    if (waiting->over.exchange(true)) return;
    auto waiter = std::move(waiting->call);
    if (!durable && durable.error().code == ErrorCode::kConflict) {
      waiter->note_fresh();
      return waiter->rerun(SteadyTime{});
    }
    Result<void> outcome = durable ? std::move(waiting->ran) : std::move(durable);
    if (!waiter->runs_user_code()) return waiter->answer(finish_read(*waiter, std::move(outcome)));
    scheduler_.post([waiter, outcome = std::move(outcome)] { waiter->answer(finish_read(*waiter, outcome)); });
  };
  auto timer = committer_->at_deadline(call->deadline(), [answer] {
    answer(fail(
        ErrorCode::kUnavailable,
        "what was read is not confirmed yet: another process may hold the store, or its server is away; try again"));
  });
  engine_->when_durable(*call->state().epoch(), [this, answer, timer](Result<void> durable) mutable {
    committer_->forget_deadline(timer);
    answer(std::move(durable));
  });
}

Result<Receipt> StoreImpl::finish_read(Call& call, Result<void> outcome) {
  if (!outcome) {
    call.state().reset();
    return std::unexpected(std::move(outcome.error()));
  }
  call.state().arm_watches(Version{});
  return Receipt{};
}

SteadyTime StoreImpl::deadline_of(const TransactOptions& options) {
  SteadyTime now = scheduler_.now();
  return options.timeout > SteadyTime::max() - now ? SteadyTime::max() : now + options.timeout;
}

Result<StoreImpl::Use> StoreImpl::use() {
  if (auto entered = enter(); !entered) return std::unexpected(std::move(entered.error()));
  return Use(this);
}

std::uint64_t StoreImpl::before_close(Task task) {
  MutexLock lock(mutex_);
  if (phase_ != Phase::kOpen) return 0;
  before_close_.emplace(++last_before_close_, std::move(task));
  return last_before_close_;
}

void StoreImpl::forget_before_close(std::uint64_t number) {
  MutexLock lock(mutex_);
  before_close_.erase(number);
}

Result<void> StoreImpl::enter() {
  // Before the lock, which a thread of the parent may have held when the child was made.
  if (fork_mark_->forked()) return std::unexpected(forked_error());
  MutexLock lock(mutex_);
  if (phase_ != Phase::kOpen || muted_) return std::unexpected(closed_error());
  ++inside_;
  return {};
}

void StoreImpl::leave() {
  MutexLock lock(mutex_);
  if (--inside_ > 0) return;
  left_.notify_all();
  // Whoever closes such a store waits for tasks, since it has to run them.
  if (manual_ && phase_ != Phase::kOpen) manual_->post([] {});
}

// Closing.

Result<void> StoreImpl::may_close() const {
  auto refuse = [](const std::string& where) {
    return fail(ErrorCode::kInvalidArgument,
                "close was called in " + where + " of the store, and would wait for itself");
  };
  if (in_body) return refuse("a body");
  if (InSink::here()) return refuse("a sink");
  if (current_scheduler() == &scheduler_) return refuse("a callback");
  return {};
}

Result<void> StoreImpl::close(Duration grace) {
  if (fork_mark_->forked()) return std::unexpected(forked_error());
  if (auto allowed = may_close(); !allowed) return allowed;
  SteadyTime until = deadline_after(grace);
  refuse_new_calls();
  for (;;) {
    if (!drain(until)) return still_inside();
    MutexLock lock(mutex_);
    if (phase_ == Phase::kReleased) return {};
    if (phase_ == Phase::kClosing) {
      phase_ = Phase::kReleasing;
      break;
    }
    // Another thread is at it, and gives up if a last callback takes too long for it.
    if (steady_now() >= until) return fail(ErrorCode::kDeadline, "another thread is still closing the store");
    left_.wait_until(lock, until);
  }
  engine_->listen(nullptr);
  watches_->cancel_all();
  // A watch that fired until then has put a callback inside.
  if (!drain(until)) {
    enter_phase(Phase::kClosing);
    return still_inside();
  }
  // Without the lock: threads are joined, and a callback on one of them may be calling the store just now, to be
  // refused.
  release_all();
  enter_phase(Phase::kReleased);
  return {};
}

void StoreImpl::refuse_new_calls() {
  std::map<std::uint64_t, Task> tasks;
  {
    MutexLock lock(mutex_);
    if (phase_ == Phase::kOpen) phase_ = Phase::kClosing;
    tasks.swap(before_close_);
  }
  for (auto& [number, task] : tasks) task();
}

void StoreImpl::enter_phase(Phase phase) {
  MutexLock lock(mutex_);
  phase_ = phase;
  left_.notify_all();
}

Result<void> StoreImpl::still_inside() {
  MutexLock lock(mutex_);
  return fail(ErrorCode::kDeadline, "the store takes no more calls, but " + std::to_string(inside_) +
                                        " are still under way; close it again to wait for them");
}

bool StoreImpl::drain(SteadyTime until) {
  MutexLock lock(mutex_);
  while (inside_ > 0) {
    if (steady_now() >= until) return false;
    if (manual_) {
      lock.unlock();
      manual_->poll_or_wait(until);
      lock.lock();
    } else {
      left_.wait_until(lock, until);
    }
  }
  return true;
}

void StoreImpl::release_all() {
  committer_->stop();
  engine_.reset();
  committer_.reset();
  owned_scheduler_.reset();
  log(options_, LogLevel::kInfo, "store", "the store is closed");
}

}  // namespace perdure
