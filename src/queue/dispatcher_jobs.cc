// The jobs of a dispatcher: from a claim to a settlement.
#include "base/seeded_bug.h"
#include "queue/dispatcher.h"
#include "queue/inspect.h"
#include "queue/queue_impl.h"
#include "runtime/guarded_handler.h"

namespace perdure::queue {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds(100);
/// Handlers of one worker that may hang without taking a place.
constexpr std::size_t kHangingMax = 16;

/// What a handler returned, to be kept; whatever it is, the event is completed.
Bytes encode_result(const Value& result) {
  if (result.is_null() || !result.check("the result") || result.encoded_size() > kResultBytesMax) return {};
  return result.encode();
}

}  // namespace

// Beginning.

void Dispatcher::start(std::vector<JobPtr> jobs) {
  {
    MutexLock lock(mutex_);
    if (releasing_) {
      for (const JobPtr& job : jobs) {
        returned(*job);
        decide(job, {job, Settlement::Released{}});
      }
      jobs.clear();
    }
  }
  std::vector<HandlerPool::Job> now;
  now.reserve(jobs.size());
  for (const JobPtr& job : jobs) {
    if (job->loaded.row.names().apart_bytes > 0)
      load_value(job);
    else
      now.push_back(pool_job(job));
  }
  if (!now.empty()) home_.handlers().run_many(std::move(now));
}

void Dispatcher::load_value(const JobPtr& job) {
  home_.transact(
      [job](Transaction& txn) -> Result<Bytes> {
        SystemAccess access(txn);
        Bytes whole;
        for (const Row& row : txn.snapshot().get_range(tuple::extensions(job->loaded.key))) whole.append(row.value);
        return whole;
      },
      [self = shared_from_this(), job](Result<Bytes> value, Receipt) {
        if (!value && value.error().code == ErrorCode::kClosed) return;
        if (!self->may_run(*job)) return self->pump();
        // The store's troubles are no failure of the event.
        if (!value && value.error().retryable()) {
          self->home_.at(self->home_.scheduler().now() + kRetry, [self, job] { self->load_value(job); });
          return;
        }
        if (!value) return self->finished(job, std::unexpected(std::move(value.error())));
        auto given = Given::decode(job->loaded.row.given());
        if (!given) return self->finished(job, std::unexpected(std::move(given.error())));
        given->apart_bytes = 0;
        given->value = std::move(*value);
        job->loaded.row.set_given(given->encode());
        self->home_.handlers().run(self->pool_job(job));
      },
      {});
}

bool Dispatcher::may_run(JobState& job) {
  MutexLock lock(mutex_);
  if (!job.decided) return true;
  returned(job);
  return false;
}

void Dispatcher::run(JobState& job, Result<Value>& result) const {
  auto given = Given::decode(job.loaded.row.given());
  auto value = given ? Value::decode(given->value) : Value();
  if (!given || !value) {
    result = std::unexpected(given ? value.error() : given.error());
    return;
  }
  job.event = describe(space_, job.loaded.id, job.loaded.row, *given, WorkerState::kRun, job.token.store);
  job.event.value = std::move(*value);
  Job shown = job.job();
  result = guarded_handler([&] { return (*handler_)(shown); });
}

HandlerPool::Job Dispatcher::pool_job(const JobPtr& job) {
  auto self = shared_from_this();
  auto result = std::make_shared<Result<Value>>();
  // Nothing of the node is touched by a handler that comes back when that is gone.
  return {.run =
              [self, job, result,
               finish = home_.guarded([self, job, result] { self->finished(job, std::move(*result)); })]() mutable {
                self->run(*job, *result);
                finish();
              },
          .limit = options_.timeout,
          .overrun = options_.timeout == Duration::max() ? Task() : home_.guarded([self, job] { self->overrun(job); }),
          .dropped = home_.guarded([self, job] {
            {
              MutexLock lock(self->mutex_);
              self->returned(*job);
              self->decide(job, {job, Settlement::Released{}});
            }
            self->pump();
          })};
}

// Ending.

void Dispatcher::returned(JobState& job) {
  if (!job.running) return;
  job.running = false;
  --running_;
}

void Dispatcher::decide(const JobPtr& job, Settlement settlement) {
  if (job->decided) return;
  job->decided = true;
  pending_.push_back(std::move(settlement));
}

Settlement Dispatcher::failed(const JobPtr& job, std::string error) {
  return {job, Failing{std::move(error), job->on_failure, options_.retry, home_.scheduler().random()}};
}

void Dispatcher::finished(const JobPtr& job, Result<Value> result) {
  bool alone = false;
  std::optional<SentTurn> sent;
  Bytes encoded = result ? encode_result(*result) : Bytes();
  {
    MutexLock lock(mutex_);
    returned(*job);
    if (std::exchange(job->given_up, false)) --hanging_;
    if (!job->decided && result && !job->bodies.empty()) {
      job->decided = alone = true;
      ++alone_;
    } else if (result) {
      decide(job, {job, Settlement::Completed{encoded}});
    } else {
      decide(job, failed(job, result.error().code == ErrorCode::kHandlerFailed ? result.error().message
                                                                               : to_string(result.error())));
    }
    sent = next_turn();
  }
  if (alone) settle_alone(job, std::move(encoded));
  if (sent) {
    send(std::move(*sent));
    pump();
  }
  job->cancel.drop();
}

