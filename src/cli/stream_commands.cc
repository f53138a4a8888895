// perdure stream: follow what happens.
#include <algorithm>
#include <charconv>

#include "cli/commands.h"
#include "cli/event_stream.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;
using Next = http::BlockingClient::Next;

// The daemon says something every 15 seconds.
constexpr Duration kSilence = 45s;

class Follower {
 public:
  Follower(Context& context, Target target, std::string cursor, std::uint64_t count)
      : context_(context), target_(std::move(target)), cursor_(std::move(cursor)), left_(count) {}

  OrFailure<void> run() {
    Duration wait = 100ms;
    while (true) {
      bool heard = false;
      auto ended = follow(heard);
      if (left_ == 0) return {};
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

 private:
  OrFailure<void> follow(bool& heard) {
    EventStreamParser parser;
    Call call = {.method = "GET", .target = target_.text(), .timeout = kSilence};
    call.headers.add("Accept", "text/event-stream");
    if (!cursor_.empty()) call.headers.add("Last-Event-ID", cursor_);
    auto head = context_.daemon().stream(call, [&](const http::Response&, std::string_view piece) {
      heard = true;
      for (const StreamedEvent& event : parser.feed(piece)) {
        show(event);
        if (left_ == 0) return Next::kStop;
      }
      context_.world().out << std::flush;
      return Next::kGoOn;
    });
    if (!head) return std::unexpected(std::move(head.error()));
    return {};
  }

  void show(const StreamedEvent& event) {
    if (!event.id.empty()) cursor_ = event.id;
    auto data = Value::from_json(event.data);
    Value shown = data ? std::move(*data) : Value(event.data);
    if (context_.json()) {
      context_.print(Value(Value::Map{{"id", event.id}, {"event", event.event}, {"data", shown}}).to_json());
    } else {
      context_.print(cell_of(&static_cast<const Value&>(Value(event.event))) + "  " + cell_of(&shown));
    }
    --left_;
  }

  Context& context_;
  Target target_;
  std::string cursor_;
  std::uint64_t left_;
  bool was_there_ = false;
};

OrFailure<void> follow_stream(Context& context, const Arguments& arguments) {
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  if (auto text = arguments.maybe("count")) {
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
    if (error != std::errc() || end != text->data() + text->size() || count == 0)
      return usage("--count is '" + *text + "', but must be a number from 1");
  }
  Target target = {context.space(), "stream"};
  for (std::string_view filter : {"worker", "kind", "debouncer"}) target.query(filter, arguments.maybe(filter));
  return Follower(context, target, arguments.one("after"), count).run();
}

}  // namespace

std::vector<Command> stream_commands() {
  return {{"stream",
           kSystem,
           "Follow every change of state, until interrupted",
           {},
           {{"worker", "WORKER", "Only of this worker"},
            {"kind", "KIND", "Only of this kind"},
            {"debouncer", "DEBOUNCER", "Only of this debouncer"},
            {"after", "CURSOR", "Go on behind this one, as --json shows it by id"},
            {"count", "N", "End after so many"}},
           follow_stream}};
}

}  // namespace perdure::cli
