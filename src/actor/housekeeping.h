// What a node does beside handling messages: promotes delayed casts that are due, collects the rows of callers that are
// gone, and hears of the deaths of other nodes.
#pragma once

#include <functional>
#include <optional>

#include "actor/rows.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"

namespace perdure {
class ActorsImpl;
}

namespace perdure::actor {

class Housekeeping {
 public:
  explicit Housekeeping(ActorsImpl& home) : home_(home) {}

  void start();
  /// Collects what is older than `age` of callers whose sessions are over.
  void collect(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done);

 private:
  struct DueSeen {
    std::optional<WallTime> next;
    bool more = false;
    Watch watch;
  };
  void follow_deaths();
  void promote() PERDURE_EXCLUDES(mutex_);
  void promoted(Result<DueSeen> seen) PERDURE_EXCLUDES(mutex_);
  void collect_again();
  void collect_from(Bytes after, std::int64_t before_seconds, std::uint64_t so_far,
                    std::move_only_function<void(Result<std::uint64_t>)> done);

  ActorsImpl& home_;
  Mutex mutex_;
  bool promoting_ PERDURE_GUARDED_BY(mutex_) = false;
  bool again_ PERDURE_GUARDED_BY(mutex_) = false;
  Executor::TimerId timer_ PERDURE_GUARDED_BY(mutex_) = 0;
  Watch watch_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::actor