void Dispatcher::overrun(const JobPtr& job) {
  {
    MutexLock lock(mutex_);
    job->given_up = true;
    // Threads that hang are replaced up to a bound: one worker must not use up what all have.
    if (++hanging_ <= kHangingMax) returned(*job);
    auto seconds = std::chrono::duration<double>(options_.timeout).count();
    decide(job, {job, Failing{"the handler ran for longer than its timeout of " + std::to_string(seconds) + " s",
                              {},
                              options_.retry,
                              home_.scheduler().random()}});
  }
  job->cancel.cancel();
  pump();
}

void Dispatcher::settle_alone(const JobPtr& job, Bytes result) {
  if (seeded(SeededBug::kSplitCompletion) && !job->bodies.empty())
    return home_.transact(
        [bodies = std::exchange(job->bodies, {})](Transaction& txn) -> Result<void> {
          for (const auto& body : bodies)
            if (auto done = body(txn); !done) return done;
          return {};
        },
        [self = shared_from_this(), job, result](const Result<void>&, Receipt) { self->settle_alone(job, result); },
        {});
  struct Attempt {
    Settlement settlement;
    std::optional<Error> refused;  ///< By one of the bodies.
  };
  auto attempt = std::make_shared<Attempt>(Attempt{{job, Settlement::Completed{result}}, {}});
  home_.transact(
      [self = shared_from_this(), job, attempt](Transaction& txn) -> Result<Standing> {
        attempt->refused.reset();
        Standing standing = settle(txn, self->space_, attempt->settlement, self->home_.now());
        if (standing != Standing::kHeld) return standing;
        for (const auto& body : job->bodies) {
          auto done = body(txn);
          if (done) continue;
          attempt->refused = done.error();
          return std::unexpected(std::move(done.error()));
        }
        return standing;
      },
      [self = shared_from_this(), job, attempt, result](Result<Standing> standing, Receipt) mutable {
        if (!standing && standing.error().code == ErrorCode::kClosed) return;
        bool again = false;
        {
          MutexLock lock(self->mutex_);
          bool ours = self->session_ == job->session;
          bool hopeless =
              !standing &&
              (attempt->refused || (!standing.error().retryable() && standing.error().outcome() == Outcome::kNone));
          again = !standing && !hopeless && ours && !seeded(SeededBug::kSettleOnce);
          if (!again) --self->alone_;
          if (standing) self->forget(job);
          if (hopeless && ours)
            self->pending_.push_back(self->failed(job, to_string(attempt->refused.value_or(standing.error()))));
        }
        if (again) {
          self->home_.at(self->home_.scheduler().now() + kRetry, [self, job, result = std::move(result)]() mutable {
            self->settle_alone(job, std::move(result));
          });
          return;
        }
        if (standing && *standing == Standing::kStale) self->stale(job);
        self->pump();
        self->tell_if_settled();
      },
      {.reserve = Reserve::kMayUse});
}

void Dispatcher::stale(const JobPtr& job) {
  home_.warn("an attempt ended when its claim was not held any more, and changed nothing",
             space_ + "/" + worker_ + "/" + to_string(job->loaded.id));
}

void Dispatcher::release_all() {
  std::vector<JobPtr> jobs;
  {
    MutexLock lock(mutex_);
    releasing_ = true;
    for (auto& [token, job] : jobs_) {
      if (job->decided) continue;
      jobs.push_back(job);
      decide(job, {job, Settlement::Released{}});
    }
  }
  for (const JobPtr& job : jobs) job->cancel.cancel();
  pump();
}

void Dispatcher::check_claims() {
  std::vector<JobPtr> jobs;
  {
    MutexLock lock(mutex_);
    for (auto& [token, job] : jobs_) jobs.push_back(job);
  }
  if (jobs.empty()) return;
  home_.transact(
      [jobs, space = space_](Transaction& txn) {
        SystemAccess access(txn);
        Reader snapshot = txn.snapshot();
        std::vector<JobPtr> lost;
        for (const JobPtr& job : jobs)
          if (find_claim(snapshot, space, {job->loaded.id, job->token.stamp}).standing != Standing::kHeld)
            lost.push_back(job);
        return lost;
      },
      [self = shared_from_this()](Result<std::vector<JobPtr>> lost, Receipt) {
        if (!lost && lost.error().code == ErrorCode::kClosed) return;
        if (!lost) {
          self->home_.at(self->home_.scheduler().now() + kRetry, [self] { self->check_claims(); });
          return;
        }
        {
          MutexLock lock(self->mutex_);
          for (const JobPtr& job : *lost) {
            if (job->decided) continue;
            job->decided = true;
            self->forget(job);
          }
        }
        for (const JobPtr& job : *lost) job->cancel.cancel();
        self->tell_if_settled();
      },
      {});
}

}  // namespace perdure::queue
