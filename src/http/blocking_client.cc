#include "http/blocking_client.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "runtime/latch.h"

namespace perdure::http {

int poll_timeout(SteadyTime deadline) {
  if (deadline == SteadyTime::max()) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

Result<void> BlockingClient::wait(SteadyTime deadline) {
  pollfd one = {connection_.fd(), connection_.events(), 0};
  if (::poll(&one, 1, poll_timeout(deadline)) != 0 || steady_now() < deadline) return {};
  bool was_connected = connection_.connected();
  connection_.close();
  if (!was_connected) return fail(ErrorCode::kUnavailable, "the daemon did not take the connection in time");
  return fail(ErrorCode::kCommitUnknown, "the daemon did not answer in time");
}

Result<void> BlockingClient::connect(Duration timeout) {
  SteadyTime deadline = deadline_after(timeout);
  if (auto begun = connection_.connect(); !begun) return begun;
  while (true) {
    auto done = connection_.advance();
    if (!done) return std::unexpected(std::move(done.error()));
    if (*done) return {};
    if (auto waited = wait(deadline); !waited) return waited;
  }
}

Result<Response> BlockingClient::send(const Request& request, Duration timeout) {
  SteadyTime deadline = deadline_after(timeout);
  if (auto begun = connection_.start(request); !begun) return std::unexpected(std::move(begun.error()));
  while (true) {
    auto done = connection_.advance();
    if (!done) return std::unexpected(std::move(done.error()));
    if (*done) return connection_.take();
    if (auto waited = wait(deadline); !waited) return std::unexpected(std::move(waited.error()));
  }
}

Result<Response> BlockingClient::stream(const Request& request, Duration silence, const OnPiece& on_piece) {
  if (auto begun = connection_.start(request); !begun) return std::unexpected(std::move(begun.error()));
  SteadyTime deadline = deadline_after(silence);
  while (true) {
    auto done = connection_.advance();
    ResponseParser& parser = connection_.parser();
    if (parser.has_head() && !parser.response().body.empty()) {
      deadline = deadline_after(silence);
      std::string piece = std::exchange(parser.response().body, {});
      if (on_piece(parser.response(), piece) == Next::kStop) {
        Response head = connection_.take();
        connection_.close();
        return head;
      }
    }
    if (!done) return std::unexpected(std::move(done.error()));
    if (*done) return connection_.take();
    if (auto waited = wait(deadline); !waited) return std::unexpected(std::move(waited.error()));
  }
}

}  // namespace perdure::http
