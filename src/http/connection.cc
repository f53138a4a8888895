#include "http/connection.h"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <cerrno>

#include "http/problem.h"
#include "http/response_text.h"

namespace perdure::http {

namespace beast = boost::beast;

namespace {

/// For a client that was refused and still sends.
constexpr Duration kLinger = std::chrono::seconds(2);
constexpr std::size_t kLingerBytes = 16 << 20;

/// The request of a connection that it handles now. Answers at most once.
class LiveExchange : public Exchange, public ResponseStream, public std::enable_shared_from_this<LiveExchange> {
 public:
  LiveExchange(std::shared_ptr<Connection> connection, Request request)
      : Exchange(std::move(request)), connection_(std::move(connection)) {}
  ~LiveExchange() override {
    if (streaming_)
      end();
    else if (!answered_)
      connection_->finish(problem(500, "internal", "no part of perdure answered this request"));
  }

  bool is_local_socket() const override { return connection_->where() == Connection::Where::kUnix; }
  void answer(Response response) override {
    if (!answered_.exchange(true)) connection_->finish(std::move(response));
  }
  std::shared_ptr<ResponseStream> stream(Response head) override {
    if (!answered_.exchange(true)) {
      streaming_ = true;
      connection_->begin_stream(std::move(head));
    }
    return shared_from_this();
  }
  CancelSignal gone() override { return connection_->watch_gone(); }

  void write(std::string piece, Task sent) override { connection_->write(std::move(piece), std::move(sent)); }
  void end() override {
    if (streaming_.exchange(false)) connection_->end_stream();
  }

 private:
  const std::shared_ptr<Connection> connection_;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> streaming_ = false;
};

}  // namespace

bool Connections::add(const std::shared_ptr<Connection>& connection) {
  MutexLock lock(mutex_);
  if (stopping_ || connections_.size() >= limits.connections_max) return false;
  connections_.emplace(connection.get(), connection);
  return true;
}

void Connections::remove(Connection& connection) {
  MutexLock lock(mutex_);
  connections_.erase(&connection);
  if (connections_.empty()) changed_.notify_all();
}

std::size_t Connections::count() {
  MutexLock lock(mutex_);
  return connections_.size();
}

bool Connections::stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

std::vector<std::shared_ptr<Connection>> Connections::all() {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Connection>> out;
  for (auto& [raw, weak] : connections_)
    if (auto held = weak.lock()) out.push_back(std::move(held));
  return out;
}

void Connections::begin_stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (const auto& connection : all()) connection->close(Connection::Close::kWhenAnswered);
}

bool Connections::stop(Duration grace) {
  SteadyTime deadline = deadline_after(grace);
  MutexLock lock(mutex_);
  while (!connections_.empty() && steady_now() < deadline) changed_.wait_until(lock, deadline);
  if (connections_.empty()) return true;
  lock.unlock();
  for (const auto& connection : all()) connection->close(Connection::Close::kNow);
  return false;
}

Connection::Connection(std::shared_ptr<Connections> home, Socket socket, Where where)
    : home_(std::move(home)), where_(where), stream_(std::move(socket)), buffer_(home_->limits.head_bytes_max) {}

Connection::~Connection() {
  home_->remove(*this);
}

template <class F>
void Connection::on_strand(F task) {
  boost::asio::dispatch(stream_.get_executor(),
                        [self = shared_from_this(), task = std::move(task)]() mutable { task(*self); });
}

void Connection::start() {
  on_strand([](Connection& self) { self.await_first_byte(); });
}

void Connection::close(Close how) {
  bool now = how == Close::kNow;
  on_strand([now](Connection& self) {
    self.stopping_ = true;
    if (now || self.state_ == State::kIdle) return self.shut();
    self.keep_ = false;
    std::optional<CancelSource> gone;
    {
      MutexLock lock(self.mutex_);
      self.told_gone_ = true;
      gone = self.gone_;
    }
    if (gone) gone->cancel();
  });
}

