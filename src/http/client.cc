#include "http/client.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <map>

#include "http/client_connection.h"
#include "http/io_context.h"
#include "runtime/latch.h"
#include "runtime/mutex.h"

namespace perdure::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

bool fits_head(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

/// Errors: kInvalidArgument for what would become a second header, or another request.
Result<std::shared_ptr<ClientConnection::Wire>> to_wire(const Url& url, Request request) {
  auto wrong = [](std::string_view what) {
    return fail(ErrorCode::kInvalidArgument,
                std::string(what) + " has a line break or another control character in it");
  };
  if (request.target.empty()) request.target = url.scheme == Url::Scheme::kUnix ? "/" : url.path;
  if (!fits_head(request.target) || request.target.find(' ') != std::string::npos) return wrong("the target");
  auto wire = std::make_shared<ClientConnection::Wire>();
  wire->version(11);
  wire->method_string(request.method);
  wire->target(request.target);
  wire->set(beast_http::field::host, url.authority());
  wire->set(beast_http::field::user_agent, "perdure");
  for (const Header& header : request.headers.all()) {
    if (!fits_head(header.name) || !fits_head(header.value)) return wrong("the header " + header.name);
    wire->insert(header.name, header.value);
  }
  wire->body() = std::move(request.body);
  wire->prepare_payload();
  return wire;
}

std::string in_seconds(Duration duration) {
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// What asio's timers can wait for; nobody waits for longer.
constexpr Duration kLongest = std::chrono::hours(24 * 365);

}  // namespace

class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
 public:
  Impl(Io& io, ClientOptions options)
      : options_(std::move(options)), loop_(io.context().loop), strand_(asio::make_strand(loop_)) {}

  const ClientOptions& options() const { return options_; }
  void send(const Url& url, std::shared_ptr<ClientConnection::Wire> wire, const SendOptions& options, Done done)
      PERDURE_EXCLUDES(mutex_);
  void close() PERDURE_EXCLUDES(mutex_);

 private:
  using ConnectionPtr = std::shared_ptr<ClientConnection>;
  struct Target;
  /// A request on its way: waiting in the queue of its target, then with a connection, then gone.
  struct Sending {
    Sending(Url to, const ClientConnection::Strand& strand) : url(std::move(to)), timer(strand), resolver(strand) {}
    const Url url;
    std::shared_ptr<ClientConnection::Wire> wire;
    SendOptions options;
    Done done;
    asio::steady_timer timer;
    asio::ip::tcp::resolver resolver;
    Target* target = nullptr;
    ConnectionPtr connection;
    bool resent = false;
  };
  using SendingPtr = std::shared_ptr<Sending>;
  struct Target {
    std::string name;
    std::size_t connections = 0;  ///< Idle ones as well.
    std::vector<ConnectionPtr> idle;
    std::deque<SendingPtr> waiting;
    /// On whose behalf there is a connection.
    std::vector<SendingPtr> busy;
  };

  /// Runs `task` on the strand, unless it is closed: afterwards the loop may be gone. Whether it will.
  bool post(Task task) PERDURE_EXCLUDES(mutex_);

  // All that follows runs on the strand.
  void accept(const SendingPtr& sending);
  void begin(const SendingPtr& sending);
  void resolve(const SendingPtr& sending);
  void connect(const SendingPtr& sending, std::vector<ClientConnection::Endpoint> endpoints);
  void exchange(const SendingPtr& sending);
  void answered(const SendingPtr& sending, ClientConnection::Answer answer);
  /// It is over for this request; `kept` goes back to those that are idle, its connection is closed without.
  void finish(const SendingPtr& sending, Result<Response> result, ConnectionPtr kept = {});
  void next(Target& target);
  void drop_idle(const std::string& name, const ConnectionPtr& connection);
  void close_all();

  const ClientOptions options_;
  asio::io_context& loop_;
  ClientConnection::Strand strand_;
  std::map<std::string, Target> targets_;
  Mutex mutex_;
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
};

bool Client::Impl::post(Task task) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  asio::post(strand_, [self = shared_from_this(), task = std::move(task)]() mutable { task(); });
  return true;
}

void Client::Impl::send(const Url& url, std::shared_ptr<ClientConnection::Wire> wire, const SendOptions& options,
                        Done done) {
  auto sending = std::make_shared<Sending>(url, strand_);
  sending->wire = std::move(wire);
  sending->options = options;
  sending->done = std::move(done);
  if (!post([this, sending] { accept(sending); }))
    sending->done(fail(ErrorCode::kClosed, "the HTTP client of this process is closed"));
}

