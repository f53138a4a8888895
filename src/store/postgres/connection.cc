#include "store/postgres/connection.h"

#include <poll.h>

#include <optional>

#include "runtime/latch.h"
#include "store/postgres/errors.h"

namespace perdure::postgres {
namespace {

constexpr int kOldestServer = 120000;

std::string in_ms(Duration duration) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

/// What stands before the url gives way to what the url says. Null without memory.
PGconn* connect(const Target& target, const Lane& lane) {
  std::string name = "perdure " + lane.name, silence_ms = in_ms(lane.patience);
  const char* keys[] = {"fallback_application_name",
                        "connect_timeout",
                        "target_session_attrs",
                        "keepalives_idle",
                        "keepalives_interval",
                        "keepalives_count",
                        "tcp_user_timeout",
                        "dbname",
                        nullptr};
  const char* values[] = {name.c_str(), "3", "read-write", "5", "2", "3", silence_ms.c_str(), target.conninfo.c_str(),
                          nullptr};
  // The code with which a server refuses a connection is told in no other way than with the reason, by whoever was
  // asked to be verbose before. So a connection is begun, of which no byte is sent, and then begun again.
  PGconn* connection = PQconnectStartParams(keys, values, 1);
  if (!connection || PQstatus(connection) == CONNECTION_BAD) return connection;
  PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
  PQreset(connection);
  PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
  return connection;
}

/// Everything that a session can be told in one round trip. A database may have other defaults: a commit must be on
/// disk, its fence needs READ COMMITTED, and each of our statements has one good plan, by an index.
std::string session_settings(const Lane& lane) {
  auto set = [](std::string name, std::string value) { return "set_config('" + name + "', " + value + ", false)"; };
  return "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean, " +
         set("synchronous_commit",
             "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN "
             "'remote_apply' ELSE 'on' END") +
         ", " + set("statement_timeout", "'" + in_ms(lane.statement_limit) + "'") + ", " +
         set("idle_in_transaction_session_timeout", "'10000'") + ", " +
         set("default_transaction_isolation", "'read committed'") + ", " +
         set("default_transaction_deferrable", "'off'") + ", " + set("search_path", "'pg_catalog'") + ", " +
         set("client_min_messages", "'warning'") + ", " + set("plan_cache_mode", "'force_generic_plan'") + ", " +
         set("enable_seqscan", "'off'") + ", " + set("enable_bitmapscan", "'off'") + ", " +
         set("enable_hashjoin", "'off'") + ", " + set("enable_mergejoin", "'off'") + ", " + set("jit", "'off'") + ", " +
         set("tcp_keepalives_idle", "'5'") + ", " + set("tcp_keepalives_interval", "'2'") + ", " +
         set("tcp_keepalives_count", "'3'");
}

void count_warning(void* counter, const PGresult*) {
  ++*static_cast<std::uint64_t*>(counter);
}

}  // namespace

Connection::Connection(const Target& target, const Lane& lane, PGconn* connection)
    : target_(target), lane_(lane), warnings_(std::make_unique<std::uint64_t>(0)), connection_(connection, PQfinish) {}

Result<std::unique_ptr<Connection>> Connection::open(const Target& target, const Lane& lane, bool* crowded) {
  std::unique_ptr<Connection> made(new Connection(target, lane, connect(target, lane)));
  PGconn* raw = made->raw();
  if (!raw) return fail(ErrorCode::kUnavailable, "there is no memory for a connection to " + target.name);
  if (PQstatus(raw) != CONNECTION_OK) {
    if (crowded) *crowded = is_crowded(PQerrorMessage(raw));
    return std::unexpected(connect_error(target, PQerrorMessage(raw)));
  }
  if (int version = PQserverVersion(raw); version < kOldestServer)
    return fail(ErrorCode::kUnsupportedFormat, target.name + " is version " + std::to_string(version / 10000) +
                                                   "; perdure needs PostgreSQL 12 or newer");
  PQsetnonblocking(raw, 1);
  PQsetNoticeReceiver(raw, count_warning, made->warnings_.get());
  if (auto begun_well = made->begin_session(); !begun_well) return std::unexpected(std::move(begun_well.error()));
  return made;
}

Result<void> Connection::begin_session() {
  auto answer = run(text(session_settings(lane_)));
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->truth(0, 0))
    return fail(ErrorCode::kUnavailable,
                target_.name + " is read-only, perhaps a standby; name the primary in the url");
  return {};
}

