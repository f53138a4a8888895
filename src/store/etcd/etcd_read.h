// Many reads of one moment, however many there are and however long their answers.
//
// etcd takes a bounded number of operations in a Txn, and an answer is one message in memory. So reads go out in as
// many Txns as they need, ranges page by page, all but the first at the revision that the first has found.
#pragma once

#include <vector>

#include "store/etcd/etcd_client.h"
#include "store/etcd/etcd_ops.h"

namespace perdure::etcd {

/// The answers are whole: as many rows as there are, up to the limit. A revision in `reads` is of no effect.
/// Errors: as Client::read; kUnavailable also if etcd was compacted again and again meanwhile.
Result<std::vector<RangeAnswer>> read_at_once(Client& client, const std::vector<Range>& reads);

}  // namespace perdure::etcd
