// The application's own keys.
#include "cli/commands.h"

namespace perdure::cli {
namespace {

Target key_target(Context& context, const Arguments& arguments) {
  return {context.space(), "keys", arguments.one("KEY")};
}

http::Headers conditions(const Arguments& arguments) {
  http::Headers headers;
  if (auto version = arguments.maybe("if-match")) {
    // An ETag is quoted; what `perdure key get --json` shows is not.
    bool quoted = version->starts_with('"') || *version == "*";
    headers.add("If-Match", quoted ? *version : "\"" + *version + "\"");
  }
  return headers;
}

std::string version_of(const Answer& answer) {
  const std::string* tag = answer.headers.find("ETag");
  if (tag == nullptr) return "";
  return tag->size() > 1 && tag->starts_with('"') ? tag->substr(1, tag->size() - 2) : *tag;
}

OrFailure<void> get_key(Context& context, const Arguments& arguments) {
  auto answer = context.get(key_target(context, arguments));
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (!context.json()) {
    context.print(answer->body.to_json());
    return {};
  }
  Value shown = Value::Map{{"key", arguments.one("KEY")}, {"value", answer->body}, {"version", version_of(*answer)}};
  context.print(shown.to_json());
  return {};
}

OrFailure<void> set_key(Context& context, const Arguments& arguments) {
  auto value = context.json_text(arguments.one("JSON"), "value");
  if (!value) return std::unexpected(std::move(value.error()));
  auto answer = context.ask({.method = "PUT",
                             .target = key_target(context, arguments).text(),
                             .body = *value,
                             .headers = conditions(arguments)});
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (context.json()) {
    context.print(Value(Value::Map{{"key", arguments.one("KEY")}, {"version", version_of(*answer)}}).to_json());
  } else {
    context.say("set " + arguments.one("KEY"));
  }
  return {};
}

OrFailure<void> remove_key(Context& context, const Arguments& arguments) {
  if (auto sure = context.confirm("remove the key " + arguments.one("KEY") + "?"); !sure) return sure;
  return ask_and_say(
      context, {.method = "DELETE", .target = key_target(context, arguments).text(), .headers = conditions(arguments)},
      "removed " + arguments.one("KEY"));
}

OrFailure<void> list_keys(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "keys"};
  target.query("prefix", arguments.maybe("prefix"));
  return context.print_list(target, arguments, {{"KEY", "key"}, {"VERSION", "version"}, {"VALUE", "value"}});
}

}  // namespace

std::vector<Command> data_commands() {
  const Positional key = {"KEY", "The key"};
  const Flag if_match = {"if-match", "VERSION", "Only if it still has this version"};
  return {
      {"key ls",
       kData,
       "List keys",
       {},
       {{"prefix", "TEXT", "Only those that begin like this"}, limit_flag()},
       list_keys},
      {"key get", kData, "Print the value of a key", {key}, {}, get_key},
      {"key set", kData, "Set a key", {key, {"JSON", "Its value, or - to read it from stdin"}}, {if_match}, set_key},
      {"key rm", kData, "Remove a key", {key}, {if_match}, remove_key},
  };
}

}  // namespace perdure::cli
