// A nats-server of the test's own: on a free port of the loopback, with its files in the directory of the test.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>

#include "child.h"
#include "free_port.h"

namespace perdure::e2e {

enum class JetStream { kOn, kOff };

class NatsServer {
 public:
  explicit NatsServer(std::string directory, JetStream jetstream = JetStream::kOn)
      : directory_(std::move(directory)), jetstream_(jetstream), port_(free_port()) {
    start();
  }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return server_->pid(); }
  /// Ends it as an operator would, and starts it again with the same files.
  void stop() {
    server_->signal(SIGTERM);
    if (!server_->wait()) throw std::runtime_error("nats-server does not end");
    server_.reset();
  }
  void start() {
    std::vector<std::string> arguments = {PERDURE_NATS_SERVER,   "-a",  "127.0.0.1", "-p",
                                          std::to_string(port_), "-sd", directory_,  "-l",
                                          directory_ + ".log"};
    if (jetstream_ == JetStream::kOn) arguments.emplace_back("-js");
    server_ = std::make_unique<Child>(arguments);
    for (std::int64_t until = steady_ns() + std::chrono::nanoseconds(kPatience).count(); !answers();) {
      if (steady_ns() > until) throw std::runtime_error("nats-server does not start; see " + directory_ + ".log");
      server_->gather(Milliseconds(20));
    }
  }

 private:
  static sockaddr_in address(int port) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
  }
  bool answers() const {
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = address(port_);
    bool connected = connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    close(socket);
    return connected;
  }

  const std::string directory_;
  const JetStream jetstream_;
  const int port_;
  std::unique_ptr<Child> server_;
};

}  // namespace perdure::e2e
