// One connection of the server; see http/server.h. Only server.cc and connection.cc include it, for the sake of Boost.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/server.h"
#include "runtime/mutex.h"
#include "session/cancel_source.h"

namespace perdure::http {

using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
/// TCP and unix sockets alike, so that there is one kind of connection.
using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, Strand>;

class Connection;

/// All connections of a server, and what they have in common.
class Connections {
 public:
  Connections(const ServerOptions& options, Server::Handler handle)
      : limits(options.limits), too_large(options.too_large), handler(std::move(handle)) {}
  /// False if there are too many, or the server stops.
  bool add(const std::shared_ptr<Connection>& connection) PERDURE_EXCLUDES(mutex_);
  void remove(Connection& connection) PERDURE_EXCLUDES(mutex_);
  std::size_t count() PERDURE_EXCLUDES(mutex_);
  bool stopping() PERDURE_EXCLUDES(mutex_);
  /// See Server.
  void begin_stop() PERDURE_EXCLUDES(mutex_);
  bool stop(Duration grace) PERDURE_EXCLUDES(mutex_);

  const ServerLimits limits;
  const decltype(ServerOptions::too_large) too_large;
  const Server::Handler handler;

 private:
  std::vector<std::shared_ptr<Connection>> all() PERDURE_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::map<Connection*, std::weak_ptr<Connection>> connections_ PERDURE_GUARDED_BY(mutex_);
  bool stopping_ PERDURE_GUARDED_BY(mutex_) = false;
};

/// Where a connection is.
///
///     kIdle ( first byte: kReading ( whole request: kHandling ( answer: kWriting kIdle ) ) ) kClosed
///
/// All of it happens on its strand, but for `finish` and `write`, which come from any thread and go there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum class Where { kTcp, kUnix };
  Connection(std::shared_ptr<Connections> home, Socket socket, Where where);
  ~Connection();

  void start();
  /// The server stops: an idle one closes, a busy one is told that nobody waits for it any more, and closes when it has
  /// answered; with `kNow` whatever it does.
  enum class Close { kWhenAnswered, kNow };
  void close(Close how);

  Where where() const { return where_; }

  // For the exchange of the request under way, on any thread.
  void finish(Response response);
  void begin_stream(Response head);
  void write(std::string piece, Task sent);
  void end_stream();
  CancelSignal watch_gone();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Code = boost::beast::error_code;
  enum class State { kIdle, kReading, kHandling, kWriting, kStreaming, kClosed };

  void await_first_byte();
  void read_head();
  void read_body();
  void read(Code code);
  void handle();
  /// Tells the client what is wrong with what it sent, and closes.
  void refuse(Code code);
  void refuse_body();
  void send(Response response);
  void send_text(std::string head, std::string body, std::move_only_function<void()> sent);
  void sent();
  void drain(std::size_t left);
  void send_last();
  void await_gone();
  void shut();
  template <class F>
  void on_strand(F task);

  const std::shared_ptr<Connections> home_;
  const Where where_;
  boost::beast::basic_stream<boost::asio::generic::stream_protocol, Strand> stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  State state_ = State::kIdle;
  bool keep_ = true;
  bool head_only_ = false;
  bool stopping_ = false;
  bool unread_ = false;
  /// Of a stream: a piece is on its way, and whether it is the last.
  bool sending_ = false;
  bool ending_ = false;
  /// A wait for the end of the stream is under way.
  bool watching_ = false;
  std::string out_head_;
  std::string out_body_;
  Mutex mutex_;
  std::optional<CancelSource> gone_ PERDURE_GUARDED_BY(mutex_);
  bool told_gone_ PERDURE_GUARDED_BY(mutex_) = false;
};

}  // namespace perdure::http