void Connection::await_first_byte() {
  if (stopping_ || home_->stopping()) return shut();
  state_ = State::kIdle;
  if (buffer_.size() > 0) return read_head();
  stream_.expires_after(home_->limits.idle_time);
  stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](Code code, std::size_t bytes) {
    if (code) return self->shut();
    self->buffer_.commit(bytes);
    self->read_head();
  });
}

void Connection::read_head() {
  state_ = State::kReading;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(home_->limits.head_bytes_max));
  parser_->body_limit(home_->limits.body_bytes_max);
  stream_.expires_after(home_->limits.head_time);
  beast::http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](Code code, std::size_t) {
    if (code) return self->refuse(code);
    self->read_body();
  });
}

void Connection::read_body() {
  // Where the body ends must not be a matter of opinion: what one server takes for it, another takes for a request.
  if (parser_->get().count(beast::http::field::transfer_encoding) > 0 && !parser_->chunked()) {
    keep_ = false;
    unread_ = true;
    return send(problem(400, "invalid_argument", "the only Transfer-Encoding that is known is 'chunked'"));
  }
  if (parser_->is_done()) return handle();
  stream_.expires_after(home_->limits.body_time);
  auto read_rest = [self = shared_from_this()] {
    beast::http::async_read(self->stream_, self->buffer_, *self->parser_,
                            [self](Code code, std::size_t) { self->read(code); });
  };
  auto expect = parser_->get()[beast::http::field::expect];
  if (!beast::iequals(expect, "100-continue")) return read_rest();
  send_text("HTTP/1.1 100 Continue\r\n\r\n", {}, std::move(read_rest));
}

void Connection::read(Code code) {
  if (code) return refuse(code);
  handle();
}

void Connection::handle() {
  state_ = State::kHandling;
  stream_.expires_never();
  auto message = parser_->release();
  keep_ = message.keep_alive() && !stopping_;
  head_only_ = message.method() == beast::http::verb::head;
  Request request{std::string(message.method_string()), std::string(message.target()), {}, std::move(message.body())};
  for (const auto& field : message) request.headers.add(std::string(field.name_string()), std::string(field.value()));
  parser_.reset();
  {
    MutexLock lock(mutex_);
    gone_.reset();
  }
  home_->handler(std::make_shared<LiveExchange>(shared_from_this(), std::move(request)));
}

void Connection::refuse(Code code) {
  using beast::http::error;
  keep_ = false;
  unread_ = true;
  if (code == error::end_of_stream || code == boost::asio::error::connection_reset) return shut();
  // Its time being over has closed the socket already.
  if (code == beast::error::timeout) return shut();
  if (code == error::body_limit) return refuse_body();
  if (code == error::header_limit || code == error::buffer_overflow)
    return send(problem(431, "too_large", "the head of the request is too long"));
  if (code.category() == make_error_code(error::bad_method).category() && code != error::partial_message)
    return send(problem(400, "invalid_argument", "this is not a request of HTTP/1.1: " + code.message()));
  shut();
}

void Connection::refuse_body() {
  if (parser_ && home_->too_large)
    if (auto answer = home_->too_large(parser_->get().method_string(), parser_->get().target()))
      return send(std::move(*answer));
  send(problem(
      413, "too_large",
      "the body has more than " + std::to_string(home_->limits.body_bytes_max >> 20) + " MiB; send less at once"));
}

void Connection::finish(Response response) {
  on_strand([response = std::move(response)](Connection& self) mutable {
    if (self.state_ == State::kHandling) self.send(std::move(response));
  });
}

void Connection::send(Response response) {
  state_ = State::kWriting;
  if (stopping_) keep_ = false;
  std::string head = head_text(response, Body::kSized, keep_ ? Keep::kAlive : Keep::kClose);
  if (head_only_) response.body.clear();
  send_text(std::move(head), std::move(response.body), [self = shared_from_this()] { self->sent(); });
}

void Connection::send_text(std::string head, std::string body, std::move_only_function<void()> sent) {
  out_head_ = std::move(head);
  out_body_ = std::move(body);
  stream_.expires_after(home_->limits.write_time);
  std::array<boost::asio::const_buffer, 2> both = {boost::asio::buffer(out_head_), boost::asio::buffer(out_body_)};
  boost::asio::async_write(stream_, both,
                           [self = shared_from_this(), sent = std::move(sent)](Code code, std::size_t) mutable {
                             if (code) return self->shut();
                             sent();
                           });
}