void Client::Impl::accept(const SendingPtr& sending) {
  // A connection to somewhere that only a prefix allows is not for those outside of the prefix.
  std::string name = options_.allowed.by_prefix(sending->url) ? "allowed " : "loopback ";
  name += sending->url.scheme == Url::Scheme::kUnix ? "unix:" + sending->url.path
                                                    : sending->url.host + " " + std::to_string(sending->url.port);
  Target& target = targets_[name];
  target.name = std::move(name);
  sending->target = &target;
  if (target.connections >= options_.connections_max && target.idle.empty() &&
      target.waiting.size() >= options_.waiting_max)
    return std::exchange(sending->done, nullptr)(
        fail(ErrorCode::kLimitExceeded, std::to_string(target.waiting.size()) + " requests wait for " +
                                            to_string(sending->url) + " already; try again later"));
  sending->timer.expires_after(std::min(sending->options.timeout, kLongest));
  sending->timer.async_wait([self = shared_from_this(), sending](error_code error) {
    if (!error)
      self->finish(sending, fail(ErrorCode::kDeadline, "no answer of " + to_string(sending->url) + " within " +
                                                           in_seconds(sending->options.timeout)));
  });
  sending->options.cancel.then([weak = weak_from_this(), waiting = std::weak_ptr(sending)] {
    if (auto self = weak.lock())
      self->post([raw = self.get(), waiting] {
        if (auto found = waiting.lock())
          raw->finish(found, fail(ErrorCode::kClosed, "the request to " + to_string(found->url) + " was abandoned"));
      });
  });
  target.waiting.push_back(sending);
  next(target);
}

/// Begins as many of those who wait as there are connections for.
void Client::Impl::next(Target& target) {
  while (!target.waiting.empty() && (!target.idle.empty() || target.connections < options_.connections_max)) {
    SendingPtr sending = std::move(target.waiting.front());
    target.waiting.pop_front();
    target.busy.push_back(sending);
    begin(sending);
  }
  if (target.connections == 0 && target.waiting.empty()) targets_.erase(std::string(target.name));
}

void Client::Impl::begin(const SendingPtr& sending) {
  Target& target = *sending->target;
  while (!target.idle.empty()) {
    // The one that was used last is the most likely to be still there.
    ConnectionPtr connection = std::move(target.idle.back());
    target.idle.pop_back();
    connection->wake();
    if (connection->quiet()) {
      sending->connection = std::move(connection);
      return exchange(sending);
    }
    connection->close();
    --target.connections;
  }
  ++target.connections;
  sending->connection = std::make_shared<ClientConnection>(strand_);
  resolve(sending);
}

void Client::Impl::resolve(const SendingPtr& sending) {
  const Url& url = sending->url;
  if (url.scheme == Url::Scheme::kUnix) return connect(sending, {asio::local::stream_protocol::endpoint(url.path)});
  // A numeric one was checked before.
  error_code no_address;
  if (auto address = asio::ip::make_address(url.host, no_address); !no_address)
    return connect(sending, {asio::ip::tcp::endpoint(address, url.port)});
  sending->resolver.async_resolve(
      url.host, std::to_string(url.port), asio::ip::tcp::resolver::numeric_service,
      [self = shared_from_this(), sending](error_code error, const asio::ip::tcp::resolver::results_type& found) {
        if (!sending->done) return;
        if (error)
          return self->finish(sending, fail(ErrorCode::kUnavailable, "the host of " + to_string(sending->url) +
                                                                         " cannot be found: " + error.message()));
        bool anywhere = self->options_.allowed.by_prefix(sending->url);
        std::vector<ClientConnection::Endpoint> endpoints;
        std::string refused;
        for (const auto& entry : found) {
          std::string address = entry.endpoint().address().to_string();
          if (anywhere || judge_host(address) == HostIs::kLoopback)
            endpoints.emplace_back(entry.endpoint());
          else
            refused = address;
        }
        if (endpoints.empty()) return self->finish(sending, std::unexpected(refused_target(sending->url, refused)));
        self->connect(sending, std::move(endpoints));
      });
}

void Client::Impl::connect(const SendingPtr& sending, std::vector<ClientConnection::Endpoint> endpoints) {
  sending->connection->connect(std::move(endpoints), [this, self = shared_from_this(), sending](error_code error) {
    if (error)
      return finish(sending, fail(ErrorCode::kUnavailable,
                                  "connecting to " + to_string(sending->url) + " failed: " + error.message()));
    exchange(sending);
  });
}

