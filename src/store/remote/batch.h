// A batch of writes as bytes: what stands in the log of a server.
//
// One byte of format, the checksum of the entry that it was appended to, the number of writes, then the writes in the
// order of their keys. Of a key only what differs from the key before it is there; versions are told by how far they
// are behind that of the entry. Last comes a checksum, which covers the version of the entry too.
//
// So the entries are a chain: whoever follows the log notices that an entry was not made on top of what it has read, as
// after a failover to a server that had not got all of it.
#pragma once

#include <map>
#include <optional>

#include "store/remote/row_server.h"

namespace perdure::remote {

/// The last write of each key; nothing erases it.
using Writes = std::map<Bytes, std::optional<Versioned>, std::less<>>;

/// `before` is the link of the entry that it is appended to.
Bytes encode_batch(const Writes& writes, Version version, Link before = 0);
/// The same; 0 of what is too short to be a batch.
Link link_before(BytesView batch);
/// kCorrupt if `bytes` is not what encode_batch made for that version, kUnsupportedFormat if a newer perdure made it.
Result<Writes> decode_batch(BytesView bytes, Version version);

/// A value as the rows of a server have it: with a checksum behind it.
Bytes seal_value(BytesView key, const Versioned& row);
/// Takes the checksum off; kCorrupt if it does not match.
Result<Versioned> open_value(BytesView key, Versioned row);

}  // namespace perdure::remote
