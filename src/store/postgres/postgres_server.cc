#include "store/postgres/postgres_server.h"

#include "store/postgres/schema.h"

namespace perdure::postgres {
namespace {

using std::chrono::seconds;

// The server gives up an append a little before we do: then it is known to have no effect.
const Lane kReads = {.name = "read", .patience = seconds(5), .statement_limit = seconds(60), .size = 8};
const Lane kAppends = {.name = "append", .patience = seconds(5), .statement_limit = seconds(4)};
const Lane kFolds = {.name = "fold", .patience = seconds(20), .statement_limit = seconds(15)};

/// Entries live for less than a second, and autovacuum comes by once a minute at best: the table would grow by all that
/// a minute brings, and reading it become slow. So it is cleaned up each time that so much was added to it.
constexpr std::uint64_t kVacuumBytes = std::uint64_t{32} << 20;

/// Appends, after one that was lost, which ask for what came instead: without it the loser would need a round trip more
/// than the winner, and lose again.
constexpr unsigned kContended = 64;

}  // namespace

PostgresServer::PostgresServer(const Target& target, LogSink log)
    : limits_{.name = "postgres"},
      target_(target),
      reach_(target, std::move(log)),
      reads_(target, kReads, reach_),
      appends_(target, kAppends, reach_),
      folds_(target, kFolds, reach_),
      listener_(target, reach_) {}

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

Result<remote::Appended> PostgresServer::append(Version expected, const remote::LogEntry& entry) {
  if (entry.batch.size() > limits_.entry_bytes_max)
    return fail(ErrorCode::kTooLarge, "an entry of " + std::to_string(entry.batch.size()) + " bytes is over the " +
                                          std::to_string(limits_.entry_bytes_max) + " of " + target_.name);
  return appends_.with<remote::Appended>(
      [&](Connection& connection) { return append_on(connection, expected, entry); });
}

Result<remote::Appended> PostgresServer::append_on(Connection& connection, Version expected,
                                                   const remote::LogEntry& entry) {
  std::uint64_t warnings = connection.warnings();
  Parameters parameters;
  parameters.number(expected.number).number(entry.version.number).bytes(entry.batch);
  std::vector<Request> requests;
  requests.push_back(prepared(kAppend, std::move(parameters)));
  if (contended_ > 0) requests.push_back(moment_request(expected));
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
  if (folded && appended_bytes_ >= kVacuumBytes) {
    appended_bytes_ = 0;
    // Whether it was done or not, nothing depends on it but room.
    (void)folds_.with<Answer>([&](Connection& connection) { return connection.run(text(vacuum_statement(target_))); });
  }
  return folded;
}

}  // namespace perdure::postgres
