// The tables, and every statement that is run on them.
//
//   meta        one row: the format, and the version and link at which the log ends. An append is an update of this
//               row, on the condition that it still has the version and the link that are expected.
//   fold_state  one row: folded and trimmed. Apart from meta, so that folding never holds up an append.
//   log         one row for each entry, by version, with its link.
//   rows        one row for each key, as of `folded`.
#pragma once

#include "store/postgres/connection.h"

namespace perdure::postgres {

/// What this code reads and writes. A database with a higher number was written by a newer perdure.
inline constexpr std::uint64_t kFormat = 2;

/// Makes the tables if they are not there; several nodes may do so at once. Errors: kPermissionDenied,
/// kUnsupportedFormat, kUnavailable.
Result<void> make_schema(Connection& connection);

/// Makes a new connection know the statements below, and checks that the format is still ours.
Result<void> prepare(Connection& connection);

/// To hear the version of each append, on a channel that is called like the schema.
std::string listen_statement(const Target& target);

/// To clean up a table, unless another node or autovacuum is about to.
std::string vacuum_log(const Target& target);
std::string vacuum_rows(const Target& target);
/// How many bytes the table of rows has, with its index and what is dead in it.
std::string size_of_rows(const Target& target);

// Names of prepared statements, with their parameters.
inline constexpr const char* kAppend = "append";    // expected version and link, version, link, batch -> a row if done
inline constexpr const char* kNotify = "notify";    // payload
inline constexpr const char* kMoment = "moment";    // since -> meta and log, see read.cc
inline constexpr const char* kKeys = "keys";        // keys -> key, version, value
inline constexpr const char* kForward = "forward";  // begin, end, limit -> key, version, value
inline constexpr const char* kReverse = "reverse";  // the same
inline constexpr const char* kForwardUnbounded = "forward_to_end";  // begin, limit
inline constexpr const char* kReverseUnbounded = "reverse_from_end";
inline constexpr const char* kBeginRead = "begin_read";
inline constexpr const char* kBegin = "begin";
inline constexpr const char* kCommit = "commit";
inline constexpr const char* kRollback = "rollback";
// folded, then version and link of the last entry -> a row if it is so and nobody else folds
inline constexpr const char* kLockFold = "lock_fold";
inline constexpr const char* kPutRows = "put_rows";      // keys, versions, values
inline constexpr const char* kEraseRows = "erase_rows";  // keys
inline constexpr const char* kTrimLog = "trim_log";      // version
inline constexpr const char* kSetFold = "set_fold";      // folded, trimmed
inline constexpr const char* kVersion = "version";       // -> version

}  // namespace perdure::postgres
