#include "store/etcd/etcd_client.h"

#include <etcd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/latch.h"
#include "store/etcd/etcd_channel.h"
#include "store/etcd/etcd_wire.h"

namespace perdure::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;

/// With several endpoints, a silent one must leave time for the next.
constexpr milliseconds kConnectPatience{1'000}, kReadPatience{2'000}, kReadPatienceAlone{4'000}, kWritePatience{3'000};
constexpr milliseconds kAwayMin{50}, kAwayMax{1'000};

/// The steady clock is gRPC's monotonic one.
gpr_timespec grpc_time(SteadyTime time) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  auto rest = std::chrono::nanoseconds(time.time_since_epoch() - seconds);
  return {seconds.count(), static_cast<std::int32_t>(rest.count()), GPR_CLOCK_MONOTONIC};
}

void prepare(grpc::ClientContext& context, const std::string& token) {
  context.AddMetadata("hasleader", "true");
  if (!token.empty()) context.AddMetadata("token", token);
}

/// Whether "3.4.23" is of a server that has all that is asked for here.
bool is_new_enough(const std::string& version) {
  int major = 0, minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && (major > 3 || (major == 3 && minor >= 4));
}

}  // namespace

struct Client::Context {
  grpc::ClientContext grpc;
  explicit Context(const std::string& token) { prepare(grpc, token); }
  Context(const std::string& token, Duration patience) : Context(token) {
    grpc.set_deadline(grpc_time(steady_now() + patience));
  }
};

struct Client::Link {
  const std::string address;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<pb::KV::Stub> kv = pb::KV::NewStub(channel);
  const std::unique_ptr<pb::Watch::Stub> watch = pb::Watch::NewStub(channel);
  const std::unique_ptr<pb::Auth::Stub> auth = pb::Auth::NewStub(channel);
  const std::unique_ptr<pb::Maintenance::Stub> maintenance = pb::Maintenance::NewStub(channel);

  Verdict judge(Purpose purpose, const grpc::Status& status) const {
    return etcd::judge(purpose, status.error_code(), status.error_message(), address);
  }
};

/// gRPC makes a lost connection again only while somebody waits for it, and in pauses of its own. So a channel that has
/// failed is given up, and the next call makes a new one, which tells at once whether there is anybody.
struct Client::Endpoint {
  const std::string address;
  const std::shared_ptr<grpc::ChannelCredentials> credentials;
  Mutex mutex = {};
  std::shared_ptr<Link> link PERDURE_GUARDED_BY(mutex) = {};

  std::shared_ptr<Link> get() PERDURE_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (!link || link->channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE)
      link = std::make_shared<Link>(address, make_channel(address, credentials, kConnectPatience));
    return link;
  }
};

Client::Client(const Url& url, LogSink log) : url_(url), log_(std::move(log)), place_(place_of(url)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::make(const Url& url, LogSink log) {
  std::unique_ptr<Client> client(new Client(url, std::move(log)));
  if (auto made = client->make_endpoints(); !made) return std::unexpected(std::move(made.error()));
  return client;
}

Result<void> Client::make_endpoints() {
  auto credentials = credentials_of(url_);
  if (!credentials) return std::unexpected(std::move(credentials.error()));
  for (const std::string& address : url_.endpoints)
    endpoints_.push_back(std::make_unique<Endpoint>(address, *credentials));
  return {};
}

std::optional<Verdict> Client::connect(Endpoint& endpoint, Ready& ready) {
  ready.link = endpoint.get();
  if (ready.link->channel->GetState(true) == GRPC_CHANNEL_READY) return {};
  Context context({}, kConnectPatience);
  pb::StatusResponse response;
  auto status = ready.link->maintenance->Status(&context.grpc, {}, &response);
  if (!status.ok()) return ready.link->judge(Purpose::kRead, status);
  if (is_new_enough(response.version())) return {};
  return Verdict{{ErrorCode::kInvalidArgument, "etcd at " + endpoint.address + " is of version " + response.version() +
                                                   "; perdure needs 3.4 or newer"},
                 Next::kTell};
}

std::optional<Verdict> Client::authenticate(Ready& ready) {
  pb::AuthenticateRequest request;
  request.set_name(url_.user);
  request.set_password(url_.password);
  Context context({}, kWritePatience);
  pb::AuthenticateResponse response;
  auto status = ready.link->auth->Authenticate(&context.grpc, request, &response);
  // As etcd's own tools do: who has a password may use a server that asks for none.
  if (!status.ok() && status.error_message().find("authentication is not enabled") != std::string::npos) return {};
  if (!status.ok()) return ready.link->judge(Purpose::kRead, status);
  ready.token = response.token();
  MutexLock lock(mutex_);
  token_ = ready.token;
  return {};
}

std::optional<Verdict> Client::make_ready(Endpoint& endpoint, Ready& ready) {
  if (auto verdict = connect(endpoint, ready)) return verdict;
  if (url_.user.empty()) return {};
  {
    MutexLock lock(mutex_);
    ready.token = token_;
  }
  return ready.token.empty() ? authenticate(ready) : std::nullopt;
}

Result<Client::Reached> Client::reach() {
  std::size_t first = 0;
  {
    MutexLock lock(mutex_);
    if (steady_now() < away_until_) return fail(ErrorCode::kUnavailable, why_away_);
    first = current_;
  }
  Error last{ErrorCode::kUnavailable, ""};
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    Reached reached{(first + i) % endpoints_.size(), {}};
    auto verdict = make_ready(*endpoints_[reached.index], reached.ready);
    if (!verdict) return reached;
    last = std::move(verdict->error);
    if (verdict->next != Next::kMoveOn) break;
    failed(reached.index, last.message);
  }
  return std::unexpected(std::move(last));
}

