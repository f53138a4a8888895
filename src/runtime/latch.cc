#include "runtime/latch.h"

namespace perdure {

SteadyTime steady_now() {
  return SteadyTime(std::chrono::steady_clock::now().time_since_epoch());
}

SteadyTime deadline_after(Duration duration) {
  SteadyTime now = steady_now();
  return duration > SteadyTime::max() - now ? SteadyTime::max() : now + duration;
}

void Latch::set() {
  // Notifying inside the lock keeps this object alive until the notification is done: a waiter may destroy it as soon
  // as it sees the flag.
  MutexLock lock(mutex_);
  set_ = true;
  changed_.notify_all();
}

bool Latch::is_set() {
  MutexLock lock(mutex_);
  return set_;
}

void Latch::wait() {
  MutexLock lock(mutex_);
  while (!set_) changed_.wait(lock);
}

bool Latch::wait_until(SteadyTime deadline) {
  MutexLock lock(mutex_);
  while (!set_) {
    if (steady_now() >= deadline) return false;
    changed_.wait_until(lock, deadline);
  }
  return true;
}

bool Latch::wait_for(Duration duration) {
  return wait_until(deadline_after(duration));
}

}  // namespace perdure
