// Emitting: the one way for an event to come into being, whoever emits it.
#pragma once

#include <span>
#include <string_view>

#include "perdure/queue.h"
#include "perdure/transaction.h"

namespace perdure::queue {

/// What tells apart who emits.
struct Origin {
  std::string_view module = "WORKER";
  std::string_view modifier = "_";
  /// It wants to know of the end: see told_key().
  bool told = false;
  /// What it adds to a value that was measured before.
  std::size_t wrapping_bytes = 0;
};

/// An event that was checked, ready to be stored by any number of runs of a body.
struct Prepared {
  std::string worker;
  EmitOptions options;
  Uuid id;
  Bytes value;  ///< Encoded.
  Bytes given;
};

/// Checks all that can be wrong. `fresh` is its id if it brings none.
/// Errors: kInvalidArgument, kTooLarge.
Result<Prepared> prepare(NewEvent event, const Uuid& fresh, const Origin& origin = {});
/// Stores it; needs no system access. Errors of the transaction: kInvalidArgument.
Emitted emit_in(Transaction& txn, std::string_view space, const Prepared& event, WallTime now);
/// Whether any of them has a time of its own, which has to be in store time.
bool is_timed(std::span<const Prepared> events);
/// All of them, in order.
std::vector<Emitted> emit_all(Transaction& txn, std::string_view space, std::span<const Prepared> events, WallTime now);

/// A uuid of version 7: 48 bits of milliseconds, then those of `random`, 74 of which count.
Uuid uuid_v7(std::int64_t ms, std::uint64_t random_high, std::uint64_t random_low);

/// Errors: kInvalidArgument.
Result<void> check_worker(std::string_view worker);
Result<void> check_policy(const RetryPolicy& policy);

}  // namespace perdure::queue
