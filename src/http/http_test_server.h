// A server of a few lines for the tests of the client and of what is pushed: raw sockets on loopback, a thread for each
// connection, and a function that says byte by byte what is answered.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "http/message.h"
#include "http/url.h"
#include "runtime/latch.h"
#include "runtime/mutex.h"

namespace perdure::http {

struct TestReply {
  enum class Then { kKeep, kClose, kHang };
  std::string bytes = {};
  Then then = Then::kKeep;
};

/// An answer as servers write it.
inline TestReply test_reply(int status, const std::string& body = {}, const std::string& headers = {}) {
  return {"HTTP/1.1 " + std::to_string(status) + " Whatever\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n" + headers + "\r\n" + body};
}

class TestServer {
 public:
  using Handler = std::function<TestReply(const Request&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 256) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TestServer() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    stopped_.set();
    {
      MutexLock lock(mutex_);
      for (int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (int socket : sockets_) ::close(socket);
  }

  std::uint16_t port() const { return port_; }
  Url url(const std::string& path = "/") const {
    return *Url::parse("http://127.0.0.1:" + std::to_string(port_) + path);
  }
  std::size_t connections() {
    MutexLock lock(mutex_);
    return sockets_.size();
  }
  std::vector<Request> requests() {
    MutexLock lock(mutex_);
    return requests_;
  }
  /// Blocks until there were so many requests.
  void await_requests(std::size_t count) {
    MutexLock lock(mutex_);
    while (requests_.size() < count) came_.wait(lock);
  }
  /// What hangs goes on: such connections are closed.
  void let_go() { stopped_.set(); }

 private:
  void accept_all() {
    for (;;) {
      int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) return;
      MutexLock lock(mutex_);
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string buffer;
    Request request;
    while (read_request(socket, buffer, request)) {
      {
        MutexLock lock(mutex_);
        requests_.push_back(request);
        came_.notify_all();
      }
      TestReply reply = handler_(request);
      if (!write_all(socket, reply.bytes)) break;
      if (reply.then == TestReply::Then::kHang) stopped_.wait();
      if (reply.then != TestReply::Then::kKeep) break;
    }
    ::shutdown(socket, SHUT_RDWR);
  }

  static bool read_more(int socket, std::string& buffer) {
    char bytes[16384];
    ssize_t got = ::recv(socket, bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  static bool write_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t put = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  static bool read_request(int socket, std::string& buffer, Request& request) {
    std::size_t end;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
      if (!read_more(socket, buffer)) return false;
    request = {};
    std::size_t line = buffer.find("\r\n"), blank = buffer.find(' ');
    request.method = buffer.substr(0, blank);
    request.target = buffer.substr(blank + 1, buffer.find(' ', blank + 1) - blank - 1);
    while (line < end) {
      std::size_t next = buffer.find("\r\n", line + 2), colon = buffer.find(": ", line);
      request.headers.add(buffer.substr(line + 2, colon - line - 2), buffer.substr(colon + 2, next - colon - 2));
      line = next;
    }
    const std::string* length = request.headers.find("Content-Length");
    std::size_t body = length ? std::stoul(*length) : 0;
    while (buffer.size() < end + 4 + body)
      if (!read_more(socket, buffer)) return false;
    request.body = buffer.substr(end + 4, body);
    buffer.erase(0, end + 4 + body);
    return true;
  }

  const Handler handler_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  Latch stopped_;
  Mutex mutex_;
  CondVar came_;
  std::vector<int> sockets_;
  std::vector<Request> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace perdure::http
