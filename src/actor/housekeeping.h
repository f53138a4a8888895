// What a node does beside handling messages: promotes delayed casts that are due, collects the rows of callers that are
// gone, and hears of the deaths of other nodes.
#pragma once

#include <functional>
#include <optional>

#include "perdure/error.h"
#include "perdure/time.h"
#include "session/due_loop.h"

namespace perdure {
class ActorsImpl;
}

namespace perdure::actor {

class Housekeeping {
 public:
  explicit Housekeeping(ActorsImpl& home);

  void start();
  /// Time has moved: promotes what is due.
  void look() { delayed_casts_.wake(); }
  /// Collects what is older than `age` of callers whose sessions are over.
  void collect(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done);

 private:
  void follow_deaths();
  void collect_again();
  void collect_from(Bytes after, std::int64_t before_seconds, std::uint64_t so_far,
                    std::move_only_function<void(Result<std::uint64_t>)> done);

  ActorsImpl& home_;
  DueLoop<ActorsImpl> delayed_casts_;
};

/// When the first delayed cast is due.
std::optional<WallTime> first_delayed(Reader& reader);

}  // namespace perdure::actor
