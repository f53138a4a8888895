#include "http/client_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <utility>

namespace perdure::http {
namespace {

namespace beast_http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kChunkBytes = std::size_t{16} << 10;
/// Of one answer: its own, and those of status 1xx before it.
constexpr int kHeadsMax = 8;

bool says_too_large(const error_code& error) {
  return error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow;
}

/// The connection ended, as opposed to: what came over it was not HTTP.
bool says_gone(const error_code& error) {
  return error == beast_http::error::end_of_stream || error.category() == boost::system::system_category() ||
         error.category() == boost::asio::error::get_misc_category();
}

}  // namespace

void ClientConnection::connect(std::vector<Endpoint> endpoints, ErrorDone done) {
  endpoints_ = std::move(endpoints);
  connected_ = std::move(done);
  connect_next(0);
}

void ClientConnection::connect_next(std::size_t index) {
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(endpoints_[index], [self = shared_from_this(), index](error_code error) {
    if (!self->connected_) return;
    if (error && index + 1 < self->endpoints_.size()) return self->connect_next(index + 1);
    if (!error && self->endpoints_[index].protocol().family() != AF_UNIX) {
      // A request is one write: nothing is gained by holding its end back.
      int on = 1;
      ::setsockopt(self->socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    std::exchange(self->connected_, nullptr)(error);
  });
}

void ClientConnection::exchange(std::shared_ptr<Wire> request, const Limits& limits, std::string where,
                                AnswerDone done) {
  request_ = std::move(request);
  limits_ = limits;
  where_ = std::move(where);
  done_ = std::move(done);
  heads_ = 0;
  body_.clear();
  chunk_.resize(kChunkBytes);
  beast_http::async_write(socket_, *request_, [self = shared_from_this()](error_code error, std::size_t) {
    if (!self->done_) return;
    // Whoever refuses a request may answer before it has read all of it, and close: so look for the answer.
    if (error && !says_gone(error)) return self->fail_with(error, "sending to");
    self->read_head();
  });
}

void ClientConnection::read_head() {
  parser_.emplace();
  parser_->header_limit(kAnswerHeaderBytesMax);
  // Counted here, for the library would take the memory that a header promises.
  parser_->body_limit(boost::none);
  beast_http::async_read_header(socket_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
    if (!self->done_) return;
    if (error) return self->fail_with(error, "reading the answer of");
    int status = static_cast<int>(self->parser_->get().result_int());
    if (status >= 200) return self->read_body();
    if (++self->heads_ < kHeadsMax && status != 101) return self->read_head();
    self->finish({.error = Error{ErrorCode::kUnavailable,
                                 self->where_ + " answered with status " + std::to_string(status) + " and no more"}});
  });
}

void ClientConnection::read_body() {
  if (parser_->is_done()) return finish(whole());
  auto length = parser_->content_length();
  if (length && *length > limits_.body_max && limits_.when_larger == WhenLarger::kRefuse)
    return took(limits_.body_max + 1);
  parser_->get().body() = {.data = chunk_.data(), .size = chunk_.size(), .more = true};
  beast_http::async_read_some(socket_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
    if (!self->done_) return;
    if (error == beast_http::error::need_buffer) error = {};
    if (error) return self->fail_with(error, "reading the answer of");
    self->took(self->chunk_.size() - self->parser_->get().body().size);
  });
}

void ClientConnection::took(std::size_t bytes) {
  bool too_large = bytes > limits_.body_max - body_.size();
  if (too_large && limits_.when_larger == WhenLarger::kRefuse)
    return finish({.error = Error{ErrorCode::kTooLarge,
                                  where_ + " answered with more than " + std::to_string(limits_.body_max) + " bytes"}});
  body_.append(chunk_.data(), std::min(bytes, limits_.body_max - body_.size()));
  if (!too_large) return read_body();
  Answer cut = whole();
  cut.reusable = false;
  finish(std::move(cut));
}

ClientConnection::Answer ClientConnection::whole() {
  const auto& message = parser_->get();
  Response response{.status = static_cast<int>(message.result_int())};
  for (const auto& field : message) response.headers.add(std::string(field.name_string()), std::string(field.value()));
  response.body = std::move(body_);
  // Bytes behind the answer belong to no request.
  bool reusable = parser_->keep_alive() && parser_->is_done() && buffer_.size() == 0;
  return {.response = std::move(response), .reusable = reusable};
}

void ClientConnection::fail_with(error_code error, std::string_view doing) {
  Answer answer;
  answer.unanswered = says_gone(error) && heads_ == 0 && (!parser_ || !parser_->got_some()) && buffer_.size() == 0;
  if (says_too_large(error))
    answer.error = Error{ErrorCode::kTooLarge, where_ + " answered with more than " +
                                                   std::to_string(kAnswerHeaderBytesMax) + " bytes of headers"};
  else if (says_gone(error) || error == beast_http::error::partial_message)
    answer.error = Error{ErrorCode::kUnavailable, std::string(doing) + " " + where_ + " failed: " +
                                                      (answer.unanswered ? "it closed the connection without an answer"
                                                                         : "the connection ended in the middle")};
  else
    answer.error = Error{ErrorCode::kUnavailable, where_ + " answered something that is not HTTP: " + error.message()};
  finish(std::move(answer));
}

void ClientConnection::finish(Answer answer) {
  used_ = used_ || answer.reusable;
  request_.reset();
  parser_.reset();
  auto done = std::exchange(done_, nullptr);
  done(std::move(answer));
}

bool ClientConnection::quiet() {
  char byte;
  return buffer_.size() == 0 && ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

void ClientConnection::rest(Duration idle, std::move_only_function<void()> late) {
  idle_timer_.expires_after(idle);
  idle_timer_.async_wait([late = std::move(late)](error_code error) mutable {
    if (!error) late();
  });
}

void ClientConnection::close() {
  connected_ = nullptr;
  done_ = nullptr;
  idle_timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace perdure::http
