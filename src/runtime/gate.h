#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/latch.h"
#include "runtime/mutex.h"

namespace perdure {

/// Stands before an object that timers and callbacks come back to: they enter while it is open, and leave again.
class Gate {
 public:
  /// Being inside; leaves when it goes. Keeps `owner`, the object that the gate is part of, alive.
  class Use {
   public:
    Use() = default;
    Use(std::shared_ptr<void> owner, Gate& gate) : owner_(std::move(owner)), gate_(&gate) {}
    Use(Use&& other) noexcept : owner_(std::move(other.owner_)), gate_(std::exchange(other.gate_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (gate_) gate_->leave();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    std::shared_ptr<void> owner_;
    Gate* gate_ = nullptr;
  };

  /// Empty once the gate is closed.
  Use enter(std::shared_ptr<void> owner) {
    MutexLock lock(mutex_);
    if (closed_) return {};
    ++inside_;
    return Use(std::move(owner), *this);
  }

  /// Lets nobody in any more. Those who are inside stay.
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }

  /// Blocks until nobody is inside.
  void wait_until_empty() {
    MutexLock lock(mutex_);
    while (inside_ > 0) left_.wait(lock);
  }
  /// The same for so long at most: whether nobody is.
  bool wait_until_empty(Duration at_most) {
    SteadyTime deadline = deadline_after(at_most);
    MutexLock lock(mutex_);
    while (inside_ > 0 && steady_now() < deadline) left_.wait_until(lock, deadline);
    return inside_ == 0;
  }

 private:
  void leave() {
    MutexLock lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }

  Mutex mutex_;
  CondVar left_;
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  std::size_t inside_ PERDURE_GUARDED_BY(mutex_) = 0;
};

}  // namespace perdure
