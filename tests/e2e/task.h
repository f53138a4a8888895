// What the events of these tests ask for, and what they leave in the store: how often each has taken effect, and how
// long that took. What was done twice, or not at all, shows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "perdure/queue.h"

namespace perdure::e2e {

struct Task {
  std::string id;
  /// "work": takes effect after so much time. "spawn": the same, and emits the task ID-child in the same transaction.
  /// "note": also keeps the token of its claim. "kill", "exit", "throw", "throw-int", "fail", "hang", "big",
  /// "big-error": as they are called.
  std::string what = "work";
  std::int64_t work_ms = 0;
  std::int64_t emitted_ns = 0;
  PERDURE_DESCRIBE(Task, id, what, work_ms, emitted_ns)
};

inline constexpr std::string_view kTasks = "tasks";

inline Bytes effect_key(const std::string& id) {
  return "effect/" + id;
}
/// From the emit to the effect, in nanoseconds.
inline Bytes waited_key(const std::string& id) {
  return "waited/" + id;
}
/// Which attempt it was that has taken effect.
inline Bytes attempt_key(const std::string& id) {
  return "attempt/" + id;
}
/// The version of the claim that has taken effect, as decimal digits.
inline Bytes claim_key(const std::string& id) {
  return "claim/" + id;
}

/// Handles a Task. `tell` hears "began ID", "ended ID" and "cancelled ID", if it is there.
Result<Value> run_task(Queue queue, Job& job, const std::function<void(const std::string&)>& tell);

}  // namespace perdure::e2e
