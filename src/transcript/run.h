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

/// Reads what its session's transcript has more. Errors: a failed attempt, or the loss of the claim.
Result<Value> run(Store& store, Job& job, const std::vector<std::string>& roots, const RunClock& now, const Say& say);

}  // namespace perdure::transcript
