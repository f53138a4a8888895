// Appending to the log of a partition, and drawing numbers with it, inside of a transaction. All of it needs system
// access; what is wrong makes the transaction fail.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "perdure/sequence.h"
#include "perdure/transaction.h"
#include "sequence/rows.h"

namespace perdure::sequence {

/// An event that was checked, ready to be stored by any number of runs of a body.
struct PreparedAppend {
  std::string type;
  WorkspaceId workspace;
  std::vector<std::string> next;
  Bytes payload;  ///< Encoded.
};
/// Errors: kInvalidArgument, kTooLarge.
Result<PreparedAppend> prepare(const Append& event);
Result<Bytes> encode_payload(const Value& payload);

/// Why it cannot be appended to, if somebody has the partition for himself.
std::optional<Error> owned_by_other(Reader& reader, const Place& place);

/// Where the stored numbers are.
struct CaughtUp {
  LogOffset offset = 0;
  /// The log goes on after it.
  bool behind = false;
};
/// Brings the stored numbers towards the end of the log, from where its last owner left them: by `most` entries, and
/// by no more than a transaction can take.
CaughtUp catch_up(Transaction& txn, const Place& place, std::size_t most);

/// Appends after `last`, which is the end of the log.
std::vector<Appended> append_all(Transaction& txn, const Place& place, const PartitionRow& partition, LogOffset last,
                                 std::span<const PreparedAppend> events, WallTime now);

/// Puts an entry where its owner says.
void write_entry(Transaction& txn, const Place& place, const PartitionRow& partition, LogOffset offset,
                 const EntryRow& entry);

Error violation(const Place& place, const std::string& what);

}  // namespace perdure::sequence
