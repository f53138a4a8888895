// The user's side of the tick debouncer: what is asked of the handlers, and one run as both sides share it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perdure/tick.h"
#include "runtime/handler_pool.h"
#include "session/cancel_source.h"

namespace perdure {

/// One run, from its token to its end.
class TickRunState {
 public:
  TickRunState(std::string followed, Token fence, Bytes fence_row)
      : key(std::move(followed)), token(fence), row(std::move(fence_row)) {}
  TickRun run() { return TickRun(*this); }

  const std::string key;
  const Token token;
  const Bytes row;
  CancelSource cancel;
  /// Of the thread that runs the handler, until it has returned; unchanged from then on.
  std::vector<std::function<Result<void>(Transaction&)>> bodies;
  /// Of the follower: an attempt to commit its end whose outcome nobody knows. Until one is known, nobody may say that
  /// nothing was committed.
  std::optional<Error> unknown;
};

namespace debounce {

/// Answers come once, on any thread; they may come in the very call.
class TickWork {
 public:
  virtual ~TickWork() = default;
  virtual void pending(const std::string& key, std::move_only_function<void(Result<Pending>)> done) = 0;
  virtual void run(std::shared_ptr<TickRunState> run, std::move_only_function<void(Result<void>)> done) = 0;
  virtual void ended(TickEnd end) = 0;
  /// Begins nothing more, and calls `idle` once nothing runs.
  virtual void close(Task idle) = 0;
  /// Gives up whatever runs.
  virtual void leave_behind() = 0;
  /// Waits for the threads, but for those that were given up.
  virtual void join() = 0;
};

/// Plain functions on threads of a pool.
std::unique_ptr<TickWork> pool_work(Scheduler& scheduler, TickHandlers handlers, const TickOptions& options);

}  // namespace debounce
}  // namespace perdure
