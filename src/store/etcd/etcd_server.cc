#include "store/etcd/etcd_server.h"

#include <algorithm>

namespace perdure::etcd {
namespace {

/// The server takes requests of 1.5 MiB, unless it was started with --max-request-bytes. The compare, the keys and the
/// other branch need less than the rest.
constexpr std::size_t kEntryBytesMax = 1'400 << 10, kTransactionBytesMax = 1'331 << 10;
constexpr std::size_t kClearRangeRowsMax = 1'000;
/// What a loser is told in the same answer, each entry perhaps a megabyte; more than these it has to ask for.
constexpr std::size_t kInsteadEntriesMax = 8;

/// gRPC does not tell a server that is down from one that speaks TLS when we do not, or the other way round.
Error with_advice(Error error, const Url& url) {
  if (error.code == ErrorCode::kUnavailable)
    error.message += url.tls ? "; check that it runs there and speaks TLS, and ca, cert and key in the url"
                             : "; check that it runs there; if it speaks TLS, add ?tls=on to the url";
  return error;
}

}  // namespace

EtcdServer::EtcdServer(const Url& url, std::unique_ptr<Client> client)
    : prefix_(url.prefix),
      layout_(url.prefix),
      limits_{"etcd", kEntryBytesMax, kTransactionBytesMax, kClearRangeRowsMax},
      client_(std::move(client)),
      folder_(*client_, layout_, url.compact ? Folder::Compaction::kOn : Folder::Compaction::kOff),
      bell_(*client_, layout_) {}

Result<std::unique_ptr<remote::RowServer>> EtcdServer::open(const remote::ServerOptions& options) {
  auto url = parse_url(options.url);
  if (!url) return std::unexpected(std::move(url.error()));
  auto client = Client::make(*url, options.log);
  if (!client) return std::unexpected(std::move(client.error()));
  std::unique_ptr<EtcdServer> server(new EtcdServer(*url, std::move(*client)));
  if (auto made = server->make_base(); !made) return std::unexpected(with_advice(std::move(made.error()), *url));
  return server;
}

Result<void> EtcdServer::make_base() {
  auto found = client_->read({.then = {Range{layout_.format()}}});
  if (!found) return std::unexpected(std::move(found.error()));
  if (const auto& rows = found->answers.at(0).rows; !rows.empty()) return check_base(rows[0].value);
  auto made =
      client_->write({.compares = {{layout_.format(), {}}},
                      .then = {Put{layout_.format(), encode_format()}, Put{layout_.version(), encode_end({})},
                               Put{layout_.folded(), encode_version({})}, Put{layout_.trimmed(), encode_version({})}},
                      .otherwise = {Range{layout_.format()}}});
  // Whoever opens it again finds it done or not.
  if (!made) return std::unexpected(repeatable(std::move(made.error())));
  if (made->succeeded) return {};
  const auto& rows = made->answers.at(0).rows;
  if (rows.empty()) return fail(ErrorCode::kUnavailable, "etcd is being emptied by others");
  return check_base(rows[0].value);
}

Result<void> EtcdServer::check_base(const Bytes& format) {
  if (auto good = check_format(format, prefix_); !good) return good;
  // A write that never is, for the format is there: etcd looks at permissions all the same. It deletes, since a put is
  // refused by a server that is full, and that can be read yet.
  auto allowed = client_->write({.compares = {{layout_.format(), {}}}, .then = {Delete{layout_.folder()}}});
  if (!allowed) return std::unexpected(repeatable(std::move(allowed.error())));
  return {};
}

Result<remote::Moment> EtcdServer::read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) {
  std::vector<Range> reads = layout_.moment_after(since);
  const std::size_t fixed = reads.size();
  for (const Bytes& key : keys) reads.push_back({.key = layout_.row(key)});
  for (const RangeRead& each : ranges) {
    if (each.range.empty() || each.options.limit == 0) continue;
    Range range = layout_.rows(each.range);
    range.limit = each.options.limit == SIZE_MAX ? 0 : each.options.limit;
    range.direction = each.options.direction;
    reads.push_back(std::move(range));
  }
  auto answers = read_at_once([this](const Txn& txn) { return client_->read(txn); }, pace_, reads);
  if (!answers) return std::unexpected(std::move(answers.error()));
  auto moment = layout_.moment(since, std::span(*answers).first(fixed));
  if (!moment) return moment;
  auto next = answers->begin() + static_cast<std::ptrdiff_t>(fixed);
  for (std::size_t i = 0; i < keys.size(); ++i, ++next) {
    auto& value = moment->values.emplace_back();
    if (next->rows.empty()) continue;
    auto row = layout_.row_of(next->rows[0]);
    if (!row) return std::unexpected(std::move(row.error()));
    value = Versioned{std::move(row->value), row->version};
  }
  for (const RangeRead& each : ranges) {
    auto& rows = moment->ranges.emplace_back();
    if (each.range.empty() || each.options.limit == 0) continue;
    for (KeyValue& stored : next->rows) {
      auto row = layout_.row_of(stored);
      if (!row) return std::unexpected(std::move(row.error()));
      rows.push_back(std::move(*row));
    }
    ++next;
  }
  return moment;
}

Result<remote::Appended> EtcdServer::append(const remote::LogEnd& expected, const remote::LogEntry& entry) {
  if (entry.version <= expected.version)
    return fail(ErrorCode::kInvalidArgument, "an entry is appended with a version after the one that is expected");
  if (entry.batch.size() > kEntryBytesMax)
    return fail(ErrorCode::kTooLarge, "a batch of " + std::to_string(entry.batch.size()) +
                                          " bytes is too large for etcd, which takes " +
                                          std::to_string(kEntryBytesMax));
  Txn txn{.compares = {{layout_.version(), encode_end(expected)}},
          .then = {Put{layout_.version(), encode_end({entry.version, remote::link_of(entry.batch)})},
                   Put{layout_.entry(entry.version), entry.batch}}};
  std::vector<Range> instead = layout_.moment_after(expected.version);
  instead.back().limit = kInsteadEntriesMax;
  txn.otherwise.assign(instead.begin(), instead.end());
  auto answer = client_->write(txn);
  if (!answer && answer.error().code == ErrorCode::kStoreFull)
    return look_after_full(expected, entry, std::move(answer.error()));
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->succeeded) return remote::Appended{.done = true};
  remote::Appended appended;
  if (answer->answers.size() != instead.size() || answer->answers.back().more) return appended;
  auto moment = layout_.moment(expected.version, answer->answers);
  if (!moment) return std::unexpected(std::move(moment.error()));
  appended.instead = std::move(*moment);
  return appended;
}

Result<remote::Appended> EtcdServer::look_after_full(const remote::LogEnd& expected, const remote::LogEntry& entry,
                                                     Error full) {
  auto unknown = [&](const std::string& why) {
    return fail(ErrorCode::kCommitUnknown, full.message + "; whether it was written all the same is not known: " + why);
  };
  auto now = read(expected.version, {}, {});
  if (!now) return unknown(now.error().message);
  if (now->end == expected) return std::unexpected(std::move(full));
  auto same_version = std::ranges::find(now->log, entry.version, &remote::LogEntry::version);
  // No two batches of an engine are alike: each has the number that its store handle gave to it.
  if (same_version != now->log.end() && same_version->batch == entry.batch) return remote::Appended{.done = true};
  if (same_version == now->log.end() && now->trimmed > expected.version) return unknown("the log is trimmed there");
  return remote::Appended{.instead = std::move(*now)};
}

}  // namespace perdure::etcd
