// One connection of the client, and one request at a time on it. Only the files of the client include this: Boost's
// headers are slow to compile.
//
//     connect { exchange } close
//
// Not thread-safe: everything happens on the strand that it was made with. What it was asked for is answered once,
// unless it was closed before.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/client.h"

namespace perdure::http {

class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  using ErrorDone = std::move_only_function<void(boost::system::error_code)>;
  using Wire = boost::beast::http::request<boost::beast::http::string_body>;

  struct Limits {
    std::size_t body_max;
    WhenLarger when_larger;
  };
  struct Answer {
    /// Empty if there was none: see `error`.
    std::optional<Response> response = {};
    std::optional<Error> error = {};
    /// Another request may go over the same connection.
    bool reusable = false;
    /// Not a byte of an answer came, because the connection ended.
    bool unanswered = false;
  };
  using AnswerDone = std::move_only_function<void(Answer)>;

  explicit ClientConnection(const Strand& strand) : socket_(strand), idle_timer_(strand) {}

  /// Tries them in their order.
  void connect(std::vector<Endpoint> endpoints, ErrorDone done);
  /// `where` is for messages.
  void exchange(std::shared_ptr<Wire> request, const Limits& limits, std::string where, AnswerDone done);
  /// Whether the other side has neither closed it nor said anything that nobody asked for.
  bool quiet();
  /// Nothing is answered any more.
  void close();
  /// Calls `late` after `idle`, unless it is closed or used before.
  void rest(Duration idle, std::move_only_function<void()> late);
  void wake() { idle_timer_.cancel(); }

  /// It has carried a request and its answer before.
  bool used() const { return used_; }

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;

  void connect_next(std::size_t index);
  void read_head();
  void read_body();
  void took(std::size_t bytes);
  void finish(Answer answer);
  void fail_with(boost::system::error_code error, std::string_view doing);
  Answer whole();

  boost::asio::generic::stream_protocol::socket socket_;
  boost::asio::steady_timer idle_timer_;
  boost::beast::flat_buffer buffer_;
  bool used_ = false;

  std::vector<Endpoint> endpoints_;
  ErrorDone connected_;

  // Of the exchange that is under way.
  std::shared_ptr<Wire> request_;
  std::string where_;
  Limits limits_ = {};
  AnswerDone done_;
  std::optional<Parser> parser_;
  std::string body_;
  std::vector<char> chunk_;
  int heads_ = 0;
};

}  // namespace perdure::http
