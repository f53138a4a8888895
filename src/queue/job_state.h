// One attempt of this node, from its claim to its end.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "perdure/queue.h"
#include "queue/claim.h"
#include "session/cancel_source.h"

namespace perdure {

/// One row of HeldClaims, which goes when all that it names are settled. Guarded by the dispatcher.
struct HeldRow {
  Bytes key;
  std::size_t left = 0;
};

class JobState {
 public:
  JobState(queue::Loaded claimed, Token proof, SessionId owner, std::shared_ptr<HeldRow> row)
      : loaded(std::move(claimed)), token(proof), session(owner), held(std::move(row)) {}
  Job job() { return Job(*this); }

  /// As it was claimed.
  queue::Loaded loaded;
  const Token token;
  const SessionId session;
  const std::shared_ptr<HeldRow> held;
  CancelSource cancel;

  // Of the thread that runs the handler, until it has returned.
  Event event;
  std::vector<std::function<Result<void>(Transaction&)>> bodies;
  FailOptions on_failure;

  // Guarded by the dispatcher.
  /// How it ends has been decided, or is no longer this node's to decide: what the handler returns does not count.
  bool decided = false;
  /// The handler has been handed to a thread and has not returned.
  bool running = false;
  /// It ran past its timeout, and has not returned.
  bool given_up = false;
};

}  // namespace perdure
