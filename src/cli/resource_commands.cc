// What is set by PUT, read, listed and deleted: workers, kinds, schedules, debouncers, partitions; and their switches.
#include <algorithm>

#include "cli/commands.h"

namespace perdure::cli {
namespace {

struct Resource {
  std::string noun;
  std::string path;  ///< The segment of the API.
  const char* group;
  std::string example;
  std::vector<Column> columns;
};

std::vector<Resource> resources() {
  return {
      {"worker",
       "workers",
       kWorkers,
       R"({"concurrency":4,"timeout":"1m"})",
       {{"WORKER", "worker|name"},
        {"STATE", "state", Style::kState},
        {"READY", "counts.ready", Style::kRight},
        {"SCHEDULED", "counts.scheduled", Style::kRight},
        {"RUNNING", "counts.running", Style::kRight},
        {"DEAD", "counts.dead", Style::kRight},
        {"COMPLETED", "completed", Style::kRight},
        {"FAILED", "failed", Style::kRight},
        {"SERVED BY", "served_by", Style::kRight},
        {"OLDEST", "oldest"}}},
      {"schedule",
       "schedules",
       kWorkers,
       R"({"cron":"*/5 * * * *","worker":"report","value":{}})",
       {{"SCHEDULE", "name|schedule"},
        {"WHEN", "every|cron"},
        {"ZONE", "timezone"},
        {"WORKER", "worker"},
        {"LAST", "last"},
        {"NEXT", "next"},
        {"MISSED", "missed_count", Style::kRight}}},
      {"kind",
       "kinds",
       kActors,
       R"({"url":"http://127.0.0.1:8080/counter"})",
       {{"KIND", "kind|name"}, {"URL", "url"}, {"TIMEOUT", "timeout"}, {"SCHEMA", "schema", Style::kRight}}},
      {"debouncer",
       "debouncers",
       kDebouncers,
       R"({"quiet":"2s","max_wait":"10s","worker":"rebuild"})",
       {{"DEBOUNCER", "name|debouncer"},
        {"QUIET", "quiet"},
        {"MAX WAIT", "max_wait"},
        {"WINDOW", "window"},
        {"EDGE", "edge"},
        {"WORKER", "worker"}}},
      {"partition",
       "partitions",
       kSequences,
       R"({"types":{"shop":{"invoice":1,"order":1000}}})",
       {{"PARTITION", "name|partition"}, {"TYPES", "types"}}},
  };
}

std::vector<Command> commands_of(const Resource& resource) {
  const std::string& noun = resource.noun;
  Positional name = {"NAME", "The name of a " + noun};
  Positional settings = {"JSON", "Its settings, or - to read them from stdin"};
  auto list = [resource](Context& context, const Arguments& arguments) {
    return context.print_list({context.space(), resource.path}, arguments, resource.columns);
  };
  auto show = [resource](Context& context, const Arguments& arguments) {
    Target target = {context.space(), resource.path, arguments.one("NAME")};
    return ask_and_print(context, {.method = "GET", .target = target.text(), .repeat = Repeat::kSafe});
  };
  auto set = [resource](Context& context, const Arguments& arguments) -> OrFailure<void> {
    auto body = context.json_text(arguments.one("JSON"), "settings");
    if (!body) return std::unexpected(std::move(body.error()));
    Target target = {context.space(), resource.path, arguments.one("NAME")};
    return ask_and_print(context, {.method = "PUT", .target = target.text(), .body = *body, .repeat = Repeat::kSafe});
  };
  auto remove = [resource](Context& context, const Arguments& arguments) -> OrFailure<void> {
    std::string which = resource.noun + " " + arguments.one("NAME");
    if (auto sure = context.confirm("remove the " + which + "?"); !sure) return sure;
    Target target = {context.space(), resource.path, arguments.one("NAME")};
    return ask_and_say(context, {.method = "DELETE", .target = target.text()}, "removed the " + which);
  };
  std::string example = "Example:\n  perdure " + noun + " set NAME '" + resource.example + "'\n";
  return {
      {noun + " ls", resource.group, "List all " + noun + "s", {}, {limit_flag()}, list},
      {noun + " show", resource.group, "Show a " + noun, {name}, {}, show},
      {noun + " set", resource.group, "Make a " + noun + " or change its settings", {name, settings}, {}, set, example},
      {noun + " rm", resource.group, "Remove a " + noun, {name}, {}, remove},
  };
}

/// POST .../{name}/{action}, for what is switched on and off.
Command switch_of(std::string name, const char* group, std::string summary, std::string path, std::string action,
                  std::string done, bool has_reason) {
  std::string positional = has_reason ? "WORKER" : "NAME";
  Command command = {std::move(name), group, std::move(summary), {{positional, "Its name"}}};
  if (has_reason) {
    command.flags = {{"reason", "TEXT", "What the list of rules says"}, {"until", "TIME", "When it ends by itself"}};
  }
  command.run = [=](Context& context, const Arguments& arguments) {
    Value::Map body;
    for (std::string_view key : {"reason", "until"})
      if (auto text = arguments.maybe(key)) body[std::string(key)] = *text;
    Target target = {context.space(), path, arguments.one(positional), action};
    return ask_and_say(context,
                       {.method = "POST",
                        .target = target.text(),
                        .body = Value(body).to_json(),
                        // All the others change nothing when they are made again.
                        .repeat = action == "run" ? Repeat::kByKey : Repeat::kSafe},
                       arguments.one(positional) + ": " + done);
  };
  return command;
}

OrFailure<void> list_keys(Context& context, const Arguments& arguments) {
  return context.print_list({context.space(), "debouncers", arguments.one("NAME"), "keys"}, arguments,
                            {{"KEY", "key"},
                             {"STATUS", "status", Style::kState},
                             {"COUNT", "count", Style::kRight},
                             {"FIRST", "first"},
                             {"LATEST", "latest"},
                             {"FIRES", "fires_at"}});
}

}  // namespace

std::vector<Command> resource_commands() {
  std::vector<Command> all;
  for (const Resource& resource : resources()) std::ranges::move(commands_of(resource), std::back_inserter(all));
  all.push_back(
      switch_of("pause", kWorkers, "Stop giving out the events of a worker", "workers", "pause", "paused", true));
  all.push_back(switch_of("unpause", kWorkers, "End a pause", "workers", "unpause", "no longer paused", true));
  all.push_back(
      switch_of("block", kWorkers, "Pause a worker as an administrator", "workers", "block", "blocked", true));
  all.push_back(switch_of("unblock", kWorkers, "End a block", "workers", "unblock", "no longer blocked", true));
  all.push_back(
      switch_of("schedule pause", kWorkers, "Stop the ticks of a schedule", "schedules", "pause", "paused", false));
  all.push_back(switch_of("schedule unpause", kWorkers, "Let a schedule tick again", "schedules", "unpause",
                          "no longer paused", false));
  all.push_back(
      switch_of("schedule run", kWorkers, "Emit the event of a schedule now", "schedules", "run", "run", false));
  all.push_back(switch_of("debouncer pause", kDebouncers, "Hold the firing of a debouncer", "debouncers", "pause",
                          "paused", false));
  all.push_back(switch_of("debouncer unpause", kDebouncers, "Let a debouncer fire again", "debouncers", "unpause",
                          "no longer paused", false));
  all.push_back({"debouncer keys",
                 kDebouncers,
                 "List the keys of a debouncer",
                 {{"NAME", "The name of a debouncer"}},
                 {limit_flag()},
                 list_keys});
  return all;
}

}  // namespace perdure::cli
