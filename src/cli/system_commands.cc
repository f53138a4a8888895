// The daemon as a whole, and the command line itself.
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/duration.h"
#include "cli/help.h"

namespace perdure::cli {
namespace {

OrFailure<void> status(Context& context, const Arguments&) {
  return ask_and_print(context, {.method = "GET", .target = "/v1/_/status", .repeat = Repeat::kSafe});
}

OrFailure<void> list_nodes(Context& context, const Arguments& arguments) {
  return context.print_list({"_", "nodes"}, arguments,
                            {{"NODE", "name"}, {"ID", "id"}, {"TTL", "ttl"}, {"RENEWALS", "renewals", Style::kRight}});
}

OrFailure<void> list_spaces(Context& context, const Arguments& arguments) {
  return context.print_list({"_", "spaces"}, arguments, {{"SPACE", "space|name"}});
}

OrFailure<void> hold(Context& context, const Arguments&) {
  return ask_and_say(context, {.method = "POST", .target = "/v1/_/hold", .body = "{}", .repeat = Repeat::kSafe},
                     "held: what comes in is stored, and nothing is run until 'perdure release'");
}

OrFailure<void> release(Context& context, const Arguments&) {
  return ask_and_say(context, {.method = "POST", .target = "/v1/_/release", .body = "{}", .repeat = Repeat::kSafe},
                     "released");
}

OrFailure<void> advance_clock(Context& context, const Arguments& arguments) {
  Value::Map body = {{"advance", duration_value(arguments.one("DURATION"))}};
  auto answer = context.ask({.method = "POST",
                             .target = "/v1/_/clock",
                             .body = Value(std::move(body)).to_json(),
                             .timeout = std::chrono::minutes(10)});
  if (!answer) return std::unexpected(std::move(answer.error()));
  context.print(context.json() ? answer->body.to_json() : cell_of(answer->body.find("now")));
  return {};
}

OrFailure<void> version(Context& context, const Arguments&) {
  context.print(context.json() ? Value(Value::Map{{"version", PERDURE_VERSION}}).to_json()
                               : "perdure " PERDURE_VERSION);
  return {};
}

OrFailure<void> complete(Context& context, const Arguments& arguments) {
  auto script = completion(arguments.one("SHELL"));
  if (!script) return std::unexpected(std::move(script.error()));
  context.world().out << *script;
  return {};
}

OrFailure<void> print_man_page(Context& context, const Arguments&) {
  context.world().out << man_page();
  return {};
}

constexpr const char* kCompletionExamples = R"(Examples:
  source <(perdure completion bash)
  perdure completion zsh > "${fpath[1]}/_perdure"
  perdure completion fish > ~/.config/fish/completions/perdure.fish
)";

}  // namespace

std::vector<Command> system_commands() {
  Command man = {"man", kSystem, "Print the manual page, for man -l -", {}, {}, print_man_page};
  man.hidden = true;
  return {
      {"status", kSystem, "Show the state of the system", {}, {}, status},
      {"nodes", kSystem, "List the daemons and processes on the store", {}, {limit_flag()}, list_nodes},
      {"spaces", kSystem, "List the spaces", {}, {limit_flag()}, list_spaces},
      {"hold", kSystem, "Store what comes in, but run nothing", {}, {}, hold},
      {"release", kSystem, "End a hold", {}, {}, release},
      {"clock advance",
       kSystem,
       "Move the clock of a daemon that runs with --test-clock",
       {{"DURATION", "How far, as in 5m"}},
       {},
       advance_clock},
      {"completion",
       kSystem,
       "Print a script that completes commands in a shell",
       {{"SHELL", "bash, zsh or fish", Count::kOne, "bash zsh fish"}},
       {},
       complete,
       kCompletionExamples},
      {"version", kSystem, "Print the version", {}, {}, version},
      man,
  };
}

}  // namespace perdure::cli