Result<Answer> Connection::run(const Request& request) {
  auto answers = run(std::span(&request, 1));
  if (!answers) return std::unexpected(std::move(answers.error()));
  return std::move(answers->front());
}

Result<std::vector<Answer>> Connection::run(std::span<const Request> requests) {
  // A single statement goes without a pipeline: its answer then ends with the commit, and an error of the commit itself
  // comes as any other.
  bool pipeline = requests.size() > 1;
  if (pipeline && PQenterPipelineMode(raw()) != 1) return std::unexpected(lost());
  for (const Request& request : requests)
    if (!send(request)) return std::unexpected(lost());
  if (pipeline && PQpipelineSync(raw()) != 1) return std::unexpected(lost());
  auto answers = gather(requests.size());
  if (pipeline && !broken_ && PQexitPipelineMode(raw()) != 1) return std::unexpected(lost());
  return answers;
}

bool Connection::send(const Request& request) {
  const Parameters& with = request.parameters;
  switch (request.kind) {
    case Request::Kind::kPrepared:
      return PQsendQueryPrepared(raw(), request.name.c_str(), with.count(), with.values(), with.lengths(),
                                 with.formats(), 1) == 1;
    case Request::Kind::kPrepare:
      return PQsendPrepare(raw(), request.name.c_str(), request.sql.c_str(), 0, nullptr) == 1;
    case Request::Kind::kText:
      return PQsendQueryParams(raw(), request.sql.c_str(), with.count(), nullptr, with.values(), with.lengths(),
                               with.formats(), 1) == 1;
  }
  return false;
}

Result<std::vector<Answer>> Connection::gather(std::size_t count) {
  std::vector<Answer> answers;
  std::optional<Error> failed;
  gave_way_ = false;
  bool pipeline = PQpipelineStatus(raw()) != PQ_PIPELINE_OFF;
  // In a pipeline a null follows each result, and a sync ends it all; without one, null does.
  for (;;) {
    if (auto ready = wait_for_result(); !ready) return std::unexpected(std::move(ready.error()));
    Answer answer(PQgetResult(raw()));
    if (!answer.get()) {
      if (PQstatus(raw()) == CONNECTION_BAD) return std::unexpected(failed ? std::move(*failed) : lost());
      if (pipeline) continue;
      break;
    }
    ExecStatusType status = PQresultStatus(answer.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_PIPELINE_ABORTED) continue;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      answers.push_back(std::move(answer));
      continue;
    }
    if (!failed) {
      failed = statement_error(target_, answer.get());
      gave_way_ = gives_way(answer.get());
    }
    if (ends_session(answer.get())) {
      broken_ = true;
      return std::unexpected(std::move(*failed));
    }
  }
  if (failed) return std::unexpected(std::move(*failed));
  if (answers.size() != count) {
    broken_ = true;
    return fail(ErrorCode::kUnavailable, target_.name + " gave fewer answers than were asked for");
  }
  return answers;
}

Result<void> Connection::wait_for_result() {
  SteadyTime until = steady_now() + lane_.patience;
  for (;;) {
    int unsent = PQflush(raw());
    // What could not be sent may have been answered all the same, with the reason.
    if (unsent < 0 && PQconsumeInput(raw()) != 1) return std::unexpected(lost());
    if (unsent <= 0 && PQisBusy(raw()) == 0) return {};
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_now()).count();
    if (left <= 0) {
      broken_ = timed_out_ = true;
      return fail(ErrorCode::kUnavailable, target_.name + " has not answered for " + in_ms(lane_.patience) + " ms");
    }
    pollfd polled = {PQsocket(raw()), static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN), 0};
    if (poll(&polled, 1, static_cast<int>(left)) <= 0) continue;
    if ((polled.revents & ~POLLOUT) != 0 && PQconsumeInput(raw()) != 1) return std::unexpected(lost());
    until = steady_now() + lane_.patience;
  }
}

bool Connection::still_there() {
  if (broken_ || PQstatus(raw()) != CONNECTION_OK) return false;
  // Settings and notices come unasked too, and so does why a session is ended, before its end.
  for (pollfd polled = {PQsocket(raw()), POLLIN, 0}; poll(&polled, 1, 0) > 0; polled.fd = PQsocket(raw()))
    if (PQconsumeInput(raw()) != 1 || PQisBusy(raw()) != 0 || PQstatus(raw()) != CONNECTION_OK) return false;
  return true;
}

Error Connection::lost() {
  broken_ = true;
  return {ErrorCode::kUnavailable, target_.name + ": " + first_line(PQerrorMessage(raw()))};
}

}  // namespace perdure::postgres
