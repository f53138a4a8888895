// One connection of a client to a server, over TCP or a unix socket, that never waits: whoever owns it polls its
// socket.
//
//   connection.start(request);
//   while (!*connection.advance()) poll(connection.fd(), connection.events(), ...);
//   use(connection.take());
//
// The command line is made of it: `perdure work` waits for several of them and for its programs in one poll, all other
// commands through BlockingClient.
#pragma once

#include <string>
#include <vector>

#include "http/message.h"
#include "http/response_parser.h"
#include "http/url.h"

namespace perdure::http {

/// Not thread-safe.
class PolledConnection {
 public:
  explicit PolledConnection(Url url);
  ~PolledConnection();
  PolledConnection(const PolledConnection&) = delete;
  PolledConnection& operator=(const PolledConnection&) = delete;

  /// Connects without sending anything; over before there is a connection. Blocks for the name of a host.
  /// Errors: kUnavailable.
  Result<void> connect();
  /// Sends a request, over the connection that is there or over a new one. Nothing else may be under way.
  /// Errors: kUnavailable; nothing was sent then.
  Result<void> start(const Request& request);
  /// Moves on as far as it can without waiting; true once what was asked for is there. After an error the connection
  /// is closed, and the next start() opens another.
  /// Errors: kUnavailable if nothing was sent, kCommitUnknown if the connection was lost before the answer was whole,
  /// kTooLarge.
  Result<bool> advance();
  /// The answer, once advance() has said true.
  Response take();
  /// So much of the answer as is there.
  ResponseParser& parser() { return parser_; }

  bool busy() const { return state_ == State::kConnecting || state_ == State::kSending || state_ == State::kReading; }
  bool connected() const { return state_ != State::kClosed && state_ != State::kConnecting; }
  /// What to poll for while it is busy.
  int fd() const { return fd_; }
  short events() const;
  void close();
  const Url& url() const { return url_; }

 private:
  enum class State {
    kClosed,
    kConnecting,  ///< connect(2) is under way.
    kIdle,        ///< Connected, and nothing asked.
    kSending,     ///< unsent_ is not empty.
    kReading,     ///< All is sent, the answer is not whole.
  };

  struct Address {
    int family = 0;
    std::string bytes;  ///< A sockaddr.
  };

  Result<void> resolve();
  /// Begins to connect to the next address that can be begun with.
  Result<void> connect_next();
  Result<bool> finish_connect();
  Result<bool> send_more();
  Result<bool> read_more();
  std::unexpected<Error> lost(const std::string& why);
  std::string text_of(const Request& request) const;
  /// Whether the other end has closed an idle connection, or said something that nobody asked for.
  bool gone_while_idle() const;

  Url url_;
  State state_ = State::kClosed;
  int fd_ = -1;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  std::string unsent_;
  ResponseParser parser_;
};

}  // namespace perdure::http
