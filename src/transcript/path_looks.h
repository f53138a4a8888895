// Looking at the paths that hooks name before anything is kept of them.
//
// A path may lead to a file system that does not answer: a server that is gone, a process that was stopped. Whoever
// looks there waits for as long as that lasts, and nothing ends it. So looks have a thread of their own and some time;
// once that is over, the answer is that nobody knows. While a look hangs no other is begun.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "perdure/error.h"
#include "runtime/handler_pool.h"

namespace perdure::transcript {

/// Thread-safe. Looks that hang are left behind when it goes.
class PathLooks {
 public:
  using Look = std::function<Result<void>(const std::string& path)>;
  using Found = std::move_only_function<void(Result<void>)>;

  /// `look` may outlive it, in a thread that was left behind.
  PathLooks(Scheduler& scheduler, Look look);
  ~PathLooks();
  PathLooks(const PathLooks&) = delete;
  PathLooks& operator=(const PathLooks&) = delete;

  /// Answers once, on any thread, or in this very call. Errors: of `look`; kUnavailable if it takes too long.
  void look(std::string path, Found found);

  /// Far more than a file system takes that answers at all.
  static constexpr Duration kTime = std::chrono::seconds(1);

 private:
  Scheduler& scheduler_;
  const std::shared_ptr<const Look> look_;
  const std::shared_ptr<HandlerPool> pool_;
};

}  // namespace perdure::transcript
