#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <random>

#include "base/assert.h"
#include "runtime/latch.h"
#include "runtime/random.h"

namespace perdure {
namespace {

thread_local const Scheduler* current = nullptr;

}  // namespace

const Scheduler* current_scheduler() {
  return current;
}

RunningOn::RunningOn(const Scheduler& scheduler) : before_(current) {
  current = &scheduler;
}

RunningOn::~RunningOn() {
  current = before_;
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

ThreadPool::ThreadPool(std::string name, unsigned threads) : random_state_(random_seed()) {
  check(threads > 0, "a thread pool without threads");
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { run(); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

unsigned ThreadPool::cores() {
  return std::max(1u, std::thread::hardware_concurrency());
}

void ThreadPool::post(Task task) {
  // Notifying inside the lock: once it is released the task may run, and end with the destruction of this pool.
  MutexLock lock(mutex_);
  ready_.push_back(std::move(task));
  if (idle_ > 0) wake_.notify_one();
}

Executor::TimerId ThreadPool::at(SteadyTime when, Task task) {
  MutexLock lock(mutex_);
  auto next = timers_.next();
  TimerId id = timers_.add(when, std::move(task));
  // Only an idle thread waits for timers, and only a new earliest one changes how long it may sleep.
  if ((!next || when < *next) && idle_ > 0) wake_.notify_one();
  return id;
}

bool ThreadPool::cancel(TimerId timer) {
  std::optional<Task> removed;  // Dies outside of the lock.
  MutexLock lock(mutex_);
  removed = timers_.remove(timer);
  return removed.has_value();
}

SteadyTime ThreadPool::now() {
  return steady_now();
}

WallTime ThreadPool::wall_now() {
  return WallTime(std::chrono::system_clock::now().time_since_epoch());
}

std::uint64_t ThreadPool::random() {
  // Each caller takes the next state for itself, so no lock is needed.
  return random_from(random_state_.fetch_add(kRandomStep) + kRandomStep);
}

bool ThreadPool::runs_here() const {
  return current == this;
}

std::unique_ptr<Executor> ThreadPool::lane(std::string name) {
  return std::make_unique<ThreadPool>(std::move(name), 1);
}

void ThreadPool::run() {
  RunningOn here(*this);
  // Timers of tens of microseconds are set here; the kernel's default slack alone is 50.
  prctl(PR_SET_TIMERSLACK, 1000);
  MutexLock lock(mutex_);
  for (;;) {
    promote_due_timers();
    if (!ready_.empty()) {
      Task task = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // What the task owns must die outside of the lock too.
      lock.lock();
    } else if (stopping_) {
      return;
    } else {
      ++idle_;
      if (auto next = timers_.next())
        wake_.wait_until(lock, *next);
      else
        wake_.wait(lock);
      --idle_;
    }
  }
}

void ThreadPool::promote_due_timers() {
  if (!timers_.next()) return;
  timers_.take_due(now(), ready_);
  // This thread takes the first; the others may be asleep.
  if (ready_.size() > 1 && idle_ > 0) wake_.notify_all();
}

}  // namespace perdure
