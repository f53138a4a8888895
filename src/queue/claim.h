// Claiming: ready events become running ones, of one session or until a deadline.
#pragma once

#include <optional>
#include <vector>

#include "queue/worker_table.h"

namespace perdure::queue {

/// How long a claim that belongs to no session lasts at most without being extended.
inline constexpr Duration kLockMax = std::chrono::hours(24 * 365);

struct ClaimRequest {
  std::size_t max = 1;
  /// Of values; one event is claimed in any case.
  std::size_t bytes_max = SIZE_MAX;
  Claimant claimant;
  /// How many ready events to leave to others: whoever lost to another node looks further back, so that nodes that are
  /// all at the head of one queue do not lose to each other for ever.
  std::size_t skip = 0;
  /// What the session notes its claims under, from this number on: see HeldClaims.
  std::uint64_t held_from = 0;
  /// Claims nothing after all.
  bool leave_all = false;
};

struct ClaimedRow {
  Loaded event;
  std::uint32_t order = 0;        ///< Of the stamp that is its token.
  std::uint64_t held_number = 0;  ///< Of the row of HeldClaims that names it.
};

struct ClaimResult {
  std::vector<ClaimedRow> events;
  /// There may be more to claim right now.
  bool more = false;
  /// A rule, or the rate, that is over then.
  std::optional<WallTime> again_at;
};

/// Reads the rules in the same transaction, so that nothing is claimed after a pause has committed.
/// Errors of the transaction: kStaleToken if the session is over.
ClaimResult claim_some(WorkerTable& table, const ClaimRequest& request);

}  // namespace perdure::queue
