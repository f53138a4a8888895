#include "http/server.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/connection.h"
#include "http/io_context.h"

namespace perdure::http {

namespace asio = boost::asio;
using Code = boost::system::error_code;
using asio::ip::tcp;
using local = asio::local::stream_protocol;

namespace {

Error cannot_listen(const std::string& where, const Code& code) {
  if (code == asio::error::address_in_use)
    return {ErrorCode::kUnavailable,
            "something listens on " + where + " already; stop it, or choose another address with --listen"};
  if (code == asio::error::access_denied)
    return {ErrorCode::kPermissionDenied, "this user may not listen on " + where + ": " + code.message()};
  return {ErrorCode::kUnavailable, "cannot listen on " + where + ": " + code.message()};
}

Result<tcp::endpoint> parse_address(const std::string& text) {
  auto wrong = [&] {
    return fail(ErrorCode::kInvalidArgument,
                "'" + text + "' is no address to listen on; give numbers, as in 127.0.0.1:7420 or [::1]:7420");
  };
  std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong();
  std::string host = text.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  Code code;
  auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, code);
  std::string digits = text.substr(colon + 1);
  bool numeric = !digits.empty() && digits.size() <= 5 && digits.find_first_not_of("0123456789") == std::string::npos;
  if (code || !numeric || std::stoul(digits) > 65'535) return wrong();
  return tcp::endpoint(address, static_cast<std::uint16_t>(std::stoul(digits)));
}

/// A socket file that nobody answers at is one that a killed process has left behind.
Result<void> clear_old_socket(const std::string& path, asio::io_context& loop) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::kInvalidArgument, "the path of the socket, " + path + ", has more than " +
                                                 std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                                                 " bytes; choose a shorter one with --socket");
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode))
    return fail(ErrorCode::kUnavailable, path + " is there already, and is no socket; choose another with --socket");
  local::socket probe(loop);
  Code code;
  probe.connect(local::endpoint(path), code);
  if (!code) return fail(ErrorCode::kUnavailable, "another daemon answers at " + path + " already");
  if (code != asio::error::connection_refused)
    return fail(ErrorCode::kUnavailable, "whether anybody answers at " + path + " cannot be told: " + code.message());
  ::unlink(path.c_str());
  return {};
}

}  // namespace

struct Server::Parts : std::enable_shared_from_this<Server::Parts> {
  Parts(asio::io_context& context, ServerOptions given, Handler handler)
      : loop(context),
        options(std::move(given)),
        connections(std::make_shared<Connections>(options, std::move(handler))),
        strand(asio::make_strand(context)),
        tcp_acceptor(strand),
        local_acceptor(strand),
        tcp_pause(strand),
        local_pause(strand) {}

  Result<void> listen_tcp();
  Result<void> listen_local();
  template <class Acceptor>
  void accept(Acceptor& acceptor, Connection::Where where);
  void close();

  asio::io_context& loop;
  const ServerOptions options;
  const std::shared_ptr<Connections> connections;
  Strand strand;
  asio::basic_socket_acceptor<tcp, Strand> tcp_acceptor;
  asio::basic_socket_acceptor<local, Strand> local_acceptor;
  using Timer = asio::basic_waitable_timer<asio::steady_timer::clock_type,
                                           asio::wait_traits<asio::steady_timer::clock_type>, Strand>;
  Timer tcp_pause;
  Timer local_pause;
  std::uint16_t port = 0;
  std::atomic<bool> unlinked = false;
};

Result<void> Server::Parts::listen_tcp() {
  if (options.listen.empty()) return {};
  auto endpoint = parse_address(options.listen);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  Code code;
  tcp_acceptor.open(endpoint->protocol(), code);
  if (!code) tcp_acceptor.set_option(tcp::acceptor::reuse_address(true), code);
  if (!code) tcp_acceptor.bind(*endpoint, code);
  if (!code) tcp_acceptor.listen(4096, code);
  if (code) return std::unexpected(cannot_listen(options.listen, code));
  port = tcp_acceptor.local_endpoint().port();
  return {};
}

Result<void> Server::Parts::listen_local() {
  if (options.socket.empty()) return {};
  if (auto clear = clear_old_socket(options.socket, loop); !clear) return clear;
  Code code;
  local_acceptor.open(local(), code);
  // From its first moment on, nobody else may open it.
  mode_t before = ::umask(0177);
  if (!code) local_acceptor.bind(local::endpoint(options.socket), code);
  ::umask(before);
  if (!code) local_acceptor.listen(4096, code);
  if (code) return std::unexpected(cannot_listen(options.socket, code));
  return {};
}

template <class Acceptor>
void Server::Parts::accept(Acceptor& acceptor, Connection::Where where) {
  acceptor.async_accept(asio::make_strand(loop), [self = shared_from_this(), &acceptor, where](Code code, auto socket) {
    if (!acceptor.is_open()) return;
    if (code) {
      // No descriptors are left, most likely: some connections will end.
      Timer& pause = where == Connection::Where::kTcp ? self->tcp_pause : self->local_pause;
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([self, &acceptor, where](Code) {
        if (acceptor.is_open()) self->accept(acceptor, where);
      });
      return;
    }
    if (where == Connection::Where::kTcp) socket.set_option(boost::asio::ip::tcp::no_delay(true), code);
    auto connection = std::make_shared<Connection>(self->connections, Socket(std::move(socket)), where);
    if (self->connections->add(connection)) connection->start();
    self->accept(acceptor, where);
  });
}

void Server::Parts::close() {
  asio::dispatch(strand, [self = shared_from_this()] {
    Code ignored;
    self->tcp_acceptor.close(ignored);
    self->local_acceptor.close(ignored);
    self->tcp_pause.cancel();
    self->local_pause.cancel();
  });
  // Once: by the next time it may be the socket of another.
  if (!options.socket.empty() && !unlinked.exchange(true)) ::unlink(options.socket.c_str());
}

Server::Server(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Server>> Server::start(Io& io, ServerOptions options, Handler handler) {
  auto parts = std::make_shared<Parts>(io.context().loop, std::move(options), std::move(handler));
  if (auto good = parts->listen_tcp(); !good) return std::unexpected(std::move(good.error()));
  if (auto good = parts->listen_local(); !good) return std::unexpected(std::move(good.error()));
  asio::dispatch(parts->strand, [parts] {
    if (parts->tcp_acceptor.is_open()) parts->accept(parts->tcp_acceptor, Connection::Where::kTcp);
    if (parts->local_acceptor.is_open()) parts->accept(parts->local_acceptor, Connection::Where::kUnix);
  });
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::~Server() {
  stop(Duration::zero());
}

std::uint16_t Server::port() const {
  return parts_->port;
}

const std::string& Server::socket() const {
  return parts_->options.socket;
}

std::size_t Server::connections() const {
  return parts_->connections->count();
}

void Server::begin_stop() {
  parts_->close();
  parts_->connections->begin_stop();
}

bool Server::stop(Duration grace) {
  begin_stop();
  return parts_->connections->stop(grace);
}

}  // namespace perdure::http
