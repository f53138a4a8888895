#pragma once

#include <vector>

#include "perdure/cancel.h"
#include "runtime/latch.h"
#include "runtime/scheduler.h"

namespace perdure {

class CancelState {
 public:
  void give();
  /// It will not be given any more: forgets what waits for it, which may well hold the lease itself.
  void drop();
  bool given() { return event_.is_set(); }
  void then(Task callback);
  bool wait(Duration timeout) { return event_.wait_for(timeout); }

 private:
  Latch event_;
  Mutex mutex_;
  bool given_ PERDURE_GUARDED_BY(mutex_) = false;
  bool dropped_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<Task> callbacks_ PERDURE_GUARDED_BY(mutex_);
};

/// The side that gives the signal.
class CancelSource {
 public:
  CancelSource() { signal_.state_ = std::make_shared<CancelState>(); }
  /// Idempotent. Runs what waits for it, so no lock may be held.
  void cancel() { signal_.state_->give(); }
  void drop() { signal_.state_->drop(); }
  const CancelSignal& signal() const { return signal_; }

 private:
  CancelSignal signal_;
};

}  // namespace perdure
