#include "http/polled_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace perdure::http {
namespace {

std::string system_error(int number) {
  return std::string(std::strerror(number));
}

std::string place_of(const Url& url) {
  return url.scheme == Url::Scheme::kUnix ? "unix://" + url.path : "http://" + url.authority();
}

std::unexpected<Error> unreachable(const Url& url, const std::string& why) {
  return fail(ErrorCode::kUnavailable, "nothing answers at " + place_of(url) + ": " + why);
}

}  // namespace

PolledConnection::PolledConnection(Url url) : url_(std::move(url)) {}

PolledConnection::~PolledConnection() {
  close();
}

void PolledConnection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  state_ = State::kClosed;
  unsent_.clear();
}

Result<void> PolledConnection::resolve() {
  addresses_.clear();
  next_address_ = 0;
  if (url_.scheme == Url::Scheme::kUnix) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (url_.path.size() >= sizeof address.sun_path) return unreachable(url_, "the path is too long for a socket");
    std::memcpy(address.sun_path, url_.path.data(), url_.path.size());
    addresses_.push_back({AF_UNIX, std::string(reinterpret_cast<const char*>(&address), sizeof address)});
    return {};
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int failed = getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found);
  if (failed != 0) return unreachable(url_, gai_strerror(failed));
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (addrinfo* each = found; each != nullptr; each = each->ai_next)
    addresses_.push_back(
        {each->ai_family, std::string(reinterpret_cast<const char*>(each->ai_addr), each->ai_addrlen)});
  return {};
}

Result<void> PolledConnection::connect() {
  close();
  if (auto resolved = resolve(); !resolved) return resolved;
  return connect_next();
}

Result<void> PolledConnection::connect_next() {
  std::string why = "it has no address";
  while (next_address_ < addresses_.size()) {
    const Address& address = addresses_[next_address_++];
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      why = system_error(errno);
      continue;
    }
    int on = 1;
    if (address.family != AF_UNIX) (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(address.bytes.data()),
                  static_cast<socklen_t>(address.bytes.size())) == 0) {
      state_ = unsent_.empty() ? State::kIdle : State::kSending;
      return {};
    }
    if (errno == EINPROGRESS) {
      state_ = State::kConnecting;
      return {};
    }
    why = system_error(errno);
  }
  close();
  return unreachable(url_, why);
}

bool PolledConnection::gone_while_idle() const {
  pollfd one = {fd_, POLLIN, 0};
  return ::poll(&one, 1, 0) != 0;
}

std::string PolledConnection::text_of(const Request& request) const {
  std::string prefix = url_.scheme == Url::Scheme::kUnix ? "" : url_.path;
  while (prefix.ends_with('/')) prefix.pop_back();
  std::string text = request.method + " " + prefix + request.target + " HTTP/1.1\r\nHost: " + url_.authority() + "\r\n";
  for (const Header& header : request.headers.all()) text += header.name + ": " + header.value + "\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

Result<void> PolledConnection::start(const Request& request) {
  parser_ = {};
  std::string text = text_of(request);
  if (state_ == State::kIdle && !gone_while_idle()) {
    unsent_ = std::move(text);
    state_ = State::kSending;
    return {};
  }
  close();
  if (auto resolved = resolve(); !resolved) return resolved;
  unsent_ = std::move(text);
  return connect_next();
}

short PolledConnection::events() const {
  if (state_ == State::kConnecting || state_ == State::kSending) return POLLOUT;
  return POLLIN;
}

Result<bool> PolledConnection::advance() {
  if (state_ == State::kConnecting) {
    auto connected = finish_connect();
    if (!connected || !*connected || state_ == State::kIdle) return connected;
  }
  if (state_ == State::kSending) {
    auto sent = send_more();
    if (!sent || state_ == State::kSending) return sent;
  }
  if (state_ == State::kReading) return read_more();
  return state_ == State::kIdle;
}

Result<bool> PolledConnection::finish_connect() {
  pollfd one = {fd_, POLLOUT, 0};
  if (::poll(&one, 1, 0) == 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  (void)::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    state_ = unsent_.empty() ? State::kIdle : State::kSending;
    return true;
  }
  if (next_address_ == addresses_.size()) {
    close();
    return unreachable(url_, system_error(error));
  }
  if (auto next = connect_next(); !next) return std::unexpected(std::move(next.error()));
  return connected();
}

std::unexpected<Error> PolledConnection::lost(const std::string& why) {
  close();
  return fail(ErrorCode::kCommitUnknown, "lost the daemon at " + place_of(url_) + " before it answered: " + why);
}

Result<bool> PolledConnection::send_more() {
  while (!unsent_.empty()) {
    ssize_t sent = ::send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (sent < 0) {
      // A server that refuses a body may answer and close before it has read all of it: look for that answer.
      int error = errno;
      if (auto read = read_more(); read && *read) return true;
      return lost(system_error(error));
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  state_ = State::kReading;
  return false;
}

Result<bool> PolledConnection::read_more() {
  std::array<char, 65536> buffer;
  while (!parser_.done()) {
    ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got < 0) return lost(system_error(errno));
    auto read = got == 0 ? parser_.end() : parser_.feed({buffer.data(), static_cast<std::size_t>(got)});
    if (!read && read.error().code == ErrorCode::kTooLarge) {
      close();
      return std::unexpected(std::move(read.error()));
    }
    if (!read) return lost(read.error().message);
    if (got == static_cast<ssize_t>(buffer.size()) || parser_.done()) continue;
    return false;
  }
  if (parser_.keeps_alive() && unsent_.empty()) {
    state_ = State::kIdle;
  } else {
    close();
  }
  return true;
}

Response PolledConnection::take() {
  return std::exchange(parser_.response(), {});
}

}  // namespace perdure::http
