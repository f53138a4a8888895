#include "http_load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace perdure::bench {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(std::uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) give_up("connect");
  int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

}  // namespace

HttpLoad::HttpLoad(std::uint16_t port, int connections) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  connections_.resize(static_cast<std::size_t>(connections));
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].fd = connect_to(port);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[i].fd, &event);
  }
}

HttpLoad::~HttpLoad() {
  for (Connection& each : connections_) ::close(each.fd);
  ::close(epoll_);
}

std::string HttpLoad::post(const std::string& target, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

void HttpLoad::send(Connection& connection, const std::string& text) {
  connection.busy = true;
  connection.begun = Clock::now();
  std::size_t sent = 0;
  while (sent < text.size()) {
    ssize_t part = ::send(connection.fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (part <= 0) give_up("send");
    sent += static_cast<std::size_t>(part);
  }
}

bool HttpLoad::take_answer(std::string& in, int& status, std::string& body) {
  std::size_t head = in.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  std::size_t at = in.find("Content-Length: ");
  std::size_t length = at < head ? std::strtoull(in.c_str() + at + 16, nullptr, 10) : 0;
  if (in.size() < head + 4 + length) return false;
  status = std::atoi(in.c_str() + 9);
  body.assign(in, head + 4, length);
  in.erase(0, head + 4 + length);
  return true;
}

Sample HttpLoad::run(std::chrono::milliseconds duration, const Script& script) {
  Sample sample;
  auto start = Clock::now();
  std::size_t busy = 0;
  auto go_on = [&](std::size_t i) {
    std::string text = Clock::now() - start < duration ? script.next(static_cast<int>(i)) : "";
    if (text.empty()) return;
    ++busy;
    send(connections_[i], text);
  };
  for (std::size_t i = 0; i < connections_.size(); ++i) go_on(i);
  std::array<epoll_event, 256> events{};
  std::array<char, 65536> buffer{};
  std::string body;
  while (busy > 0) {
    int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 30'000);
    if (ready <= 0) give_up("no answer within 30 s");
    for (int e = 0; e < ready; ++e) {
      std::size_t i = events[static_cast<std::size_t>(e)].data.u64;
      Connection& connection = connections_[i];
      ssize_t got = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) give_up("the server has hung up");
      connection.in.append(buffer.data(), static_cast<std::size_t>(got));
      int status = 0;
      if (!take_answer(connection.in, status, body)) continue;
      sample.latencies.push_back(Clock::now() - connection.begun);
      ++sample.operations;
      --busy;
      connection.busy = false;
      script.answered(static_cast<int>(i), status, body);
      go_on(i);
    }
  }
  sample.elapsed = Clock::now() - start;
  return sample;
}

}  // namespace perdure::bench
