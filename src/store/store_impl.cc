#include "store/store_impl.h"

namespace perdure {
namespace {

/// Whether this thread is running a body: a transaction inside of a transaction would wait for itself.
thread_local bool in_body = false;

struct InBody {
  InBody() { in_body = true; }
  ~InBody() { in_body = false; }
};

Error closed_error() {
  return {ErrorCode::kClosed, "the store was closed"};
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
      : Call(*store.engine_, store.watches_, std::move(body), options, store.deadline_of(options)),
        store_(store),
        done_(std::move(done)) {}

  void answer(Result<Receipt> result) override {
    state().reset();
    done_(std::move(result));
    done_ = nullptr;
    body() = nullptr;
    store_.leave();
  }
  void rerun(SteadyTime when) override {
    auto task = [self = shared_from_this(), this] { store_.advance(self); };
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
      : Call(*store.engine_, store.watches_, std::move(body), options, store.deadline_of(options)) {}

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
      store.advance(shared_from_this());
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

StoreImpl::StoreImpl(std::unique_ptr<Engine> engine, Scheduler& scheduler, std::unique_ptr<Scheduler> owned,
                     StoreOptions options)
    : options_(std::move(options)),
      limits_(engine->capabilities().limits),
      owned_scheduler_(std::move(owned)),
      scheduler_(scheduler),
      watches_(scheduler, options_.watches_max),
      engine_(std::move(engine)),
      committer_(std::make_unique<Committer>(*engine_, scheduler_, watches_, options_)) {
  engine_->listen(&watches_);
}

StoreImpl::~StoreImpl() {
  close();
}

Result<Receipt> StoreImpl::run(Call::BodyFn body, const TransactOptions& options) {
  if (in_body)
    return fail(ErrorCode::kInvalidArgument,
                "transact was called inside the body of a transaction; use the transaction that the body was given");
  if (!enter()) return std::unexpected(closed_error());
  auto result = std::make_shared<BlockingCall>(*this, marked(std::move(body)), options)->drive(*this);
  leave();
  return result;
}

void StoreImpl::run_async(Call::BodyFn body, std::move_only_function<void(Result<Receipt>)> done,
                          const TransactOptions& options) {
  if (!enter()) {
    // Inside the call, for the scheduler may be gone with the store.
    done(std::unexpected(closed_error()));
    return;
  }
  auto call = std::make_shared<AsyncCall>(*this, marked(std::move(body)), std::move(done), options);
  call->rerun(SteadyTime{});
}

void StoreImpl::advance(const std::shared_ptr<Call>& call) {
  if (auto failure = committer_->failure()) return call->answer(std::unexpected(std::move(*failure)));
  if (scheduler_.now() >= call->deadline()) {
    return call->answer(fail(ErrorCode::kDeadline, "the transaction did not commit in time: it lost " +
                                                       std::to_string(call->conflicts()) + " conflicts"));
  }
  if (call->options().body == Body::kShort && !engine_->capabilities().remote) return committer_->submit(call);

  TransactionState& state = call->state();
  auto ran = state.run(call->body());
  if (!ran && ran.error().code == ErrorCode::kConflict) {
    call->count_conflict();
    return call->rerun(scheduler_.now() + std::chrono::microseconds(scheduler_.random() % 1000));
  }
  if (!ran) return call->answer(std::unexpected(std::move(ran.error())));
  if (!state.writes().empty()) {
    state.release_snapshot();
    return committer_->submit(call);
  }
  state.release_snapshot();
  if (!state.epoch() || engine_->is_durable(*state.epoch())) return finish_read(*call, {});
  engine_->when_durable(*state.epoch(), [this, call](Result<void> durable) {
    if (!call->runs_user_code()) return finish_read(*call, std::move(durable));
    scheduler_.post([call, durable] { finish_read(*call, durable); });
  });
}

void StoreImpl::finish_read(Call& call, Result<void> durable) {
  if (!durable) return call.answer(std::unexpected(std::move(durable.error())));
  call.state().arm_watches(Version{});
  call.answer(Receipt{});
}

SteadyTime StoreImpl::deadline_of(const TransactOptions& options) {
  SteadyTime now = scheduler_.now();
  return options.timeout > SteadyTime::max() - now ? SteadyTime::max() : now + options.timeout;
}

Result<StoreImpl::Use> StoreImpl::use() {
  if (!enter()) return std::unexpected(closed_error());
  return Use(this);
}

bool StoreImpl::enter() {
  MutexLock lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

void StoreImpl::leave() {
  MutexLock lock(mutex_);
  if (--inside_ == 0) left_.notify_all();
}

void StoreImpl::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  while (inside_ > 0) left_.wait(lock);
  if (torn_down_) return;
  torn_down_ = true;
  engine_->listen(nullptr);
  watches_.cancel_all();
  engine_.reset();
  committer_.reset();
  owned_scheduler_.reset();
}

}  // namespace perdure
