// The ends of claims. Each is a change of one event that hangs on the token of its claim: a claim that is not current
// changes nothing.
#pragma once

#include <optional>
#include <string>

#include "perdure/queue.h"
#include "queue/worker_table.h"

namespace perdure::queue {

struct Claim {
  Uuid id;
  Stamp token;
};

enum class Standing {
  kHeld,   ///< It is current.
  kEnded,  ///< The event was ended by it; so a repeated call of the same kind has nothing left to do.
  kStale,
};
struct Found {
  Standing standing = Standing::kStale;
  std::optional<Loaded> event;  ///< If it is held.
  EndedEvent::How how = {};     ///< If it has ended.
};
/// Needs system access.
Found find_claim(Reader& reader, std::string_view space, const Claim& claim);
Error stale_claim(const Uuid& id);

/// Of an event that is held, with its table, which the caller finishes.
void complete(WorkerTable& table, Loaded& event, Bytes result);
struct Failing {
  std::string error;
  FailOptions options = {};
  /// Of the node that ran it, for events that have none.
  std::optional<RetryPolicy> retry = {};
  /// What jitter is drawn from.
  std::uint64_t random = 0;
};
void fail(WorkerTable& table, Loaded& event, const Failing& failing);
/// Gives it back; the attempt does not count.
void release(WorkerTable& table, Loaded& event);
/// Who ran it is gone.
void lose(WorkerTable& table, Loaded& event, std::string why);
/// Errors of the transaction: kWrongState for the claim of a session.
DueTime extend(WorkerTable& table, Loaded& event, Duration lock);

/// Ends an event that is stored, whatever it is doing.
void cancel(WorkerTable& table, Loaded& event);
/// Errors: kNotFound, kWrongState.
Result<void> cancel(Transaction& txn, std::string_view space, const Uuid& id, Queue::Force force, WallTime now);

/// How long the retry after so many others waits.
Duration retry_delay(const RetryPolicy& policy, std::uint32_t retries, std::uint64_t random);

/// The sweeper of HeldClaims: what a dead session had claimed is lost.
void sweep_claims(Transaction& txn, SessionId dead, BytesView value, WallTime now);

}  // namespace perdure::queue
