// A PostgreSQL server of the test's own: on a free port of the loopback, with its files in the directory of the test.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.h"
#include "free_port.h"
#include "scratch.h"

namespace perdure::e2e {

class PostgresServer {
 public:
  /// Makes a cluster with the superuser postgres, and starts it. Nobody needs a password but the role with_password.
  explicit PostgresServer(const std::string& settings = "max_connections = 60\n") : port_(free_port()) {
    give_to_postgres(scratch_.path());
    run({tool("initdb"), "-D", data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"});
    std::ofstream(data() + "/postgresql.conf", std::ios::app)
        << "listen_addresses = '127.0.0.1'\nunix_socket_directories = '" << scratch_.path().string()
        << "'\nfsync = on\nlogging_collector = off\n"
        << settings;
    std::string trust = read_whole(data() + "/pg_hba.conf");
    write_whole(data() + "/pg_hba.conf", "host all with_password all scram-sha-256\n" + trust);
    start();
  }
  /// A standby of `primary`, as pg_basebackup makes it.
  struct StandbyOf {
    const PostgresServer& primary;
  };
  explicit PostgresServer(StandbyOf of) : port_(free_port()) {
    give_to_postgres(scratch_.path());
    run({tool("pg_basebackup"), "-D", data(), "-h", "127.0.0.1", "-p", std::to_string(of.primary.port_), "-U",
         "postgres", "-R", "-c", "fast", "--no-sync"});
    std::ofstream(data() + "/postgresql.conf", std::ios::app)
        << "unix_socket_directories = '" << scratch_.path().string() << "'\n";
    start();
  }
  ~PostgresServer() {
    if (server_) server_->signal(SIGQUIT);
    if (server_) server_->wait();
  }

  int port() const { return port_; }
  /// `who` is "user" or "user:password"; the query is added as it is.
  std::string url(const std::string& query = "", const std::string& who = "postgres") const {
    return "postgres://" + who + "@127.0.0.1:" + std::to_string(port_) + "/postgres" + (query.empty() ? "" : "?") +
           query;
  }
  std::string log() const { return read_whole(scratch_ / "server.log"); }

  /// Ends it as an operator would, without waiting for its clients.
  void stop() { end_by(SIGINT); }
  /// Ends it as a failing machine would.
  void crash() { end_by(SIGQUIT); }
  void start() {
    server_ = std::make_unique<Child>(
        as_postgres({"/bin/sh", "-c", "exec \"$0\" \"$@\" >>'" + (scratch_ / "server.log") + "' 2>&1", tool("postgres"),
                     "-D", data(), "-p", std::to_string(port_)}));
    for (std::int64_t until = steady_ns() + std::chrono::nanoseconds(kPatience).count(); !answers();) {
      if (steady_ns() > until || server_->wait(Milliseconds(20)))
        throw std::runtime_error("PostgreSQL does not start: " + log());
    }
  }

 private:
  static std::string tool(const std::string& name) { return std::string(PERDURE_POSTGRES_BIN) + "/" + name; }
  std::string data() const { return scratch_ / "data"; }

  void end_by(int signal) {
    server_->signal(signal);
    if (!server_->wait()) throw std::runtime_error("PostgreSQL does not end");
    server_.reset();
  }
  /// PostgreSQL refuses to be run by root. It ends with us, also if we are killed.
  static std::vector<std::string> as_postgres(std::vector<std::string> arguments) {
    std::vector<std::string> words = {"setpriv", "--pdeathsig=QUIT"};
    if (geteuid() == 0) words.insert(words.end(), {"--reuid=postgres", "--regid=postgres", "--clear-groups"});
    words.emplace_back("--");
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  static void give_to_postgres(const std::filesystem::path& directory) {
    if (geteuid() != 0) return;
    passwd* postgres = getpwnam("postgres");
    if (!postgres || chown(directory.c_str(), postgres->pw_uid, postgres->pw_gid) != 0)
      throw std::runtime_error("the user postgres cannot be given " + directory.string());
  }
  void run(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"/bin/sh", "-c", "exec \"$0\" \"$@\" >>'" + (scratch_ / "tools.log") + "' 2>&1"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Child child(as_postgres(words));
    if (child.wait() != 0) throw std::runtime_error(arguments[0] + ": " + read_whole(scratch_ / "tools.log"));
  }
  bool answers() const {
    Child child({tool("pg_isready"), "-q", "-h", "127.0.0.1", "-p", std::to_string(port_)});
    return child.wait() == 0;
  }

  Scratch scratch_;
  const int port_;
  std::unique_ptr<Child> server_;
};

}  // namespace perdure::e2e
