// Stands between clients and a PostgreSQL server, knows where a message ends, and loses an append or the answer to one
// when it is told to: the connection is cut, and what the client cannot see is seen here.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "perdure/bytes.h"
#include "runtime/mutex.h"
#include "runtime/thread.h"

namespace perdure::e2e {

/// A stream of PostgreSQL's protocol, cut into messages: a type, four bytes of length, and the rest. The first message
/// of a client has no type.
class MessageStream {
 public:
  enum class Begins { kTyped, kUntyped };
  explicit MessageStream(Begins begins) : typed_(begins == Begins::kTyped) {}

  void add(BytesView bytes) { waiting_ += bytes; }
  /// The next one that is whole.
  std::optional<Bytes> next() {
    const std::size_t type = typed_ ? 1 : 0;
    if (waiting_.size() < type + 4) return std::nullopt;
    const std::size_t size = type + load_big<std::uint32_t>(waiting_.data() + type);
    if (waiting_.size() < size) return std::nullopt;
    Bytes message = waiting_.substr(0, size);
    waiting_.erase(0, size);
    typed_ = true;
    return message;
  }

 private:
  Bytes waiting_;
  bool typed_;
};

class PostgresProxy {
 public:
  enum class Lose {
    kNothing,
    kRequest,  ///< The connection is cut when an append comes, and nothing of it reaches the server.
    kAnswer,   ///< It is cut when the server has answered an append, and nothing of that reaches the client.
  };
  /// What it has seen.
  struct Seen {
    int appends = 0;         ///< That came from clients.
    int lost_requests = 0;   ///< Of them.
    int lost_done = 0;       ///< Answers that were lost, and said that it was appended.
    int lost_otherwise = 0;  ///< Answers that were lost, and said that it was not.
  };

  /// Connects each of its clients to that port of the loopback. They must not ask for encryption.
  explicit PostgresProxy(int server_port) : server_port_(server_port), end_(eventfd(0, EFD_CLOEXEC)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listener_, 64) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("the proxy cannot listen");
    port_ = ntohs(at.sin_port);
    thread_.start("proxy", [this] { run(); });
  }
  ~PostgresProxy() {
    std::uint64_t one = 1;
    (void)!write(end_, &one, sizeof one);
    thread_.join();
    for (Pair& pair : pairs_) cut(pair);
    close(listener_);
    close(end_);
  }

  int port() const { return port_; }
  /// What becomes of the appends that come next, one after another; later ones are let through.
  void lose(std::vector<Lose> next) PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    next_.insert(next_.end(), next.begin(), next.end());
  }
  Seen seen() PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  struct Pair {
    int client;
    int server;
    MessageStream from_client{MessageStream::Begins::kUntyped};
    MessageStream from_server{MessageStream::Begins::kTyped};
    /// The answer to an append is awaited, to be lost; with what it says of that once it has come so far.
    bool losing = false;
    std::optional<bool> done = {};
  };

  static sockaddr_in loopback(int port) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }
  static bool send_all(int to, BytesView bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Bind has the name of a portal, and that of the statement.
  static bool is_append(BytesView message) {
    if (!message.starts_with('B')) return false;
    std::size_t statement = message.find('\0', 5) + 1;
    return message.substr(statement, message.find('\0', statement) - statement) == "append";
  }

  void run() {
    for (;;) {
      std::vector<pollfd> polled = {{end_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        polled.push_back({pair.client, POLLIN, 0});
        polled.push_back({pair.server, POLLIN, 0});
      }
      if (poll(polled.data(), polled.size(), -1) < 0) return;
      if (polled[0].revents != 0) return;
      auto at = polled.begin() + 2;
      for (auto pair = pairs_.begin(); pair != pairs_.end(); at += 2) {
        bool good = (at[0].revents == 0 || serve_client(*pair)) && (at[1].revents == 0 || serve_server(*pair));
        if (!good) cut(*pair);
        pair = good ? std::next(pair) : pairs_.erase(pair);
      }
      if (polled[1].revents != 0) take_in();
    }
  }
  void take_in() {
    Pair pair{accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int at_once = 1;
    for (int end : {pair.client, pair.server}) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    sockaddr_in to = loopback(server_port_);
    if (connect(pair.server, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0)
      pairs_.push_back(std::move(pair));
    else
      cut(pair);
  }
  static void cut(const Pair& pair) {
    close(pair.client);
    close(pair.server);
  }

  static bool receive(int from, MessageStream& into) {
    char buffer[16384];
    ssize_t size = recv(from, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    into.add({buffer, static_cast<std::size_t>(size)});
    return true;
  }
  /// False if the connection is to be cut.
  bool serve_client(Pair& pair) PERDURE_EXCLUDES(mutex_) {
    if (!receive(pair.client, pair.from_client)) return false;
    while (auto message = pair.from_client.next()) {
      if (is_append(*message)) {
        Lose what = what_to_lose();
        if (what == Lose::kRequest) return false;
        pair.losing = what == Lose::kAnswer;
      }
      if (!send_all(pair.server, *message)) return false;
    }
    return true;
  }
  bool serve_server(Pair& pair) PERDURE_EXCLUDES(mutex_) {
    if (!receive(pair.server, pair.from_server)) return false;
    while (auto message = pair.from_server.next()) {
      if (!pair.losing) {
        if (!send_all(pair.client, *message)) return false;
        continue;
      }
      // The first statement that is completed is the append: it has a row if it was done. Ready for the next is what
      // the server says after the commit.
      if (message->starts_with('C') && !pair.done) pair.done = message->substr(5, 9) == BytesView("SELECT 1\0", 9);
      if (!message->starts_with('Z')) continue;
      MutexLock lock(mutex_);
      ++(pair.done.value_or(false) ? seen_.lost_done : seen_.lost_otherwise);
      return false;
    }
    return true;
  }
  Lose what_to_lose() PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++seen_.appends;
    if (next_.empty()) return Lose::kNothing;
    Lose what = next_.front();
    next_.erase(next_.begin());
    if (what == Lose::kRequest) ++seen_.lost_requests;
    return what;
  }

  const int server_port_;
  const int end_;
  int listener_ = -1;
  int port_ = 0;
  std::list<Pair> pairs_;  ///< Of the thread alone.

  Mutex mutex_;
  std::vector<Lose> next_ PERDURE_GUARDED_BY(mutex_);
  Seen seen_ PERDURE_GUARDED_BY(mutex_);

  Thread thread_;
};

}  // namespace perdure::e2e
