// The HTTP/1.1 server: sockets, connections, and the limits on what a stranger may send.
//
// A connection handles one request after the other; those that are pipelined wait in its buffer. It costs no thread,
// and while it waits for an answer nothing but its memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/io.h"
#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure::http {

struct ServerLimits {
  std::size_t head_bytes_max = 16 << 10;
  std::size_t body_bytes_max = 8 << 20;
  /// More are closed at once.
  std::size_t connections_max = 10'000;
  /// For the head of a request from its first byte on, and for its body.
  Duration head_time = std::chrono::seconds(10);
  Duration body_time = std::chrono::seconds(60);
  /// For a client that takes its answer.
  Duration write_time = std::chrono::seconds(60);
  /// Between two requests.
  Duration idle_time = std::chrono::seconds(120);
};

struct ServerOptions {
  /// An address of this machine as numbers, "127.0.0.1:7420" or "[::1]:7420"; port 0 takes a free one; empty for none.
  std::string listen = "127.0.0.1:7420";
  /// The path of a unix socket, made with mode 0600; empty for none. A socket that nobody answers at is replaced.
  std::string socket = {};
  ServerLimits limits = {};
  /// What a request with too large a body is answered; a problem if this is empty, or answers nothing.
  std::function<std::optional<Response>(std::string_view method, std::string_view target)> too_large = {};
};

class Server {
 public:
  /// Called on a thread of Io for each request; must not block.
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;

  /// Listens. `io` outlives it. Errors: kInvalidArgument (the address), kUnavailable if something listens there
  /// already, kPermissionDenied.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(Io& io, ServerOptions options, Handler handler);
  /// As stop() without a grace.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port that it listens on; 0 if it does not.
  std::uint16_t port() const;
  /// The path of its unix socket; empty if there is none.
  const std::string& socket() const;
  std::size_t connections() const;

  /// Takes no more connections and requests, and gives all `gone` signals. Idempotent.
  void begin_stop();
  /// The same; then waits up to `grace` for the answers under way, and closes every connection. Blocks. Idempotent.
  /// Whether all were answered.
  bool stop(Duration grace);

 private:
  struct Parts;
  explicit Server(std::shared_ptr<Parts> parts);
  std::shared_ptr<Parts> parts_;
};

}  // namespace perdure::http
