// libFuzzer target: the server, by what strangers send over a socket. The first byte says in how large pieces the rest
// is sent. Whatever comes, the connection ends, and what went before its end are answers of HTTP, one for each request
// that was handled; and which requests those are does not depend on the pieces, or somebody in between could be made to
// see others.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/assert.h"
#include "http/response_parser.h"
#include "http/server.h"
#include "runtime/mutex.h"

namespace {

using namespace perdure;
using namespace perdure::http;

/// The requests that were handled, as text.
class Handled {
 public:
  void add(const Request& request) PERDURE_EXCLUDES(mutex_) {
    check(!request.method.empty() && request.target.find_first_of(" \r\n") == std::string::npos,
          "a request has a form");
    MutexLock lock(mutex_);
    text_ +=
        request.method + " " + request.target + " " + std::to_string(request.body.size()) + " " + request.body + "\n";
    ++count_;
  }
  std::pair<std::string, std::size_t> take() PERDURE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return {std::exchange(text_, {}), std::exchange(count_, 0)};
  }

 private:
  Mutex mutex_;
  std::string text_ PERDURE_GUARDED_BY(mutex_);
  std::size_t count_ PERDURE_GUARDED_BY(mutex_) = 0;
};

struct Fuzzed {
  Handled handled;
  Io io;
  std::unique_ptr<Server> server;
  sockaddr_un address = {};

  Fuzzed() {
    char directory[] = "/tmp/perdure-fuzz-XXXXXX";
    check(::mkdtemp(directory) != nullptr, "a directory for the socket");
    ServerOptions options{.listen = "", .socket = std::string(directory) + "/s"};
    options.limits.body_bytes_max = 1'000;
    options.limits.head_bytes_max = 4'096;
    auto handle = [this](const std::shared_ptr<Exchange>& exchange) {
      handled.add(exchange->request());
      exchange->answer({200, {}, "handled"});
    };
    server = std::move(*Server::start(io, options, handle));
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, server->socket().c_str(), sizeof(address.sun_path) - 1);
  }

  /// All that is answered until the server closes.
  std::string send(std::string_view text, std::size_t piece) {
    int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    check(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "it takes connections");
    while (!text.empty()) {
      ssize_t sent = ::send(socket, text.data(), std::min(piece, text.size()), MSG_NOSIGNAL);
      if (sent <= 0) break;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    ::shutdown(socket, SHUT_WR);
    std::string answers;
    char buffer[4096];
    for (;;) {
      ssize_t got = ::recv(socket, buffer, sizeof(buffer), 0);
      // A timer of the fuzzer interrupts it now and then.
      if (got < 0 && errno == EINTR) continue;
      check(got >= 0 || errno == ECONNRESET, "a connection comes to its end");
      if (got <= 0) break;
      answers.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(socket);
    return answers;
  }
};

void check_answers(const std::string& answers, std::size_t handled) {
  std::size_t good = 0;
  for (std::size_t at = answers.find("HTTP/1.1 200 "); at != std::string::npos;
       at = answers.find("HTTP/1.1 200 ", at + 1))
    ++good;
  check(answers.empty() || answers.starts_with("HTTP/1.1 "), "what is answered is HTTP");
  check(good == handled, "each request that is handled is answered once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto& fuzzed = *new Fuzzed();
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string answers = fuzzed.send(text, text.size() + 1);
  auto [whole, count] = fuzzed.handled.take();
  check_answers(answers, count);
  answers = fuzzed.send(text, std::size_t{data[0]} + 1);
  auto [pieces, same_count] = fuzzed.handled.take();
  check_answers(answers, same_count);
  check(whole == pieces, "which requests come does not depend on how they were cut");
  return 0;
}
