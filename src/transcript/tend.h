// Looking after sessions: what ends, and what goes, by itself.
//
//     nothing heard for 10 minutes   the session has ended; if it said nothing, and all was read, it goes
//     after 3 days                   messages go
//     after 7 days                   hooks go, and sessions of which nothing was heard for as long
//
// A favourite keeps its messages, and stays. Each session has one moment at which it is looked after next; whatever
// happens to it before then moves nothing, so that hooks write no more than they must.
#pragma once

#include <functional>
#include <optional>

#include "perdure/transaction.h"
#include "session/due_loop.h"

namespace perdure::transcript {

/// Told of the key of a row that cannot be read, once the turn that found it has committed.
using SayDamaged = std::function<void(BytesView key)>;

/// Does some of what is due: so many rows, and so many bytes of them, that others need not wait for long. Needs system
/// access, as what follows.
DueTurn tend(Transaction& txn, WallTime now, const SayDamaged& say = {});

/// When the next session is to be looked after.
std::optional<WallTime> next_due(Reader& reader);
/// Whether something is left to remove.
bool has_gone(Reader& reader);

}  // namespace perdure::transcript
