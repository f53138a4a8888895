// An HTTP/1.1 client that waits: for the command line, which does one thing at a time.
#pragma once

#include <functional>

#include "http/polled_connection.h"
#include "perdure/time.h"

namespace perdure::http {

/// Keeps its connection from call to call. Not thread-safe.
class BlockingClient {
 public:
  explicit BlockingClient(Url url) : connection_(std::move(url)) {}

  /// Errors: kUnavailable.
  Result<void> connect(Duration timeout);
  /// Waits for the whole answer, whatever its status; `timeout` is for all of it. A connection that the other end
  /// closed while it was idle is replaced without a word.
  /// Errors: kUnavailable if nothing was sent, kCommitUnknown if the answer did not come whole or in time, kTooLarge.
  Result<Response> send(const Request& request, Duration timeout);

  enum class Next { kGoOn, kStop };
  /// Gets each piece of a body as it comes in, with the status and the headers of the answer.
  using OnPiece = std::function<Next(const Response& head, std::string_view piece)>;
  /// Waits until the answer ends, `on_piece` says stop, or nothing has come in for `silence`. Answers the head.
  /// Errors: as for send().
  Result<Response> stream(const Request& request, Duration silence, const OnPiece& on_piece);

  const Url& url() const { return connection_.url(); }

 private:
  /// Polls until the connection can move. Errors: kCommitUnknown, kUnavailable, after closing it.
  Result<void> wait(SteadyTime deadline);

  PolledConnection connection_;
};

/// For poll(2): the milliseconds until `deadline`, rounded up; -1 for the end of time.
int poll_timeout(SteadyTime deadline);

}  // namespace perdure::http
