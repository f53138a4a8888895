// Reading one moment: the log in one statement, and rows, if any are asked for, in the same snapshot.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "store/postgres/postgres_server.h"
#include "store/postgres/schema.h"

namespace perdure::postgres {
namespace {

using remote::Moment;

Request range_request(const RangeRead& read) {
  bool forward = read.options.direction == Direction::kForward;
  Parameters parameters;
  parameters.bytes(read.range.begin);
  if (!read.range.end.empty()) parameters.bytes(read.range.end);
  if (read.options.limit <= static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    parameters.number(read.options.limit);
  } else {
    parameters.null();
  }
  if (read.range.end.empty()) return prepared(forward ? kForwardUnbounded : kReverseUnbounded, std::move(parameters));
  return prepared(forward ? kForward : kReverse, std::move(parameters));
}

Request keys_request(std::span<const Bytes> keys) {
  std::vector<BytesView> views(keys.begin(), keys.end());
  Parameters parameters;
  parameters.bytes_array(views);
  return prepared(kKeys, std::move(parameters));
}

void add_values(Moment& moment, std::span<const Bytes> keys, const Answer& answer) {
  std::unordered_map<BytesView, int> found;
  for (int i = 0; i < answer.rows(); ++i) found.emplace(answer.bytes(i, 0), i);
  moment.values.resize(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k)
    if (auto at = found.find(keys[k]); at != found.end())
      moment.values[k] = Versioned{Bytes(answer.bytes(at->second, 2)), Version{answer.number(at->second, 1)}};
}

std::vector<Row> rows_from(const Answer& answer) {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(answer.rows()));
  for (int i = 0; i < answer.rows(); ++i)
    rows.push_back({Bytes(answer.bytes(i, 0)), Bytes(answer.bytes(i, 2)), Version{answer.number(i, 1)}});
  return rows;
}

}  // namespace

Request moment_request(Version since) {
  Parameters parameters;
  parameters.number(since.number);
  return prepared(kMoment, std::move(parameters));
}

/// Each row has the end of the log, what is folded and trimmed, and one entry; without entries there is one row all the
/// same, with nulls.
Result<Moment> moment_from(const Target& target, const Answer& answer) {
  if (answer.rows() == 0)
    return fail(ErrorCode::kCorrupt, target.name + ": the schema '" + target.schema +
                                         "' has lost its rows of state; restore it from a backup");
  Moment moment = {.end = {{answer.number(0, 0)}, answer.number(0, 1)},
                   .folded = {answer.number(0, 2)},
                   .trimmed = {answer.number(0, 3)},
                   .log = {},
                   .values = {},
                   .ranges = {}};
  if (answer.is_null(0, 4)) return moment;
  moment.log.reserve(static_cast<std::size_t>(answer.rows()));
  for (int i = 0; i < answer.rows(); ++i)
    moment.log.push_back({Version{answer.number(i, 4)}, Bytes(answer.bytes(i, 5))});
  // The server reads them by their index, though it does not promise so.
  if (!std::ranges::is_sorted(moment.log, {}, &remote::LogEntry::version))
    std::ranges::sort(moment.log, {}, &remote::LogEntry::version);
  return moment;
}

Result<Moment> read_on(Connection& connection, Version since, std::span<const Bytes> keys,
                       std::span<const RangeRead> ranges) {
  if (keys.empty() && ranges.empty()) {
    auto answer = connection.run(moment_request(since));
    if (!answer) return std::unexpected(std::move(answer.error()));
    return moment_from(connection.target(), *answer);
  }
  std::vector<Request> requests;
  requests.push_back(prepared(kBeginRead));
  requests.push_back(moment_request(since));
  if (!keys.empty()) requests.push_back(keys_request(keys));
  for (const RangeRead& read : ranges) requests.push_back(range_request(read));
  requests.push_back(prepared(kCommit));
  auto answers = connection.run(requests);
  if (!answers) {
    connection.abandon();  // It may be in the middle of the transaction.
    return std::unexpected(std::move(answers.error()));
  }
  auto moment = moment_from(connection.target(), (*answers)[1]);
  if (!moment) return moment;
  std::size_t next = 2;
  if (!keys.empty()) add_values(*moment, keys, (*answers)[next++]);
  for (std::size_t i = 0; i < ranges.size(); ++i) moment->ranges.push_back(rows_from((*answers)[next++]));
  return moment;
}

}  // namespace perdure::postgres
