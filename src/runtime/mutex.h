// Mutex and condition variable with the annotations that clang's thread-safety analysis reads: a member marked
// PERDURE_GUARDED_BY(mutex_) cannot be touched without holding mutex_, checked at compile time.
#pragma once

#include <condition_variable>
#include <mutex>

#include "perdure/time.h"

#if defined(__clang__)
#define PERDURE_ATTRIBUTE(x) __attribute__((x))
#else
#define PERDURE_ATTRIBUTE(x)
#endif

#define PERDURE_GUARDED_BY(x) PERDURE_ATTRIBUTE(guarded_by(x))
#define PERDURE_REQUIRES(...) PERDURE_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define PERDURE_EXCLUDES(...) PERDURE_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace perdure {

class PERDURE_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() PERDURE_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() PERDURE_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

class PERDURE_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PERDURE_ATTRIBUTE(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  ~MutexLock() PERDURE_ATTRIBUTE(release_capability()) {}

  void unlock() PERDURE_ATTRIBUTE(release_capability()) { lock_.unlock(); }
  void lock() PERDURE_ATTRIBUTE(acquire_capability()) { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

class CondVar {
 public:
  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  /// Returns at `deadline` at the latest; both may return early without a reason.
  void wait_until(MutexLock& lock, SteadyTime deadline) {
    // The far future overflows the arithmetic of the standard library: look again in a day.
    auto until = std::min(std::chrono::steady_clock::time_point(deadline.time_since_epoch()),
                          std::chrono::steady_clock::now() + std::chrono::hours(24));
    condition_.wait_until(lock.lock_, until);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace perdure
