// What becomes of the rows that a dead session held.
//
// Ending a session is one small write, after which nothing that it held counts any more. Its rows under
// ("session", "held", id, kind, ...) are removed afterwards, a bounded number in a transaction, by any session that
// knows the kind: leases are known to all of them, and other parts of perdure register a sweeper for theirs.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "perdure/session.h"

namespace perdure::session {

/// Frees what one held row of the session `dead` stands for, inside of the sweeping transaction, which has system
/// access and has cleared the row itself. `rest` is the packed tuple behind the kind, `value` what the row held.
///
/// It may run on the commit thread, more than once for one row, and after the session that it was given to is gone: so
/// it is short, uses nothing but the transaction, and keeps nothing that may go away. It frees only what still names
/// `dead`, for another may hold that by now.
using Sweeper = std::function<void(Transaction&, SessionId dead, BytesView rest, BytesView value)>;
/// By kind. The kind "lease" needs none.
using Sweepers = std::map<std::string, Sweeper, std::less<>>;

enum class Swept {
  kAll,   ///< Nothing is left of the session, and its ended row is gone as well.
  kMore,  ///< There is more to sweep.
  kRest,  ///< What is left is of kinds that have no sweeper here. The ended row stays for somebody who has them.
};

/// Sweeps a bounded number of rows of a session that is over. Needs SystemAccess.
Swept sweep_some(Transaction& txn, SessionId dead, const Sweepers& sweepers);

}  // namespace perdure::session
