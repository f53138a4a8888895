// One session on the server, and statements sent over it together: one round trip however many they are.
//
// libpq's own blocking calls wait for ever on a server that is silent. Here every wait is a poll with an end: the
// server is given up when nothing was heard of it for `patience`. Nothing is cancelled then, for asking a silent server
// to cancel blocks as well; its statement_timeout ends what it still runs of ours.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perdure/time.h"
#include "store/postgres/binary.h"
#include "store/postgres/target.h"

namespace perdure::postgres {

/// What a connection is for decides how long the server may take.
struct Lane {
  std::string name;          ///< For pg_stat_activity: "perdure append".
  Duration patience;         ///< With a server of which nothing is heard.
  Duration statement_limit;  ///< Within which the server itself gives up a statement.
  std::size_t size = 1;      ///< Connections at most.
};

struct Request {
  enum class Kind { kPrepared, kPrepare, kText };
  Kind kind;
  std::string name;  ///< Of the prepared statement.
  std::string sql;
  Parameters parameters = {};
};

inline Request prepared(std::string name, Parameters parameters = {}) {
  return {Request::Kind::kPrepared, std::move(name), {}, std::move(parameters)};
}
inline Request text(std::string sql) {
  return {Request::Kind::kText, {}, std::move(sql)};
}

/// Not thread-safe.
class Connection {
 public:
  /// Connects, and makes the session ours. Blocks for a few seconds at most for each host of the url. Errors: as those
  /// of RowServer; `crowded` says whether the server is well, but has no room for one more connection.
  static Result<std::unique_ptr<Connection>> open(const Target& target, const Lane& lane, bool* crowded = nullptr);

  /// Sends the requests and gathers an answer to each. The first error ends it: the server skips those after it. An
  /// error that leaves `broken` false had no effect; after another, what was sent may have been done or not.
  Result<std::vector<Answer>> run(std::span<const Request> requests);
  Result<Answer> run(const Request& request);

  bool broken() const { return broken_; }
  /// Whether the server was silent, rather than gone.
  bool timed_out() const { return timed_out_; }
  /// Whether what failed last was undone by the server for the sake of others, and may be tried again at once.
  bool gave_way() const { return gave_way_; }
  /// Gives the connection up: an open transaction is rolled back by the server.
  void abandon() { broken_ = true; }
  /// False if the server has ended the session since it was last used. Does not block.
  bool still_there();
  /// How often the server has warned.
  std::uint64_t warnings() const { return *warnings_; }

  PGconn* raw() { return connection_.get(); }
  const Target& target() const { return target_; }

 private:
  Connection(const Target& target, const Lane& lane, PGconn* connection);
  Result<void> begin_session();
  bool send(const Request& request);
  /// Writes what is queued and reads until the next result is whole.
  Result<void> wait_for_result();
  Result<std::vector<Answer>> gather(std::size_t count);
  Error lost();

  const Target target_;
  const Lane lane_;
  const std::unique_ptr<std::uint64_t> warnings_;
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  bool broken_ = false;
  bool timed_out_ = false;
  bool gave_way_ = false;
};

}  // namespace perdure::postgres
