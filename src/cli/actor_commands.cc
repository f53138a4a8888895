// Actors, debouncers' keys and sequences: what is done to one thing of a kind.
#include "cli/commands.h"
#include "cli/duration.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;

const Positional kKind = {"KIND", "The kind of the actor"};
const Positional kId = {"ID", "The id of the actor"};
const Positional kMessage = {"JSON", "The message, or - to read it from stdin"};
const Positional kPartition = {"PARTITION", "The name of a partition"};

Target actor_target(Context& context, const Arguments& arguments, std::string_view action) {
  return {context.space(), "actors", arguments.one("KIND"), arguments.one("ID"), action};
}

OrFailure<void> call_actor(Context& context, const Arguments& arguments) {
  auto message = context.json_text(arguments.one("JSON"), "message");
  if (!message) return std::unexpected(std::move(message.error()));
  Target target = actor_target(context, arguments, arguments.has("priority") ? "priority_call" : "call");
  Duration timeout = 15s;
  if (auto text = arguments.maybe("timeout")) {
    auto parsed = parse_duration(*text);
    if (!parsed && *text != "none") return usage("--timeout is '" + *text + "', which is not a duration such as 5s");
    timeout = parsed ? *parsed + 10s : Duration::max();
    target.query("timeout", *text);
  }
  auto answer = context.ask(
      {.method = "POST", .target = target.text(), .body = *message, .timeout = timeout, .repeat = Repeat::kByKey});
  if (!answer) return std::unexpected(std::move(answer.error()));
  const Value* reply = answer->body.find("reply");
  context.print(context.json() || reply == nullptr ? answer->body.to_json() : reply->to_json());
  return {};
}

OrFailure<void> cast_to_actor(Context& context, const Arguments& arguments) {
  auto message = context.json_text(arguments.one("JSON"), "message");
  if (!message) return std::unexpected(std::move(message.error()));
  Target target = actor_target(context, arguments, arguments.has("priority") ? "priority_cast" : "cast");
  return ask_and_say(context, {.method = "POST", .target = target.text(), .body = *message, .repeat = Repeat::kByKey},
                     "taken");
}

OrFailure<void> list_actors(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "actors", arguments.one("KIND")};
  target.query("prefix", arguments.maybe("prefix"));
  return context.print_list(target, arguments, {{"ID", "id"}});
}

OrFailure<void> show_actor(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "actors", arguments.one("KIND"), arguments.one("ID")};
  return ask_and_print(context, {.method = "GET", .target = target.text(), .repeat = Repeat::kSafe});
}

OrFailure<void> kill_actor(Context& context, const Arguments& arguments) {
  std::string which = arguments.one("KIND") + " " + arguments.one("ID");
  if (auto sure = context.confirm("kill " + which + ", with its state and all of its messages?"); !sure) return sure;
  Target target = {context.space(), "actors", arguments.one("KIND"), arguments.one("ID")};
  return ask_and_say(context, {.method = "DELETE", .target = target.text()}, "killed " + which);
}

OrFailure<void> unlock_actor(Context& context, const Arguments& arguments) {
  Target target = actor_target(context, arguments, "unlock");
  return ask_and_say(context, {.method = "POST", .target = target.text(), .body = "{}", .repeat = Repeat::kSafe},
                     "unlocked " + arguments.one("KIND") + " " + arguments.one("ID"));
}

OrFailure<void> touch(Context& context, const Arguments& arguments) {
  std::optional<std::string> payload;
  if (arguments.has("JSON")) {
    auto text = context.json_text(arguments.one("JSON"), "payload");
    if (!text) return std::unexpected(std::move(text.error()));
    payload = *text;
  }
  Target target = {context.space(), "debouncers", arguments.one("DEBOUNCER"), "keys", arguments.one("KEY")};
  return ask_and_print(
      context, {.method = "POST", .target = target.text(), .body = payload.value_or("null"), .repeat = Repeat::kByKey});
}

OrFailure<void> append(Context& context, const Arguments& arguments) {
  auto body = context.json_text(arguments.one("JSON"), "entry");
  if (!body) return std::unexpected(std::move(body.error()));
  Target target = {context.space(), "partitions", arguments.one("PARTITION"), "append"};
  auto answer = context.ask({.method = "POST", .target = target.text(), .body = *body, .repeat = Repeat::kByKey});
  if (!answer) return std::unexpected(std::move(answer.error()));
  const Value* items = answer->body.find("items");
  std::vector<Value> rows = {answer->body};
  if (items != nullptr && items->is_list()) rows = *items->as_list();
  context.print_rows(rows, {{"OFFSET", "offset", Style::kRight}, {"NUMBERS", "numbers"}});
  return {};
}

OrFailure<void> show_log(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "partitions", arguments.one("PARTITION"), "log"};
  return context.print_list(target, arguments,
                            {{"OFFSET", "offset", Style::kRight},
                             {"TYPE", "type"},
                             {"WORKSPACE", "workspace", Style::kRight},
                             {"AT", "at"},
                             {"NUMBERS", "numbers"},
                             {"PAYLOAD", "payload"}});
}

OrFailure<void> show_numbers(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "partitions", arguments.one("PARTITION"), "numbers"};
  target.query("workspace", arguments.one("WORKSPACE"));
  return ask_and_print(context, {.method = "GET", .target = target.text(), .repeat = Repeat::kSafe});
}

constexpr const char* kCallExamples = R"(Examples:
  perdure call counter visits '{"add":1}'
  perdure call counter visits '{"get":true}' --timeout 30s
)";

Flag priority_flag() {
  return {"priority", "", "Past the mailbox and past a lock"};
}

}  // namespace

std::vector<Command> actor_commands() {
  return {
      {"call",
       kActors,
       "Send a message to an actor and print its reply",
       {kKind, kId, kMessage},
       {{"timeout", "DURATION", "How long to wait for the reply, or none for no limit; 5s unless told"},
        priority_flag()},
       call_actor,
       kCallExamples},
      {"cast",
       kActors,
       "Send a message to an actor and do not wait",
       {kKind, kId, kMessage},
       {priority_flag()},
       cast_to_actor},
      {"actors",
       kActors,
       "List the actors of a kind",
       {kKind},
       {{"prefix", "TEXT", "Only those whose ids begin like this"}, limit_flag()},
       list_actors},
      {"actor", kActors, "Show an actor: state, mailbox, lock", {kKind, kId}, {}, show_actor},
      {"kill", kActors, "Remove an actor with its state and mailbox", {kKind, kId}, {}, kill_actor},
      {"unlock", kActors, "Take its lock away from an actor", {kKind, kId}, {}, unlock_actor},
      {"touch",
       kDebouncers,
       "Touch a key of a debouncer",
       {{"DEBOUNCER", "The name of a debouncer"},
        {"KEY", "What is debounced"},
        {"JSON", "The payload, or - to read it from stdin", Count::kOptional}},
       {},
       touch},
      {"append",
       kSequences,
       "Append to the log of a partition and draw numbers",
       {kPartition, {"JSON", R"({"type":"shop","workspace":7,"next":["invoice"],"payload":...}, an array, or -)"}},
       {},
       append},
      {"log",
       kSequences,
       "Show the log of a partition",
       {kPartition},
       {{"after", "OFFSET", "Only what is behind this offset"}, limit_flag()},
       show_log},
      {"numbers",
       kSequences,
       "Show the last numbers that a workspace drew",
       {kPartition, {"WORKSPACE", "The number of a workspace"}},
       {},
       show_numbers},
  };
}

}  // namespace perdure::cli
