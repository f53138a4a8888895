// perdure stream: follow what happens.
#include <charconv>
#include <limits>

#include "cli/commands.h"
#include "cli/follow.h"

namespace perdure::cli {
namespace {

void show(Context& context, const StreamedEvent& event) {
  auto data = Value::from_json(event.data);
  Value shown = data ? std::move(*data) : Value(event.data);
  if (context.json()) {
    context.print(Value(Value::Map{{"id", event.id}, {"event", event.event}, {"data", shown}}).to_json());
  } else {
    context.print(cell_of(&static_cast<const Value&>(Value(event.event))) + "  " + cell_of(&shown));
  }
}

OrFailure<void> follow_stream(Context& context, const Arguments& arguments) {
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  if (auto text = arguments.maybe("count")) {
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
    if (error != std::errc() || end != text->data() + text->size() || count == 0)
      return usage("--count is '" + *text + "', but must be a number from 1");
  }
  Target target = {context.space(), "stream"};
  for (std::string_view filter : {"worker", "kind", "debouncer", "session"})
    target.query(filter, arguments.maybe(filter));
  auto next = [&context, left = count](const StreamedEvent& event) mutable -> OrFailure<bool> {
    show(context, event);
    return --left > 0;
  };
  return Follower(context, target, arguments.one("after"), next).run();
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
            {"session", "SESSION", "Only of this session of a transcript"},
            {"after", "CURSOR", "Go on behind this one, as --json shows it by id"},
            {"count", "N", "End after so many"}},
           follow_stream}};
}

}  // namespace perdure::cli
