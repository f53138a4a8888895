// One transaction of a node for one worker: ends the claims whose handlers have returned, and claims as many events as
// there is room for. Both at once, so that a busy worker costs one commit for many events.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "queue/claim.h"
#include "queue/job_state.h"
#include "queue/settle.h"

namespace perdure::queue {

/// How an attempt ended.
struct Settlement {
  struct Completed {
    Bytes result;  ///< Encoded.
  };
  struct Released {};
  std::shared_ptr<JobState> job;
  std::variant<Completed, Failing, Released> how;

  /// Of what it writes beside the event.
  std::size_t bytes() const {
    const auto* completed = std::get_if<Completed>(&how);
    return completed ? completed->result.size() : 0;
  }
};

struct Turn {
  std::string space;
  std::string worker;
  std::vector<Settlement> settlements;
  /// Rows of HeldClaims of which nothing is left.
  std::vector<Bytes> emptied;
  std::optional<ClaimRequest> claim;
};

struct TurnResult {
  ClaimResult claimed;
  /// The claims that were not held any more, by their place among the settlements.
  std::vector<std::size_t> stale;
  /// If there is nothing more to claim: what fires when there may be.
  std::vector<Watch> watches;
};

TurnResult take_turn(Transaction& txn, const Turn& turn, WallTime now);
/// Ends a claim, if it is held.
Standing settle(Transaction& txn, std::string_view space, const Settlement& settlement, WallTime now);
/// On what announces work for a worker.
std::vector<Watch> watch_worker(Transaction& txn, BytesView prefix);

}  // namespace perdure::queue