void Connection::sent() {
  if (keep_) return await_first_byte();
  if (!unread_) return shut();
  // A connection that is closed with something unread is reset, and the answer lost before the client has seen it.
  Code ignored;
  stream_.socket().shutdown(Socket::shutdown_send, ignored);
  stream_.expires_after(kLinger);
  drain(kLingerBytes);
}

void Connection::drain(std::size_t left) {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this(), left](Code code, std::size_t bytes) {
    if (code || bytes >= left) return self->shut();
    self->drain(left - bytes);
  });
}

void Connection::begin_stream(Response head) {
  on_strand([head = std::move(head)](Connection& self) {
    if (self.state_ != State::kHandling) return;
    self.keep_ = false;
    if (self.head_only_) return self.send({head.status, head.headers, {}});
    self.state_ = State::kStreaming;
    // It ends with the connection, so that nobody has to wait for what is left of it.
    self.out_head_ = head_text(head, Body::kChunked, Keep::kClose);
  });
}

void Connection::write(std::string piece, Task sent) {
  on_strand([piece = std::move(piece), sent = std::move(sent)](Connection& self) mutable {
    if (self.state_ != State::kStreaming || self.ending_ || piece.empty()) {
      boost::asio::post(self.stream_.get_executor(), [sent = std::move(sent)]() mutable { sent(); });
      return;
    }
    std::array<char, 20> size{};
    int digits = std::snprintf(size.data(), size.size(), "%zx\r\n", piece.size());
    std::string head = std::move(self.out_head_);
    self.out_head_.clear();
    head.append(size.data(), static_cast<std::size_t>(digits));
    piece.append("\r\n");
    self.sending_ = true;
    self.send_text(std::move(head), std::move(piece), [sent = std::move(sent), &self]() mutable {
      self.sending_ = false;
      self.out_head_.clear();
      self.stream_.expires_never();
      if (self.ending_) self.send_last();
      sent();
    });
  });
}

void Connection::end_stream() {
  on_strand([](Connection& self) {
    if (self.state_ != State::kStreaming) return;
    self.ending_ = true;
    if (!self.sending_) self.send_last();
  });
}

void Connection::send_last() {
  state_ = State::kWriting;
  send_text(std::move(out_head_) + "0\r\n\r\n", {}, [self = shared_from_this()] { self->shut(); });
}

CancelSignal Connection::watch_gone() {
  std::optional<CancelSource> source;
  bool told;
  {
    MutexLock lock(mutex_);
    if (!gone_) gone_.emplace();
    source = gone_;
    told = told_gone_;
  }
  if (told)
    source->cancel();
  else
    on_strand([](Connection& self) { self.await_gone(); });
  return source->signal();
}

void Connection::await_gone() {
  if (watching_ || state_ == State::kClosed) return;
  watching_ = true;
  stream_.socket().async_wait(Socket::wait_read, [self = shared_from_this()](Code code) {
    self->watching_ = false;
    if (self->state_ == State::kClosed) return;
    char next;
    // What can be read may be the next request of a client that does not wait for answers; only its end matters, be
    // that a good one or a reset.
    ssize_t got = code ? 0 : ::recv(self->stream_.socket().native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    bool open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    bool waits = self->state_ == State::kHandling || self->state_ == State::kStreaming;
    // There was nothing to read, after all: what this was woken by is read by now.
    if (open && got < 0 && waits) return self->await_gone();
    if (open || (self->state_ != State::kHandling && self->state_ != State::kStreaming)) return;
    self->shut();
  });
}

void Connection::shut() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  Code ignored;
  stream_.socket().shutdown(Socket::shutdown_both, ignored);
  stream_.close();
  home_->remove(*this);
  std::optional<CancelSource> gone;
  {
    MutexLock lock(mutex_);
    told_gone_ = true;
    gone = gone_;
  }
  if (gone) gone->cancel();
}

}  // namespace perdure::http
