#pragma once

#include <memory>
#include <optional>

#include "actor/batch.h"
#include "session/cancel_source.h"

namespace perdure::actor {

/// What runs under the lock of an actor, outside of any transaction, until its end is committed or refused.
struct LockedJob {
  ActorId actor;
  Bytes prefix;
  std::shared_ptr<ServedKind> kind;
  Lock lock;
  Loaded base;  ///< The state as it was when the lock was taken.
  Value message;
  std::string traceparent;
  CancelSource cancel;
  Watch watch;

  // What came of it.
  std::optional<Value> state;  ///< Nothing if it failed.
  std::optional<Result<Value>> reply;
  std::vector<Batch::Sent> casts;
  std::vector<Turn::Reply> other_replies;
  std::vector<Effect> effects;
  std::vector<std::vector<Action>> actions;
  std::optional<std::string> stop;
};

/// Runs the handler, and keeps in the job what came of it.
void run_locked_handler(LockedJob& job);

}  // namespace perdure::actor