void Client::Impl::exchange(const SendingPtr& sending) {
  sending->connection->exchange(sending->wire, {sending->options.body_max, sending->options.when_larger},
                                to_string(sending->url),
                                [this, self = shared_from_this(), sending](ClientConnection::Answer answer) {
                                  answered(sending, std::move(answer));
                                });
}

void Client::Impl::answered(const SendingPtr& sending, ClientConnection::Answer answer) {
  if (answer.unanswered && sending->connection->used() && !sending->resent &&
      sending->options.resend == Resend::kIfUnanswered) {
    sending->resent = true;
    sending->connection->close();
    sending->connection = std::make_shared<ClientConnection>(strand_);
    return resolve(sending);
  }
  if (answer.error) return finish(sending, std::unexpected(std::move(*answer.error)));
  finish(sending, std::move(*answer.response), answer.reusable ? sending->connection : nullptr);
}

void Client::Impl::finish(const SendingPtr& sending, Result<Response> result, ConnectionPtr kept) {
  if (!sending->done) return;
  auto done = std::exchange(sending->done, nullptr);
  sending->timer.cancel();
  sending->resolver.cancel();
  Target& target = *sending->target;
  if (std::erase(target.waiting, sending) == 0) {
    std::erase(target.busy, sending);
    ConnectionPtr connection = std::move(sending->connection);
    if (kept) {
      target.idle.push_back(kept);
      kept->rest(std::min(options_.idle_max, kLongest),
                 [weak = weak_from_this(), name = target.name, connection = std::weak_ptr(kept)] {
                   auto self = weak.lock();
                   if (auto idle = connection.lock(); self && idle) self->drop_idle(name, idle);
                 });
    } else {
      if (connection) connection->close();
      --target.connections;
    }
  }
  next(target);
  done(std::move(result));
}

void Client::Impl::drop_idle(const std::string& name, const ConnectionPtr& connection) {
  auto target = targets_.find(name);
  // It may be in use again by now.
  if (target == targets_.end() || std::erase(target->second.idle, connection) == 0) return;
  connection->close();
  --target->second.connections;
  next(target->second);
}

void Client::Impl::close_all() {
  std::vector<SendingPtr> all;
  for (auto& [name, target] : targets_) {
    all.insert(all.end(), target.waiting.begin(), target.waiting.end());
    all.insert(all.end(), target.busy.begin(), target.busy.end());
    target.waiting.clear();
    for (const ConnectionPtr& connection : target.idle) connection->close();
    target.connections -= target.idle.size();
    target.idle.clear();
  }
  for (const SendingPtr& sending : all) {
    if (sending->connection) sending->connection->close();
    sending->timer.cancel();
    sending->resolver.cancel();
    if (sending->done)
      std::exchange(sending->done, nullptr)(fail(ErrorCode::kClosed, "the HTTP client of this process was closed"));
  }
  targets_.clear();
}

void Client::Impl::close() {
  auto closed = std::make_shared<Latch>();
  {
    MutexLock lock(mutex_);
    // With the lock held, so that nothing is posted behind it.
    if (!std::exchange(closed_, true))
      asio::post(strand_, [self = shared_from_this(), closed] {
        self->close_all();
        closed->set();
      });
    else
      closed->set();
  }
  closed->wait();
}

Client::Client(Io& io, ClientOptions options) : impl_(std::make_shared<Impl>(io, std::move(options))) {}

Client::~Client() {
  close();
}

void Client::send(const Url& url, Request request, const SendOptions& options, Done done) {
  if (auto allowed = impl_->options().allowed.check(url); !allowed)
    return done(std::unexpected(std::move(allowed.error())));
  auto wire = to_wire(url, std::move(request));
  if (!wire) return done(std::unexpected(std::move(wire.error())));
  impl_->send(url, std::move(*wire), options, std::move(done));
}

Result<Response> Client::send_and_wait(const Url& url, Request request, const SendOptions& options) {
  auto answer = std::make_shared<Promise<Result<Response>>>();
  send(url, std::move(request), options, [answer](Result<Response> result) { answer->set(std::move(result)); });
  return answer->take();
}

const AllowedTargets& Client::allowed() const {
  return impl_->options().allowed;
}

void Client::close() {
  impl_->close();
}

}  // namespace perdure::http
