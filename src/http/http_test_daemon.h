// A server for tests of clients: it answers what the test says, and records what it was asked as readable strings.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/message.h"

namespace perdure::http {

/// Thread-safe; each connection has a thread.
class HttpTestServer {
 public:
  /// Sends bytes as they are, to those handlers that answer by hand.
  class Wire {
   public:
    explicit Wire(int fd) : fd_(fd) {}
    void send(std::string_view bytes) {
      while (!bytes.empty()) {
        ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      }
    }

   private:
    int fd_;
  };

  /// Nothing: it was answered by hand, and the connection is closed.
  using Handler = std::function<std::optional<Response>(const Request&, Wire&)>;

  /// On a free port of loopback, or on the unix socket `path`.
  explicit HttpTestServer(Handler handler, const std::string& path = "") : handler_(std::move(handler)), path_(path) {
    if (path.empty()) {
      listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t size = sizeof address;
      (void)::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
      (void)::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
      port_ = ntohs(address.sin_port);
    } else {
      listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
      (void)::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    }
    (void)::listen(listener_, 64);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~HttpTestServer() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      std::lock_guard lock(mutex_);
      for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& each : connections_) each.join();
    ::close(listener_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  std::string url() const { return path_.empty() ? "http://127.0.0.1:" + std::to_string(port_) : "unix://" + path_; }

  /// "POST /v1/default/events {...}", in the order in which they came.
  std::vector<std::string> asked() {
    std::lock_guard lock(mutex_);
    return asked_;
  }
  std::vector<Request> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t connection_count() {
    std::lock_guard lock(mutex_);
    return connections_.size();
  }
  /// Waits until so many requests have come in.
  void wait_for_requests(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_.size() >= count; });
  }

 private:
  void accept_all() {
    while (true) {
      int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::lock_guard lock(mutex_);
      open_.push_back(fd);
      connections_.emplace_back([this, fd] {
        serve(fd);
        std::lock_guard inner(mutex_);
        std::erase(open_, fd);
        ::close(fd);
      });
    }
  }

  void serve(int fd) {
    std::string buffer;
    Wire wire(fd);
    while (auto request = read_request(fd, buffer)) {
      {
        std::lock_guard lock(mutex_);
        asked_.push_back(request->method + " " + request->target + (request->body.empty() ? "" : " " + request->body));
        requests_.push_back(*request);
        changed_.notify_all();
      }
      auto answer = handler_(*request, wire);
      if (!answer) return;
      std::string text = "HTTP/1.1 " + std::to_string(answer->status) + " Status\r\n";
      for (const Header& header : answer->headers.all()) text += header.name + ": " + header.value + "\r\n";
      if (answer->status != 204) text += "Content-Length: " + std::to_string(answer->body.size()) + "\r\n";
      wire.send(text + "\r\n" + answer->body);
    }
  }

  static bool read_some(int fd, std::string& buffer) {
    char bytes[65536];
    ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  static std::optional<Request> read_request(int fd, std::string& buffer) {
    std::size_t end;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
      if (!read_some(fd, buffer)) return {};
    std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    Request request;
    std::size_t first = head.find("\r\n"), blank = head.find(' '), second = head.find(' ', blank + 1);
    request.method = head.substr(0, blank);
    request.target = head.substr(blank + 1, second - blank - 1);
    for (std::size_t at = first + 2; at < head.size();) {
      std::size_t line_end = head.find("\r\n", at), colon = head.find(": ", at);
      request.headers.add(head.substr(at, colon - at), head.substr(colon + 2, line_end - colon - 2));
      at = line_end + 2;
    }
    const std::string* size = request.headers.find("Content-Length");
    std::size_t wanted = size == nullptr ? 0 : std::stoul(*size);
    while (buffer.size() < wanted)
      if (!read_some(fd, buffer)) return {};
    request.body = buffer.substr(0, wanted);
    buffer.erase(0, wanted);
    return request;
  }

  Handler handler_;
  std::string path_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::thread acceptor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> open_;
  std::vector<std::thread> connections_;
  std::vector<std::string> asked_;
  std::vector<Request> requests_;
};

}  // namespace perdure::http
