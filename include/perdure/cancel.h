#pragma once

#include <functional>
#include <memory>

#include "perdure/export.h"
#include "perdure/time.h"

namespace perdure {

class CancelState;

/// Tells work that it has lost its right to go on. Copies share one signal; it is given once and never taken back.
/// Thread-safe. A signal made by the default constructor is never given.
class PERDURE_EXPORT CancelSignal {
 public:
  CancelSignal() = default;
  bool cancelled() const;
  /// Runs `callback` once, on the thread that gives the signal, which must not be held up; at once, in this call, if it
  /// has been given already. Any number of callbacks may wait. They must not throw.
  void then(std::move_only_function<void()> callback) const;
  /// Blocks until it is given (true) or `timeout` has passed (false).
  [[nodiscard]] bool wait(Duration timeout) const;

 private:
  friend class CancelSource;
  std::shared_ptr<CancelState> state_;
};

}  // namespace perdure
