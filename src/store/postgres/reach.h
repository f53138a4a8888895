// Whether the server can be reached, as all connections to it have found it together.
//
// While it is away, calls fail at once with the reason; after a moment one of them, not all, tries again.
#pragma once

#include <optional>

#include "perdure/log.h"
#include "runtime/mutex.h"
#include "store/postgres/target.h"

namespace perdure::postgres {

class Reach {
 public:
  Reach(const Target& target, LogSink log) : target_(target), log_(std::move(log)) {}

  /// Before an attempt to connect, which must be followed by `reached` or `failed`. Errors: kUnavailable, or what was
  /// found last.
  Result<void> may_try();
  /// Fails if a connection need not even be tried.
  Result<void> check();
  /// How often it was found away: connections from before that may be as dead as the one that found it out.
  std::uint64_t losses();
  void reached();
  void failed(const Error& why);
  /// The server answers, but has no room for one more connection. Those that there are stay good. The log is told once
  /// a minute at most.
  void crowded(const Error& why);

 private:
  void say(LogLevel level, std::string_view message, std::string_view reason);

  const Target target_;
  const LogSink log_;
  Mutex mutex_;
  std::optional<Error> away_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t losses_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime quiet_until_ PERDURE_GUARDED_BY(mutex_) = {};
  Duration pause_ PERDURE_GUARDED_BY(mutex_) = Duration::zero();
  /// Until then nobody tries: the pause has not passed, or somebody is at it.
  SteadyTime next_try_ PERDURE_GUARDED_BY(mutex_) = {};
};

}  // namespace perdure::postgres
