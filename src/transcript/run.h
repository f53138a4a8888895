// What the worker "transcripts" does with one of its events.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "perdure/debounce.h"
#include "perdure/queue.h"
#include "perdure/store.h"

namespace perdure::transcript {

using RunClock = std::function<WallTime()>;
/// Tells the log why nothing, or not all, was read of a session.
using Say = std::function<void(const std::string& why, const std::string& session)>;

/// When a run leaves the rest to another, which it asks for. Work that gets on must not be ended by the timeout of its
/// worker, and counted as a failure.
struct ReadingTimes {
  /// At the end of what it has booked, after so long.
  Duration reads_for;
  /// Anywhere, after so long.
  Duration at_most;
  /// What it reads and books ahead takes no longer than this at a time.
  Duration ahead;
};

struct RunSetting {
  Debouncers& debouncers;
  const std::vector<std::string>& roots;
  ReadingTimes times;
  RunClock now;
  Say say;
};

/// Reads what its session's transcript has more. Errors: a failed attempt, or the loss of the claim.
Result<Value> run(Store& store, Job& job, const RunSetting& setting);

}  // namespace perdure::transcript
