#include "http/remote_kind.h"

#include <map>

#include "runtime/mutex.h"
#include "session/rows.h"
#include "session/settings_table.h"
#include "store/report.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

constexpr SettingsTable kTable("remote");
constexpr int kFormat = 1;
constexpr std::size_t kUrlBytesMax = 4'000;
constexpr Duration kTimeoutMax = std::chrono::hours(1);
constexpr Duration kLockedTimeoutMax = std::chrono::hours(24 * 7);
constexpr Duration kDelayMax = std::chrono::hours(24);
constexpr int kRetriesMax = 1'000;
/// What a node gives up has run past its requests: init, a batch, and the batch again without the one that failed.
constexpr int kRequestsInLimit = 4;

std::int64_t ns(Duration duration) {
  return duration.count();
}

Bytes encode(const RemoteKind& kind) {
  return tuple::pack(kFormat, kind.url, ns(kind.timeout), ns(kind.locked_timeout), kind.retry.max, ns(kind.retry.delay),
                     ns(kind.retry.max_delay), kind.mailbox_max, kind.schema);
}

Result<RemoteKind> decode(BytesView row) {
  tuple::Reader reader(row);
  auto next_duration = [&] { return Duration(reader.next<std::int64_t>()); };
  int format = reader.next<int>();
  RemoteKind kind;
  kind.url = reader.next_text();
  kind.timeout = next_duration();
  kind.locked_timeout = next_duration();
  kind.retry.max = reader.next<int>();
  kind.retry.delay = next_duration();
  kind.retry.max_delay = next_duration();
  kind.mailbox_max = reader.next<std::uint64_t>();
  kind.schema = reader.next<int>();
  if (!reader.ok() || format != kFormat)
    return fail(ErrorCode::kCorrupt, "the row of a remote behaviour cannot be read; run verify");
  return kind;
}

Result<void> check_names(std::string_view space, std::string_view kind) {
  if (auto good = session::check_short_name(space, "the space"); !good) return good;
  return session::check_short_name(kind, "the kind");
}

KindOptions options_of(const RemoteKind& kind) {
  return {.limit = kRequestsInLimit * kind.timeout + std::chrono::seconds(5),
          .attempts_max = kind.retry.max + 1,
          .back_off = kind.retry.delay,
          .back_off_max = kind.retry.max_delay,
          .mailbox_max = kind.mailbox_max};
}

std::string not_found(std::string_view space, std::string_view kind) {
  return "there is no remote kind " + std::string(kind) + " in the space " + std::string(space);
}

}  // namespace

class RemoteKinds::Impl {
 public:
  using Name = std::pair<std::string, std::string>;

  Impl(Node& node, std::shared_ptr<Client> client)
      : node_(node),
        client_(std::move(client)),
        follower_(std::make_shared<SettingsFollower>(
            node.store(), kTable, [this](const std::vector<SettingsTable::Setting>& settings) { serve(settings); })) {
    follower_->start();
  }

  const Client& client() const { return *client_; }

  void stop() {
    follower_->stop();
    for (const auto& [name, row] : take_served({})) node_.actors().in(name.first).stop_serving(name.second);
  }

  bool serves(const Name& name) {
    MutexLock lock(mutex_);
    return served_.contains(name);
  }

 private:
  std::map<Name, Bytes> take_served(std::map<Name, Bytes> now) {
    MutexLock lock(mutex_);
    return std::exchange(served_, std::move(now));
  }

  void serve(const std::vector<SettingsTable::Setting>& settings) {
    std::map<Name, Bytes> wanted;
    for (const auto& each : settings) wanted.emplace(Name(each.space, each.name), each.value);
    auto before = take_served(wanted);
    for (const auto& [name, row] : before)
      if (!wanted.contains(name)) node_.actors().in(name.first).stop_serving(name.second);
    for (const auto& [name, row] : wanted)
      if (auto old = before.find(name); old == before.end() || old->second != row) begin(name, row);
  }

