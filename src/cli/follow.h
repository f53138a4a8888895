// Following the stream of a daemon, across its restarts.
#pragma once

#include <functional>
#include <string>

#include "cli/context.h"
#include "cli/event_stream.h"

namespace perdure::cli {

class Follower {
 public:
  /// Told of each event; whether it wants more.
  using Show = std::function<OrFailure<bool>(const StreamedEvent&)>;

  /// Begins behind `cursor`, or with what happens from now on if that is empty.
  Follower(Context& context, Target target, std::string cursor, Show show)
      : context_(context), target_(std::move(target)), cursor_(std::move(cursor)), show_(std::move(show)) {}

  /// Until `show` has enough, or the daemon refuses. `connected` is called each time that it has begun to listen.
  OrFailure<void> run(const std::function<OrFailure<void>()>& connected = {});

 private:
  OrFailure<void> follow(bool& heard, const std::function<OrFailure<void>()>& connected);

  Context& context_;
  const Target target_;
  std::string cursor_;
  const Show show_;
  bool enough_ = false;
  bool was_there_ = false;
};

}  // namespace perdure::cli
