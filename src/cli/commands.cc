#include "cli/commands.h"

#include <algorithm>
#include <iterator>

namespace perdure::cli {

std::string Arguments::one(std::string_view name) const {
  return maybe(name).value_or("");
}

std::optional<std::string> Arguments::maybe(std::string_view name) const {
  auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return {};
  return found->second.front();
}

const std::vector<std::string>& Arguments::all(std::string_view name) const {
  static const std::vector<std::string> kNone;
  auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

std::span<const Command> all_commands() {
  static const std::vector<Command> kCommands = [] {
    std::vector<Command> all;
    for (auto part : {emit_commands, work_commands, event_commands, resource_commands, actor_commands, hook_commands,
                      transcript_commands, data_commands, serve_commands, stream_commands, store_commands,
                      system_commands, bench_commands})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return kCommands;
}

std::span<const Flag> global_flags() {
  static const std::vector<Flag> kFlags = {
      {"url", "URL", "The daemon: http://HOST:PORT or unix:///SOCKET", "PERDURE_URL"},
      {"space", "SPACE", "The space that names belong to; 'default' unless told", "PERDURE_SPACE"},
      {"json", "", "Print JSON: one object, or one line for each item of a list"},
      {"yes", "", "Do not ask before something that cannot be undone"},
  };
  return kFlags;
}

const Command* find_command(std::string_view name) {
  auto found = std::ranges::find(all_commands(), name, &Command::name);
  return found == all_commands().end() ? nullptr : &*found;
}

OrFailure<void> ask_and_print(Context& context, const Call& call) {
  auto answer = context.ask(call);
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (!answer->body.is_null()) context.print_object(answer->body);
  return {};
}

OrFailure<void> ask_and_say(Context& context, const Call& call, std::string_view message) {
  auto answer = context.ask(call);
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (context.json() && !answer->body.is_null()) {
    context.print(answer->body.to_json());
  } else if (!context.json()) {
    context.say(message);
  }
  return {};
}

}  // namespace perdure::cli
