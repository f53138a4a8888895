#include "runtime/manual_scheduler.h"

#include "runtime/latch.h"
#include "runtime/random.h"
#include "runtime/thread_pool.h"

namespace perdure {

ManualScheduler::ManualScheduler(std::function<void()> wake) : wake_(std::move(wake)), random_state_(random_seed()) {}

void ManualScheduler::post(Task task) {
  bool wake;
  {
    MutexLock lock(mutex_);
    ready_.push_back(std::move(task));
    changed_.notify_all();
    wake = must_wake();
  }
  if (wake) wake_();
}

Executor::TimerId ManualScheduler::at(SteadyTime when, Task task) {
  TimerId id;
  bool wake = false;
  {
    MutexLock lock(mutex_);
    auto next = timers_.next();
    id = timers_.add(when, std::move(task));
    if (!next || when < *next) {
      changed_.notify_all();
      wake = must_wake();
    }
  }
  if (wake) wake_();
  return id;
}

bool ManualScheduler::cancel(TimerId timer) {
  std::optional<Task> removed;  // Dies outside of the lock.
  MutexLock lock(mutex_);
  removed = timers_.remove(timer);
  return removed.has_value();
}

bool ManualScheduler::must_wake() {
  if (woken_ || !wake_) return false;
  woken_ = true;
  return true;
}

SteadyTime ManualScheduler::now() {
  return steady_now();
}

WallTime ManualScheduler::wall_now() {
  return WallTime(std::chrono::system_clock::now().time_since_epoch());
}

std::uint64_t ManualScheduler::random() {
  return random_from(random_state_.fetch_add(kRandomStep) + kRandomStep);
}

bool ManualScheduler::runs_here() const {
  return current_scheduler() == this;
}

std::unique_ptr<Executor> ManualScheduler::lane(std::string name) {
  return std::make_unique<ThreadPool>(std::move(name), 1);
}

std::size_t ManualScheduler::poll(std::size_t most) {
  if (mark_.forked() || runs_here()) return 0;
  std::deque<Task> tasks;
  {
    MutexLock lock(mutex_);
    woken_ = false;
    timers_.take_due(steady_now(), ready_);
    while (!ready_.empty() && tasks.size() < most) {
      tasks.push_back(std::move(ready_.front()));
      ready_.pop_front();
    }
  }
  std::size_t ran = tasks.size();
  {
    RunningOn here(*this);
    while (!tasks.empty()) {
      tasks.front()();
      tasks.pop_front();
    }
  }
  bool wake;
  {
    MutexLock lock(mutex_);
    wake = !ready_.empty() && must_wake();
  }
  if (wake) wake_();
  return ran;
}

std::optional<Duration> ManualScheduler::next_due() {
  if (mark_.forked()) return std::nullopt;
  MutexLock lock(mutex_);
  if (!ready_.empty()) return Duration::zero();
  auto next = timers_.next();
  if (!next) return std::nullopt;
  return std::max(Duration::zero(), *next - steady_now());
}

void ManualScheduler::poll_or_wait(SteadyTime until) {
  {
    MutexLock lock(mutex_);
    while (ready_.empty() && steady_now() < until) {
      auto next = timers_.next();
      if (next && *next <= steady_now()) break;
      changed_.wait_until(lock, next ? std::min(*next, until) : until);
    }
  }
  poll(SIZE_MAX);
}

class ManualExecutor::Impl {
 public:
  explicit Impl(std::function<void()> wake) : scheduler(std::move(wake)) {}
  ManualScheduler scheduler;
};

ManualExecutor::ManualExecutor(std::function<void()> wake) : impl_(std::make_unique<Impl>(std::move(wake))) {}

ManualExecutor::~ManualExecutor() {
  // A lock of the parent's may be held here for ever, and what the tasks hold is the parent's too.
  if (impl_->scheduler.forked()) (void)impl_.release();
}

std::size_t ManualExecutor::poll(std::size_t most) {
  return impl_->scheduler.poll(most);
}

std::optional<Duration> ManualExecutor::next_due() const {
  return impl_->scheduler.next_due();
}

ManualScheduler& ManualExecutorAccess::scheduler(ManualExecutor& executor) {
  return executor.impl_->scheduler;
}

}  // namespace perdure
