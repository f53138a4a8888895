#include "perdure/cancel.h"

#include "session/cancel_source.h"

namespace perdure {

void CancelState::give() {
  std::vector<Task> callbacks;
  {
    MutexLock lock(mutex_);
    if (given_ || dropped_) return;
    given_ = true;
    callbacks.swap(callbacks_);
  }
  event_.set();
  for (Task& callback : callbacks) callback();
}

void CancelState::drop() {
  std::vector<Task> callbacks;  // Die outside of the lock.
  MutexLock lock(mutex_);
  dropped_ = true;
  callbacks.swap(callbacks_);
}

void CancelState::then(Task callback) {
  {
    MutexLock lock(mutex_);
    if (!given_) {
      if (!dropped_) callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

bool CancelSignal::cancelled() const {
  return state_ && state_->given();
}

void CancelSignal::then(std::move_only_function<void()> callback) const {
  if (state_) state_->then(std::move(callback));
}

bool CancelSignal::wait(Duration timeout) const {
  if (state_) return state_->wait(timeout);
  Latch never;
  return never.wait_for(timeout);
}

}  // namespace perdure
