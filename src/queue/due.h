// What falls due in the queue: scheduled events, the deadlines of claims, and what is to be forgotten. Each function is
// one turn of a loop (session/due_loop.h): it does a bounded number of things, in a transaction with system access, and
// says when there is more.
#pragma once

#include <optional>

#include "perdure/time.h"
#include "perdure/transaction.h"
#include "session/due_loop.h"

namespace perdure::queue {

/// Makes scheduled events ready: some of each worker that has any, so that one with a million of them does not keep
/// another's waiting. Rules do not matter here.
DueTurn promote(Transaction& txn, WallTime now);
/// Takes back claims whose deadline has passed.
DueTurn expire(Transaction& txn, WallTime now);
/// Forgets how events ended, and unique keys that had an end of their own.
DueTurn forget(Transaction& txn, WallTime now);

}  // namespace perdure::queue
