// An etcd of the test's own: one member or a cluster of them, on free ports of the loopback, with its files in the
// directory of the test.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.h"

namespace perdure::e2e {

class EtcdCluster {
 public:
  struct Options {
    std::size_t members = 1;
    std::vector<std::string> arguments = {};  ///< For each member, behind the others.
    bool tls = false;                         ///< Clients speak TLS; the arguments name the certificates.
  };

  explicit EtcdCluster(std::string directory) : EtcdCluster(std::move(directory), Options{}) {}
  EtcdCluster(std::string directory, Options options) : directory_(std::move(directory)), options_(std::move(options)) {
    for (std::size_t i = 0; i < options_.members; ++i)
      members_.push_back({free_port(), free_port(), free_port(), nullptr});
    for (std::size_t i = 0; i < members_.size(); ++i) launch(i);
    wait_until_healthy();
  }

  std::size_t size() const { return members_.size(); }
  std::string endpoint(std::size_t i) const { return "127.0.0.1:" + std::to_string(members_.at(i).client_port); }
  std::string endpoints() const {
    std::string all;
    for (std::size_t i = 0; i < size(); ++i) all += (i ? "," : "") + endpoint(i);
    return all;
  }
  std::string url(const std::string& rest = "") const { return "etcd://" + endpoints() + rest; }

  /// A SIGSTOP has its effect when this returns: on a busy machine, its threads would go on for a while.
  void signal(std::size_t i, int number) {
    Child& server = *members_.at(i).server;
    server.signal(number);
    if (number == SIGSTOP && !server.wait_until_stopped()) throw std::runtime_error("etcd does not stop");
  }
  void kill(std::size_t i) {
    members_.at(i).server->kill();
    members_.at(i).server.reset();
  }
  /// Ends it as an operator would.
  void stop(std::size_t i = 0) {
    signal(i, SIGTERM);
    if (!members_.at(i).server->wait()) throw std::runtime_error("etcd does not end");
    members_.at(i).server.reset();
  }
  /// Again, with the same files.
  void start(std::size_t i = 0) {
    launch(i);
    wait_until_healthy();
  }
  std::size_t leader() {
    for (std::size_t i = 0; i < size(); ++i)
      if (ctl({"--endpoints=" + endpoint(i), "endpoint", "status"}).find(" true,") != std::string::npos) return i;
    throw std::runtime_error("etcd has no leader");
  }

  /// What etcdctl says to that. Throws if it fails.
  std::string ctl(std::vector<std::string> arguments) {
    if (arguments.at(0).find("--endpoints") == std::string::npos)
      arguments.insert(arguments.begin(), "--endpoints=" + endpoint(0));
    arguments.insert(arguments.begin(), PERDURE_ETCDCTL);
    std::vector<std::string> all = in_shell("2>&1");
    all.insert(all.end(), arguments.begin(), arguments.end());
    Child child(all, {.environment = {{"ETCDCTL_API", "3"}}});
    std::string said;
    while (auto line = child.answer()) said += *line + "\n";
    auto ended = child.wait();
    if (!ended || *ended != 0) throw std::runtime_error("etcdctl fails: " + said);
    return said;
  }

 private:
  struct Member {
    int client_port;
    int peer_port;
    int health_port;
    std::unique_ptr<Child> server;
  };

  /// The program takes the place of the shell, and its number.
  static std::vector<std::string> in_shell(const std::string& redirected) {
    return {"/bin/sh", "-c", "exec \"$0\" \"$@\" " + redirected};
  }
  static std::string address_of(const std::string& scheme, int port) {
    return scheme + "://127.0.0.1:" + std::to_string(port);
  }
  static std::string name_of(std::size_t i) { return "member" + std::to_string(i); }

  void launch(std::size_t i) {
    const Member& member = members_[i];
    std::string clients = address_of(options_.tls ? "https" : "http", member.client_port);
    std::string peers = address_of("http", member.peer_port);
    std::string all;
    for (std::size_t k = 0; k < size(); ++k)
      all += (k ? "," : "") + name_of(k) + "=" + address_of("http", members_[k].peer_port);
    std::string files = directory_ + "." + name_of(i);
    // It ends with us, also if we are killed.
    std::vector<std::string> arguments = {"setpriv", "--pdeathsig=KILL", "--"};
    for (std::string& word : in_shell(">>'" + files + ".log' 2>&1")) arguments.push_back(std::move(word));
    arguments.insert(
        arguments.end(),
        {PERDURE_ETCD_SERVER, "--name=" + name_of(i), "--data-dir=" + files, "--listen-client-urls=" + clients,
         "--advertise-client-urls=" + clients, "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers,
         "--initial-cluster=" + all, "--listen-metrics-urls=" + address_of("http", member.health_port)});
    arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
    members_[i].server = std::make_unique<Child>(arguments);
  }
  void wait_until_healthy() {
    const std::int64_t until = steady_ns() + std::chrono::nanoseconds(kPatience).count();
    for (const Member& member : members_)
      while (member.server && !is_healthy(member.health_port)) {
        if (steady_ns() > until) throw std::runtime_error("etcd does not start; see " + directory_ + ".*.log");
        member.server->gather(Milliseconds(20));
      }
  }

  static sockaddr_in socket_address(int port) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
  }
  /// Below those that the kernel gives to connections: members connect to each other before all of them listen. Each
  /// process begins elsewhere.
  static int free_port() {
    static int next = 0;
    for (int tries = 0; tries < 1'000; ++tries) {
      int port = 10'000 + (getpid() % 1'000 * 20 + next++) % 20'000;
      int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in at = socket_address(port);
      bool bound = bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
      close(socket);
      if (bound) return port;
    }
    throw std::runtime_error("no free port");
  }
  /// A member is when it has a leader.
  static bool is_healthy(int port) {
    int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = socket_address(port);
    std::string said;
    if (connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
      const std::string asked = "GET /health HTTP/1.0\r\n\r\n";
      char buffer[512];
      if (write(socket, asked.data(), asked.size()) > 0)
        for (ssize_t n; (n = ::read(socket, buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<size_t>(n));
    }
    close(socket);
    return said.find("\"true\"") != std::string::npos;
  }

  const std::string directory_;
  const Options options_;
  std::vector<Member> members_;
};

}  // namespace perdure::e2e
