#include "cli/follow.h"

#include <algorithm>
#include <optional>

#include "cli/duration.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;
using Next = http::BlockingClient::Next;

// The daemon says something every 15 seconds.
constexpr Duration kSilence = 45s;

}  // namespace

OrFailure<void> Follower::run(const std::function<OrFailure<void>()>& connected) {
  Duration wait = 100ms;
  while (true) {
    bool heard = false;
    auto ended = follow(heard, connected);
    if (enough_) return ended;
    // A refusal is final; a daemon that has gone may come back, but only if there has been one.
    was_there_ = was_there_ || heard;
    if (!ended && (!was_there_ || ended.error().exit_code != kExitUnavailable))
      return std::unexpected(std::move(ended.error()));
    if (heard) wait = 100ms;
    context_.say(ended ? "the stream has ended; following again" : ended.error().message + "; trying again");
    context_.daemon().forget();
    pause_for(wait);
    wait = std::min<Duration>(wait * 2, 5s);
  }
}

OrFailure<void> Follower::follow(bool& heard, const std::function<OrFailure<void>()>& connected) {
  EventStreamParser parser;
  Call call = {.method = "GET", .target = target_.text(), .timeout = kSilence};
  call.headers.add("Accept", "text/event-stream");
  if (!cursor_.empty()) call.headers.add("Last-Event-ID", cursor_);
  std::optional<Failure> problem;
  auto stop = [&](Failure failure) {
    problem = std::move(failure);
    enough_ = true;
    return Next::kStop;
  };
  auto head = context_.daemon().stream(call, [&](const http::Response&, std::string_view piece) {
    if (!std::exchange(heard, true) && connected)
      if (auto good = connected(); !good) return stop(std::move(good.error()));
    for (const StreamedEvent& event : parser.feed(piece)) {
      if (!event.id.empty()) cursor_ = event.id;
      auto more = show_(event);
      if (!more) return stop(std::move(more.error()));
      enough_ = !*more;
      if (enough_) return Next::kStop;
    }
    context_.world().out << std::flush;
    return Next::kGoOn;
  });
  if (problem) return std::unexpected(std::move(*problem));
  if (!head) return std::unexpected(std::move(head.error()));
  return {};
}

}  // namespace perdure::cli
