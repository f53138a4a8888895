// The server of a remote engine's rows on PostgreSQL: RowServer over libpq.
//
// Three kinds of calls have connections of their own, so that they never wait for one another: reads (a few, as many
// threads read at once), the append, and the fold. A fourth hears notifications.
#pragma once

#include <atomic>

#include "store/postgres/listener.h"
#include "store/postgres/pool.h"
#include "store/remote/row_server.h"

namespace perdure::postgres {

class PostgresServer final : public remote::RowServer {
 public:
  static Result<std::unique_ptr<remote::RowServer>> open(const remote::ServerOptions& options);

  const remote::ServerLimits& limits() const override { return limits_; }
  Result<remote::Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override;
  Result<remote::Appended> append(const remote::LogEnd& expected, const remote::LogEntry& entry) override;
  Result<bool> fold(const remote::Fold& fold) override;
  void ask_for_turn() override;
  void listen(remote::Bell bell) override { listener_.listen(std::move(bell)); }

 private:
  PostgresServer(const Target& target, LogSink log);
  Result<remote::Appended> append_on(Connection& connection, const remote::LogEnd& expected,
                                     const remote::LogEntry& entry);
  Result<Answer> vacuum_rows_if_due(Connection& connection);

  const remote::ServerLimits limits_;
  const Target target_;
  Reach reach_;
  Pool reads_;
  Pool appends_;
  Pool folds_;
  Listener listener_;
  /// By this process, since it last cleaned up the log.
  std::atomic<std::uint64_t> appended_bytes_ = 0;
  /// For how many more appends to expect that others are first. Of those who append.
  unsigned contended_ = 0;
  /// Keys and values, written or erased by this process since it last cleaned up the rows. Only the folding thread's.
  std::uint64_t folded_bytes_ = 0;
};

/// The parts of the calls that have much to say: read.cc and fold.cc.
Request moment_request(Version since);
Result<remote::Moment> moment_from(const Target& target, const Answer& answer);
Result<remote::Moment> read_on(Connection& connection, Version since, std::span<const Bytes> keys,
                               std::span<const RangeRead> ranges);
Result<bool> fold_on(Connection& connection, const remote::Fold& fold);

}  // namespace perdure::postgres
