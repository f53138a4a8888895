#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <random>

#include "base/assert.h"
#include "runtime/random.h"

namespace perdure {
namespace {

thread_local const ThreadPool* current_pool = nullptr;

}  // namespace

ThreadPool::ThreadPool(std::string name, unsigned threads) {
  check(threads > 0, "a thread pool without threads");
  std::random_device device;
  random_state_ = (std::uint64_t{device()} << 32) | device();
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
  TimerId id = ++last_timer_;
  bool is_next = timers_.empty() || when < timers_.begin()->first.first;
  timers_.emplace(TimerKey{when, id}, std::move(task));
  due_.emplace(id, when);
  // Only an idle thread waits for timers, and only a new earliest one changes how long it may sleep.
  if (is_next && idle_ > 0) wake_.notify_one();
  return id;
}

bool ThreadPool::cancel(TimerId timer) {
  MutexLock lock(mutex_);
  auto due = due_.find(timer);
  if (due == due_.end()) return false;
  timers_.erase({due->second, timer});
  due_.erase(due);
  return true;
}

SteadyTime ThreadPool::now() {
  return SteadyTime(std::chrono::steady_clock::now().time_since_epoch());
}

WallTime ThreadPool::wall_now() {
  return WallTime(std::chrono::system_clock::now().time_since_epoch());
}

std::uint64_t ThreadPool::random() {
  // Each caller takes the next state for itself, so no lock is needed.
  return random_from(random_state_.fetch_add(kRandomStep) + kRandomStep);
}

bool ThreadPool::runs_here() const {
  return current_pool == this;
}

std::unique_ptr<Executor> ThreadPool::lane(std::string name) {
  return std::make_unique<ThreadPool>(std::move(name), 1);
}

void ThreadPool::run() {
  current_pool = this;
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
      if (timers_.empty())
        wake_.wait(lock);
      else
        wake_.wait_until(lock, timers_.begin()->first.first);
      --idle_;
    }
  }
}

void ThreadPool::promote_due_timers() {
  if (timers_.empty()) return;
  SteadyTime time = now();
  while (!timers_.empty() && timers_.begin()->first.first <= time) {
    auto timer = timers_.begin();
    ready_.push_back(std::move(timer->second));
    due_.erase(timer->first.second);
    timers_.erase(timer);
  }
  // This thread takes the first; the others may be asleep.
  if (ready_.size() > 1 && idle_ > 0) wake_.notify_all();
}

}  // namespace perdure