  void begin(const Name& name, const Bytes& row) {
    auto kind = decode(row);
    auto url = kind ? Url::parse(kind->url) : std::unexpected(kind.error());
    if (!url) return complain(name, url.error());
    auto behaviour = make_remote_behaviour(node_, client_, std::move(*url), *kind);
    auto begun = node_.actors().in(name.first).serve(name.second, std::move(behaviour), options_of(*kind));
    if (!begun && begun.error().code != ErrorCode::kClosed) complain(name, begun.error());
  }

  void complain(const Name& name, const Error& error) {
    log(StoreAccess::impl(node_.store()).options(), LogLevel::kWarning, "remote",
        "a remote behaviour cannot be served: " + error.message, {{"space", name.first}, {"kind", name.second}});
  }

  Node& node_;
  const std::shared_ptr<Client> client_;
  Mutex mutex_;
  /// The row that each was begun with.
  std::map<Name, Bytes> served_ PERDURE_GUARDED_BY(mutex_);
  const std::shared_ptr<SettingsFollower> follower_;
};

RemoteKinds::RemoteKinds(Node& node, std::shared_ptr<Client> client)
    : impl_(std::make_shared<Impl>(node, std::move(client))) {}

RemoteKinds::~RemoteKinds() {
  stop();
}

void RemoteKinds::stop() {
  impl_->stop();
}

bool RemoteKinds::serves(const std::string& space, const std::string& kind) const {
  return impl_->serves({space, kind});
}

Result<void> RemoteKinds::check(const RemoteKind& kind) const {
  auto wrong = [](std::string_view what) { return fail(ErrorCode::kInvalidArgument, std::string(what)); };
  auto within = [](Duration duration, Duration most) { return duration > Duration::zero() && duration <= most; };
  if (kind.url.size() > kUrlBytesMax) return wrong("url has more than 4000 bytes");
  if (auto good = tuple::check_text(kind.url, "url"); !good) return good;
  auto url = Url::parse(kind.url);
  if (!url) return std::unexpected(std::move(url.error()));
  if (auto allowed = impl_->client().allowed().check(*url); !allowed) return allowed;
  if (!within(kind.timeout, kTimeoutMax)) return wrong("timeout must be more than nothing, and at most an hour");
  if (!within(kind.locked_timeout, kLockedTimeoutMax))
    return wrong("locked_timeout must be more than nothing, and at most 7 days");
  if (kind.retry.max < 0 || kind.retry.max > kRetriesMax) return wrong("retry.max must be from 0 to 1000");
  if (kind.retry.delay < Duration::zero() || kind.retry.max_delay < kind.retry.delay ||
      kind.retry.max_delay > kDelayMax)
    return wrong("retry.delay must not be negative, nor more than retry.max_delay, and that at most a day");
  if (kind.mailbox_max < 1) return wrong("mailbox_max must be at least 1");
  if (kind.schema < 1) return wrong("schema must be at least 1");
  return {};
}

void RemoteKinds::set(Transaction& txn, std::string_view space, std::string_view kind,
                      const RemoteKind& settings) const {
  in_txn(txn, check_names(space, kind));
  in_txn(txn, check(settings));
  kTable.write(txn, space, kind, encode(settings));
}

Result<RemoteKind> RemoteKinds::get(Reader& reader, std::string_view space, std::string_view kind) const {
  auto row = kTable.read(reader, space, kind);
  if (!row) return fail(ErrorCode::kNotFound, not_found(space, kind));
  return decode(*row);
}

std::vector<std::pair<std::string, RemoteKind>> RemoteKinds::list(Reader& reader, std::string_view space,
                                                                  const PageOptions& page) const {
  std::vector<std::pair<std::string, RemoteKind>> kinds;
  for (const auto& each : kTable.list(reader, space, page))
    kinds.emplace_back(each.name, in_txn(reader, decode(each.value)));
  return kinds;
}

void RemoteKinds::remove(Transaction& txn, std::string_view space, std::string_view kind) const {
  in_txn(txn, check_names(space, kind));
  if (!kTable.read(txn, space, kind)) SystemAccess(txn).refuse({ErrorCode::kNotFound, not_found(space, kind)});
  kTable.write(txn, space, kind, std::nullopt);
}

}  // namespace perdure::http
