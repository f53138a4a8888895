// For a host that has a loop of its own: perdure's callbacks, and the bodies of asynchronous transactions, run when and
// where the host polls, and on no other thread.
//
//   int bell = eventfd(0, EFD_NONBLOCK);
//   auto executor = std::make_shared<ManualExecutor>([bell] { eventfd_write(bell, 1); });
//   auto store = Store::open("lmdb:./data", {.executor = executor});
//   ... when `bell` is readable in the loop, or next_due() has passed:  executor->poll();
//
// The threads that can only block in the kernel stay: an LMDB store has one that commits, one that keeps deadlines, and
// two that listen to other processes. None of them runs a callback, nor a body but those of Body::kShort; the sinks of
// StoreOptions are called on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "perdure/export.h"
#include "perdure/time.h"

namespace perdure {

/// Runs what the stores that were opened with it have to run. Thread-safe; but as it is for one loop, everything on it
/// runs one after another only if one thread polls. Stores keep it alive.
class PERDURE_EXPORT ManualExecutor {
 public:
  /// `wake` is called, on any thread, when there is something to poll after there was nothing, and when next_due()
  /// comes nearer. It must only signal the loop: not poll, not use a store, not block, not throw.
  explicit ManualExecutor(std::function<void()> wake = {});
  /// What was not polled is dropped; no store uses it any more.
  ~ManualExecutor();
  ManualExecutor(const ManualExecutor&) = delete;
  ManualExecutor& operator=(const ManualExecutor&) = delete;

  /// Runs what is ready, at most `most` of it; answers how many. What becomes ready meanwhile is left for the next
  /// time, and `wake` was called for it. Never waits. Inside of what it runs it does nothing and answers 0, as in a
  /// child of fork().
  std::size_t poll(std::size_t most = SIZE_MAX);

  /// How long until there is something to run: zero if there is already, nothing if only `wake` will tell.
  std::optional<Duration> next_due() const;

 private:
  friend struct ManualExecutorAccess;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdure
