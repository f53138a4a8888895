#include "store/postgres/postgres_server.h"

#include "store/postgres/schema.h"

namespace perdure::postgres {
namespace {

using std::chrono::seconds;

// The server gives up an append a little before we do: then it is known to have no effect.
const Lane kReads = {.name = "read", .patience = seconds(5), .statement_limit = seconds(60), .size = 8};
const Lane kAppends = {.name = "append", .patience = seconds(5), .statement_limit = seconds(4)};
const Lane kFolds = {.name = "fold", .patience = seconds(20), .statement_limit = seconds(15)};

/// Autovacuum comes by once a minute at best: a table would grow by all that a minute makes useless, and reading it
/// become slow. So tables are cleaned up here, too.
///
/// The log, whose entries are gone after two folds, each time that so much was added to it.
constexpr std::uint64_t kVacuumLogBytes = std::uint64_t{32} << 20;
/// The rows, each time that folds have written so much, and a fifth of the table: in the long run as much goes as
/// comes, and what cleaning up costs is in proportion to the table. A large one is left to autovacuum. It would hold up
/// the folds, and what a minute adds is little beside it.
constexpr std::uint64_t kVacuumRowsBytes = std::uint64_t{16} << 20, kVacuumRowsPart = 5;
constexpr std::uint64_t kVacuumRowsTableMax = std::uint64_t{512} << 20;

/// Appends, after one that was lost, which ask for what came instead: without it the loser would need a round trip more
/// than the winner, and lose again.
constexpr unsigned kContended = 64;

std::uint64_t bytes_of(const remote::Fold& fold) {
  std::uint64_t bytes = 0;
  for (const remote::FoldedRow& row : fold.rows) bytes += row.key.size() + (row.row ? row.row->value.size() : 0);
  return bytes;
}

}  // namespace

PostgresServer::PostgresServer(const Target& target, LogSink log)
    : limits_{.name = "postgres", .what_is_read_lasts = false},
      target_(target),
      reach_(target, std::move(log)),
      reads_(target, kReads, reach_),
      appends_(target, kAppends, reach_, &reads_),
      folds_(target, kFolds, reach_, &reads_),
      listener_(target, reach_, reads_) {}

Result<std::unique_ptr<remote::RowServer>> PostgresServer::open(const remote::ServerOptions& options) {
  auto target = parse_target(options.url);
  if (!target) return std::unexpected(std::move(target.error()));
  auto connection = Connection::open(*target, kAppends);
  if (!connection) return std::unexpected(std::move(connection.error()));
  if (auto made = make_schema(**connection); !made) return std::unexpected(std::move(made.error()));
  return std::unique_ptr<remote::RowServer>(new PostgresServer(*target, options.log));
}

Result<remote::Moment> PostgresServer::read(Version since, std::span<const Bytes> keys,
                                            std::span<const RangeRead> ranges) {
  return reads_.with<remote::Moment>([&](Connection& connection) { return read_on(connection, since, keys, ranges); });
}

Result<remote::Appended> PostgresServer::append(const remote::LogEnd& expected, const remote::LogEntry& entry) {
  if (entry.batch.size() > limits_.entry_bytes_max)
    return fail(ErrorCode::kTooLarge, "an entry of " + std::to_string(entry.batch.size()) + " bytes is over the " +
                                          std::to_string(limits_.entry_bytes_max) + " of " + target_.name);
  return appends_.with<remote::Appended>(
      [&](Connection& connection) { return append_on(connection, expected, entry); });
}

Result<remote::Appended> PostgresServer::append_on(Connection& connection, const remote::LogEnd& expected,
                                                   const remote::LogEntry& entry) {
  std::uint64_t warnings = connection.warnings();
  Parameters parameters;
  parameters.number(expected.version.number).number(expected.link);
  parameters.number(entry.version.number).number(remote::link_of(entry.batch)).bytes(entry.batch);
  std::vector<Request> requests;
  requests.push_back(prepared(kAppend, std::move(parameters)));
  if (contended_ > 0) requests.push_back(moment_request(expected.version));
  auto answers = connection.run(requests);
  if (!answers && connection.broken())
    return fail(ErrorCode::kCommitUnknown, answers.error().message + "; it was lost in the middle of a commit");
  // As if the log had ended elsewhere: others were first, and the batch is made again on top of what they did.
  if (!answers && connection.gave_way()) return remote::Appended{};
  if (!answers) {
    // A server that has become a standby keeps its sessions; a new one may be led to the new primary.
    if (answers.error().code == ErrorCode::kUnavailable) connection.abandon();
    return std::unexpected(std::move(answers.error()));
  }
  bool done = answers->front().rows() > 0;
  // An operator who cancels the wait for a synchronous standby makes the server say yes, with a warning, to what only
  // its own disk has.
  if (connection.warnings() != warnings && done) {
    connection.abandon();
    return fail(ErrorCode::kCommitUnknown, target_.name + " has committed with a warning, perhaps without its standby");
  }
  if (done) {
    appended_bytes_ += entry.batch.size();
    if (contended_ > 0) --contended_;
    return remote::Appended{.done = true};
  }
  contended_ = kContended;
  if (requests.size() == 1) return remote::Appended{};
  auto instead = moment_from(target_, answers->back());
  if (!instead) return std::unexpected(std::move(instead.error()));
  return remote::Appended{.instead = std::move(*instead)};
}

void PostgresServer::ask_for_turn() {
  Parameters parameters;
  parameters.bytes(listener_.plea());
  Request request = prepared(kNotify, std::move(parameters));
  // Whether it got through does not matter.
  (void)appends_.with<Answer>([&](Connection& connection) { return connection.run(request); });
}

Result<bool> PostgresServer::fold(const remote::Fold& fold) {
  auto folded = folds_.with<bool>([&](Connection& connection) { return fold_on(connection, fold); });
  if (!folded) return folded;
  if (*folded) folded_bytes_ += bytes_of(fold);
  // Whether it is cleaned up or not, nothing depends on it but room.
  if (appended_bytes_ >= kVacuumLogBytes) {
    appended_bytes_ = 0;
    (void)folds_.with<Answer>([&](Connection& connection) { return connection.run(text(vacuum_log(target_))); });
  }
  if (folded_bytes_ >= kVacuumRowsBytes)
    (void)folds_.with<Answer>([&](Connection& connection) { return vacuum_rows_if_due(connection); });
  return folded;
}

Result<Answer> PostgresServer::vacuum_rows_if_due(Connection& connection) {
  auto size = connection.run(text(size_of_rows(target_)));
  if (!size) return size;
  const std::uint64_t bytes = size->number(0, 0);
  if (folded_bytes_ < bytes / kVacuumRowsPart && bytes <= kVacuumRowsTableMax) return size;
  folded_bytes_ = 0;
  if (bytes > kVacuumRowsTableMax) return size;
  return connection.run(text(vacuum_rows(target_)));
}

}  // namespace perdure::postgres
