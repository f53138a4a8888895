// A client that keeps many connections busy from one thread: each sends a request, waits for its answer, and sends the
// next. As little of it as possible is HTTP, so that the server is what is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness.h"

namespace perdure::bench {

class HttpLoad {
 public:
  /// The text of the next request of a connection, and what is made of its answer. An empty request ends it.
  struct Script {
    std::function<std::string(int connection)> next;
    std::function<void(int connection, int status, const std::string& body)> answered;
  };
  HttpLoad(std::uint16_t port, int connections);
  ~HttpLoad();
  HttpLoad(const HttpLoad&) = delete;
  HttpLoad& operator=(const HttpLoad&) = delete;

  /// Until `duration` has passed and the last answers are in.
  Sample run(std::chrono::milliseconds duration, const Script& script);

  static std::string post(const std::string& target, const std::string& body);

 private:
  struct Connection {
    int fd = -1;
    bool busy = false;
    std::string in;
    Clock::time_point begun;
  };
  void send(Connection& connection, const std::string& text);
  /// Whether a whole answer is there; takes it off.
  static bool take_answer(std::string& in, int& status, std::string& body);

  int epoll_ = -1;
  std::vector<Connection> connections_;
};

}  // namespace perdure::bench