Result<TxnAnswer> Client::call(Purpose purpose, const Txn& txn) {
  const pb::TxnRequest request = to_wire(txn);
  const bool alone = endpoints_.size() == 1;
  const Duration patience = purpose == Purpose::kWrite ? kWritePatience : alone ? kReadPatienceAlone : kReadPatience;
  const std::size_t endpoints_max = purpose == Purpose::kWrite ? 1 : endpoints_.size();
  bool authenticated = false;
  for (std::size_t tried = 0;;) {
    auto reached = reach();
    if (!reached) return std::unexpected(std::move(reached.error()));
    const auto& [link, token] = reached->ready;
    Context context(token, patience);
    pb::TxnResponse response;
    auto status = link->kv->Txn(&context.grpc, request, &response);
    if (status.ok()) {
      answered();
      return from_wire(response);
    }
    Verdict verdict = link->judge(purpose, status);
    if (verdict.next == Next::kMoveOn) {
      failed(reached->index, verdict.error.message);
      if (++tried < endpoints_max) continue;
      return std::unexpected(std::move(verdict.error));
    }
    answered();
    if (verdict.next == Next::kCompacted) return TxnAnswer{.compacted = true};
    if (verdict.next == Next::kTell || authenticated) return std::unexpected(std::move(verdict.error));
    authenticated = true;
    forget_token(token);
  }
}

Result<TxnAnswer> Client::read(const Txn& txn) {
  return call(Purpose::kRead, txn);
}

Result<TxnAnswer> Client::write(const Txn& txn) {
  return call(Purpose::kWrite, txn);
}

void Client::compact(Revision revision) {
  auto reached = reach();
  if (!reached) return;
  pb::CompactionRequest request;
  request.set_revision(revision);
  Context context(reached->ready.token, kWritePatience);
  pb::CompactionResponse response;
  (void)reached->ready.link->kv->Compact(&context.grpc, request, &response);
}

Error Client::watch(const Bytes& first, const Bytes& last, const std::function<void(const KeyValue*)>& heard) {
  Ready ready;
  if (auto verdict = make_ready(*endpoints_[watch_next_++ % endpoints_.size()], ready))
    return std::move(verdict->error);
  Context context(ready.token);
  {
    MutexLock lock(watch_mutex_);
    if (watching_stopped_) return {ErrorCode::kClosed, "the watch of etcd was stopped"};
    watching_ = &context;
  }
  Error ended = stream(*ready.link, context, first, last, heard);
  {
    MutexLock lock(watch_mutex_);
    watching_ = nullptr;
  }
  // A watch with a token that is out of date is refused like one without permission.
  forget_token(ready.token);
  return ended;
}

Error Client::stream(Link& link, Context& context, const Bytes& first, const Bytes& last,
                     const std::function<void(const KeyValue*)>& heard) {
  auto both_ways = link.watch->Watch(&context.grpc);
  pb::WatchRequest request;
  request.mutable_create_request()->set_key(first);
  request.mutable_create_request()->set_range_end(last + std::string(1, '\0'));
  both_ways->Write(request);
  std::string cancelled;
  for (pb::WatchResponse response; cancelled.empty() && both_ways->Read(&response);) {
    if (response.canceled())
      cancelled = response.cancel_reason().empty() ? "it has ended the watch" : response.cancel_reason();
    else if (response.created())
      heard(nullptr);
    for (pb::Event& event : *response.mutable_events()) {
      KeyValue row = from_wire(*event.mutable_kv());
      if (event.type() == pb::Event::PUT) heard(&row);
    }
  }
  context.grpc.TryCancel();
  auto status = both_ways->Finish();
  if (cancelled.empty()) return link.judge(Purpose::kRead, status).error;
  return etcd::judge(Purpose::kRead, grpc::StatusCode::CANCELLED, cancelled, link.address).error;
}

void Client::stop_watching() {
  MutexLock lock(watch_mutex_);
  watching_stopped_ = true;
  if (watching_) watching_->grpc.TryCancel();
}

void Client::failed(std::size_t index, const std::string& why) {
  bool newly_away = false;
  {
    MutexLock lock(mutex_);
    // Another thread has seen the same, and moved on already.
    if (index != current_) return;
    current_ = (current_ + 1) % endpoints_.size();
    if (++failures_ < endpoints_.size()) return;
    std::size_t rounds = failures_ / endpoints_.size();
    away_until_ = steady_now() + std::min(kAwayMax, kAwayMin * (1 << std::min<std::size_t>(rounds - 1, 10)));
    why_away_ = why;
    newly_away = known_ && !std::exchange(away_, true);
  }
  if (newly_away) say(LogLevel::kWarning, "etcd does not answer, and is waited for", why);
}

void Client::answered() {
  bool back = false;
  {
    MutexLock lock(mutex_);
    known_ = true;
    failures_ = 0;
    away_until_ = {};
    back = std::exchange(away_, false);
  }
  if (back) say(LogLevel::kInfo, "etcd answers again", {});
}

void Client::forget_token(const std::string& token) {
  MutexLock lock(mutex_);
  if (token_ == token) token_.clear();
}

void Client::say(LogLevel level, std::string_view message, std::string_view why) const {
  if (!log_) return;
  std::vector<LogField> fields = {{"endpoints", place_}};
  if (!why.empty()) fields.push_back({"why", why});
  try {
    log_({level, "etcd", message, fields});
  } catch (...) {
    // What the sink throws is dropped.
  }
}

}  // namespace perdure::etcd
