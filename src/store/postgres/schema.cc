#include "store/postgres/schema.h"

#include <array>
#include <utility>

namespace perdure::postgres {
namespace {

/// A schema may be called like a word of SQL.
std::string quoted(const Target& target) {
  return '"' + target.schema + '"';
}

/// In the statements below, @ stands for the schema and # for the channel.
std::string in_schema(std::string_view sql, const Target& target) {
  std::string text;
  for (char c : sql) {
    if (c == '@') {
      text += quoted(target);
    } else if (c == '#') {
      text += target.schema;
    } else {
      text += c;
    }
  }
  return text;
}

// One row that is updated all the time stays in its page: the room that fillfactor leaves is cleaned up as soon as
// somebody reads the page, and no index changes. Should an old snapshot of somebody make it leave, the index finds it
// without a look at the pages that it left behind.
//
// The log is all churn, and what is large is in its TOAST table: both are vacuumed after a fixed number of rows, not
// after a share of a table whose size swings, and without pauses. Its batches are not compressed, as they are gone
// soon.
constexpr std::array kMake = {
    "CREATE TABLE IF NOT EXISTS @.meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), format integer NOT NULL, "
    "version bigint NOT NULL, link bigint NOT NULL) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, "
    "autovacuum_vacuum_threshold = 2000, autovacuum_analyze_threshold = 1000000000, autovacuum_vacuum_cost_delay = 0)",
    "CREATE TABLE IF NOT EXISTS @.fold_state (one boolean PRIMARY KEY DEFAULT true CHECK (one), folded bigint NOT "
    "NULL, trimmed bigint NOT NULL) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, "
    "autovacuum_vacuum_threshold = 2000, autovacuum_analyze_threshold = 1000000000, autovacuum_vacuum_cost_delay = 0)",
    "CREATE TABLE IF NOT EXISTS @.log (version bigint PRIMARY KEY, link bigint NOT NULL, batch bytea NOT NULL) WITH ("
    "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, "
    "autovacuum_analyze_threshold = 1000000000, vacuum_truncate = off, "
    "toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 20000, "
    "toast.autovacuum_vacuum_cost_delay = 0, toast.vacuum_truncate = off)",
    "ALTER TABLE @.log ALTER COLUMN batch SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS @.rows (key bytea PRIMARY KEY, version bigint NOT NULL, value bytea NOT NULL) WITH ("
    "fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, "
    "autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0.05, "
    "toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0)",
    "INSERT INTO @.fold_state (folded, trimmed) SELECT 0, 0 WHERE NOT EXISTS (SELECT FROM @.fold_state)",
    "INSERT INTO @.meta (format, version, link) SELECT 2, 0, 0 WHERE NOT EXISTS (SELECT FROM @.meta)",
};
static_assert(kFormat == 2, "the last of the statements above says which format it makes");

// The update waits for another append that is under way, and then looks at the condition again, on the row as that one
// left it: READ COMMITTED promises so. This is the fence.
constexpr std::array kStatements = {
    std::pair{kAppend,
              "WITH moved AS (UPDATE @.meta SET version = $3::bigint, link = $4::bigint WHERE one AND version = "
              "$1::bigint AND link = $2::bigint RETURNING version, link), added AS (INSERT INTO @.log (version, link, "
              "batch) SELECT version, link, $5::bytea FROM moved) SELECT pg_notify('#', version::text) FROM moved"},
    std::pair{kNotify, "SELECT pg_notify('#', $1::text)"},
    // Behind an append in the same transaction it answers only if that was not done: otherwise the row of meta is of
    // this transaction's own making.
    std::pair{
        kMoment,
        "SELECT m.version, m.link, f.folded, f.trimmed, l.version, l.batch FROM @.meta m JOIN @.fold_state f ON f.one "
        "LEFT JOIN @.log l ON l.version > CASE WHEN $1::bigint >= f.trimmed THEN $1::bigint ELSE f.folded END "
        "WHERE m.one AND m.xmin::text::bigint IS DISTINCT FROM txid_current_if_assigned() % 4294967296"},
    std::pair{kKeys, "SELECT key, version, value FROM @.rows WHERE key = ANY ($1::bytea[])"},
    std::pair{kForward,
              "SELECT key, version, value FROM @.rows WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key "
              "LIMIT $3::bigint"},
    std::pair{kReverse,
              "SELECT key, version, value FROM @.rows WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key DESC "
              "LIMIT $3::bigint"},
    std::pair{kForwardUnbounded,
              "SELECT key, version, value FROM @.rows WHERE key >= $1::bytea ORDER BY key LIMIT $2::bigint"},
    std::pair{kReverseUnbounded,
              "SELECT key, version, value FROM @.rows WHERE key >= $1::bytea ORDER BY key DESC LIMIT $2::bigint"},
    std::pair{kBeginRead, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
    std::pair{kBegin, "BEGIN"},
    std::pair{kCommit, "COMMIT"},
    std::pair{kRollback, "ROLLBACK"},
    std::pair{kLockFold,
              "SELECT FROM @.fold_state WHERE one AND folded = $1::bigint AND ($1::bigint = $2::bigint OR EXISTS "
              "(SELECT FROM @.log WHERE version = $2::bigint AND link = $3::bigint)) FOR UPDATE SKIP LOCKED"},
    std::pair{kPutRows,
              "INSERT INTO @.rows (key, version, value) SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) "
              "ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value"},
    std::pair{kEraseRows, "DELETE FROM @.rows WHERE key = ANY ($1::bytea[])"},
    std::pair{kTrimLog, "DELETE FROM @.log WHERE version <= $1::bigint"},
    std::pair{kSetFold, "UPDATE @.fold_state SET folded = $1::bigint, trimmed = $2::bigint WHERE one"},
    std::pair{kVersion, "SELECT version FROM @.meta WHERE one"},
};

Result<void> check_format(const Target& target, const Answer& answer) {
  if (answer.rows() != 1)
    return fail(ErrorCode::kCorrupt, target.name + ": the table " + target.schema +
                                         ".meta has lost its row; restore the schema from a backup");
  std::uint64_t format = answer.number(0, 0);
  if (format == kFormat) return {};
  return fail(ErrorCode::kUnsupportedFormat, target.name + ": the schema '" + target.schema + "' has format " +
                                                 std::to_string(format) + ", and this perdure knows only " +
                                                 std::to_string(kFormat) + "; use " +
                                                 (format > kFormat ? "a newer perdure" : "the perdure that made it"));
}

std::string select_format(const Target& target) {
  return in_schema("SELECT format FROM @.meta", target);
}

Result<void> make_tables(Connection& connection, bool schema_is_there) {
  const Target& target = connection.target();
  std::vector<Request> requests;
  requests.push_back(text("BEGIN"));
  // Nodes that open at once make them one after another; the second finds that all is there.
  requests.push_back(text("SELECT pg_advisory_xact_lock(hashtextextended('perdure." + target.schema + "', 0))"));
  // Whoever may not make schemas is refused even if there is nothing to be made.
  if (!schema_is_there) requests.push_back(text("CREATE SCHEMA IF NOT EXISTS " + quoted(target)));
  for (const char* sql : kMake) requests.push_back(text(in_schema(sql, target)));
  requests.push_back(text("COMMIT"));
  auto made = connection.run(requests);
  if (!made) return std::unexpected(std::move(made.error()));
  return {};
}

}  // namespace

std::string listen_statement(const Target& target) {
  return "LISTEN " + quoted(target);
}

std::string vacuum_log(const Target& target) {
  return in_schema("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) @.log", target);
}

std::string vacuum_rows(const Target& target) {
  return in_schema("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) @.rows", target);
}

std::string size_of_rows(const Target& target) {
  return in_schema("SELECT pg_total_relation_size('@.rows')", target);
}

Result<void> make_schema(Connection& connection) {
  const Target& target = connection.target();
  auto found = connection.run(
      text(in_schema("SELECT to_regnamespace('@') IS NOT NULL, to_regclass('@.meta') IS NOT NULL", target)));
  if (!found) return std::unexpected(std::move(found.error()));
  if (!found->truth(0, 1)) {
    if (auto made = make_tables(connection, found->truth(0, 0)); !made) return made;
  }
  auto format = connection.run(text(select_format(target)));
  if (!format) return std::unexpected(std::move(format.error()));
  return check_format(target, *format);
}

Result<void> prepare(Connection& connection) {
  const Target& target = connection.target();
  std::vector<Request> requests;
  requests.push_back(text(select_format(target)));
  for (const auto& [name, sql] : kStatements)
    requests.push_back({Request::Kind::kPrepare, name, in_schema(sql, target)});
  auto answers = connection.run(requests);
  if (!answers) return std::unexpected(std::move(answers.error()));
  return check_format(target, answers->front());
}

}  // namespace perdure::postgres
