#pragma once

#include <optional>

#include "runtime/mutex.h"

namespace perdure {

/// On the clock that Latch and CondVar wait by, which is that of every scheduler with threads.
SteadyTime steady_now();
/// The moment that is `duration` from now, or the end of time.
SteadyTime deadline_after(Duration duration);

/// Something that happens once, and that a thread can block on: how the blocking forms of the API wait for the
/// asynchronous ones. perdure's own parts never block, so simulation has no use for it.
class Latch {
 public:
  void set();
  bool is_set();
  void wait();
  /// Whether it happened by then.
  bool wait_until(SteadyTime deadline);
  bool wait_for(Duration duration);

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ PERDURE_GUARDED_BY(mutex_) = false;
};

/// A result that arrives once.
template <class T>
class Promise {
 public:
  void set(T value) {
    value_ = std::move(value);
    latch_.set();
  }
  T take() {
    latch_.wait();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Latch latch_;
};

}  // namespace perdure
