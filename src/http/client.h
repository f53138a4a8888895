// An HTTP/1.1 client that nothing waits in: connections are kept and used again, and everything about them has a bound.
//
// Connections belong to a target: a host and a port, or a socket. A request takes one that is idle, opens one if there
// are fewer than the most, or waits in the queue of its target; a full queue refuses it. Redirects are not followed:
// whoever answers one says where to send events to, and that is for a person to decide.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "http/allowed_targets.h"
#include "http/io.h"
#include "http/message.h"
#include "http/url.h"
#include "perdure/cancel.h"
#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure::http {

/// A server may close a kept connection just when a request is sent on it, and nobody can tell whether it had read it.
enum class Resend {
  /// The request is sent once more, on a new connection, if the old one ended before any byte of the answer. Good for
  /// whatever may be done twice: all that perdure sends to workers and behaviours, which have to expect that anyway.
  kIfUnanswered,
  kNever,
};

/// What becomes of an answer whose body is longer than allowed.
enum class WhenLarger {
  kRefuse,  ///< kTooLarge.
  kCut,     ///< Its first bytes are the body; the connection is closed.
};

struct SendOptions {
  /// For the whole of it: waiting for a connection, connecting, sending, and the last byte of the answer.
  Duration timeout = std::chrono::seconds(30);
  std::size_t body_max = std::size_t{1} << 20;
  WhenLarger when_larger = WhenLarger::kRefuse;
  Resend resend = Resend::kIfUnanswered;
  /// Abandons the request when it is given.
  CancelSignal cancel = {};
};

struct ClientOptions {
  AllowedTargets allowed = {};
  /// For each target.
  std::size_t connections_max = 64;
  std::size_t waiting_max = 1024;
  /// A connection that nobody used for so long is closed.
  Duration idle_max = std::chrono::seconds(30);
};

/// The status line and the headers of an answer.
inline constexpr std::size_t kAnswerHeaderBytesMax = std::size_t{16} << 10;

/// Thread-safe.
class Client {
 public:
  using Done = std::move_only_function<void(Result<Response>)>;

  /// `io` outlives its close.
  explicit Client(Io& io, ClientOptions options = {});
  /// Closes it.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Sends a request; an empty `target` takes the path of the URL. Host, Content-Length and User-Agent are written by
  /// the client. `done` is called once, on a thread of Io, or in this call if nothing is to be sent; it must not block.
  /// Errors: kPermissionDenied (the target), kInvalidArgument (a line break in what becomes the head), kLimitExceeded
  /// (its target has too many waiting), kUnavailable (no connection, or no HTTP), kDeadline, kTooLarge (the answer),
  /// kClosed (also for one that was cancelled). After all but the first three the request may have been handled.
  void send(const Url& url, Request request, const SendOptions& options, Done done);
  /// The same; blocks. Not on a thread of Io.
  [[nodiscard]] Result<Response> send_and_wait(const Url& url, Request request, const SendOptions& options);

  const AllowedTargets& allowed() const;

  /// Cuts every connection; whoever waits is answered with kClosed before this returns, and so are all who come later.
  /// Blocks: not on a thread of Io. Idempotent.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace perdure::http
