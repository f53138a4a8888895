// What is asked of events that are there already.
#include <algorithm>

#include "cli/commands.h"
#include "cli/duration.h"

namespace perdure::cli {
namespace {

using namespace std::chrono_literals;

const Positional kId = {"ID", "The id of an event"};
const Positional kWorker = {"WORKER", "The name of a worker"};

Flag state_flag() {
  return {"state", "STATE", "Only those that are scheduled, ready, running, paused, blocked or dead"};
}

OrFailure<void> list_events(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "events"};
  target.query("worker", arguments.maybe("WORKER")).query("state", arguments.maybe("state"));
  return context.print_list(target, arguments,
                            {{"ID", "id"},
                             {"WORKER", "worker"},
                             {"STATE", "state", Style::kState},
                             {"ATTEMPTS", "attempts", Style::kRight},
                             {"DUE", "delay_until|enqueued_at"},
                             {"ERROR", "last_error"},
                             {"VALUE", "value"}});
}

OrFailure<void> show_event(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "events", arguments.one("ID")};
  auto answer = context.get(target);
  if (!answer && answer.error().exit_code == kExitNotFound)
    answer.error().hint = "if it has ended, 'perdure history " + arguments.one("ID") + "' says how";
  if (!answer) return std::unexpected(std::move(answer.error()));
  context.print_object(answer->body);
  return {};
}

OrFailure<void> why(Context& context, const Arguments& arguments) {
  auto answer = context.get({context.space(), "events", arguments.one("ID"), "why"});
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (context.json()) {
    context.print(answer->body.to_json());
  } else {
    context.print(cell_of(answer->body.find("why")));
  }
  return {};
}

OrFailure<void> cancel_in_bulk(Context& context, const Arguments& arguments) {
  std::string worker = arguments.one("worker");
  Target target = {context.space(), "workers", worker, "events"};
  target.query("state", arguments.maybe("state"));
  std::string which = arguments.has("state") ? arguments.one("state") + " events" : "events";
  if (auto sure = context.confirm("cancel all " + which + " of " + worker + "?"); !sure) return sure;
  auto answer = context.ask({.method = "DELETE", .target = target.text(), .timeout = 10min, .repeat = Repeat::kSafe});
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (context.json()) {
    context.print(answer->body.to_json());
  } else {
    context.say("cancelled " + cell_of(answer->body.find("cancelled")) + " events");
  }
  return {};
}

OrFailure<void> cancel(Context& context, const Arguments& arguments) {
  const auto& ids = arguments.all("ID");
  if (ids.empty() == !arguments.has("worker"))
    return usage("say either the ids of events, or --worker WORKER for all of its events");
  if (ids.empty()) return cancel_in_bulk(context, arguments);
  if (arguments.has("state")) return usage("--state goes with --worker");
  for (const std::string& id : ids) {
    Target target = {context.space(), "events", id};
    if (arguments.has("force")) target.query("force", "true");
    auto answer = context.ask({.method = "DELETE", .target = target.text()});
    if (!answer) {
      if (answer.error().exit_code == kExitConflict && !arguments.has("force"))
        answer.error().hint = "--force cancels it although it runs";
      return std::unexpected(std::move(answer.error()));
    }
    if (!context.json()) context.say("cancelled " + id);
  }
  return {};
}

OrFailure<void> history(Context& context, const Arguments& arguments) {
  Target target = {context.space(), "history", arguments.one("ID")};
  Duration timeout = 30s;
  if (auto wait = arguments.maybe("wait")) {
    auto parsed = parse_duration(*wait);
    if (!parsed) return usage("--wait is '" + *wait + "', which is not a duration such as 20s");
    timeout += *parsed;
    target.query("wait", *wait);
  }
  return ask_and_print(context,
                       {.method = "GET", .target = target.text(), .timeout = timeout, .repeat = Repeat::kSafe});
}

OrFailure<void> list_dead(Context& context, const Arguments& arguments) {
  return context.print_list({context.space(), "workers", arguments.one("WORKER"), "dead"}, arguments,
                            {{"ID", "id"},
                             {"ATTEMPTS", "attempts", Style::kRight},
                             {"ENQUEUED", "enqueued_at"},
                             {"ERROR", "last_error"},
                             {"VALUE", "value"}});
}

OrFailure<void> redrive(Context& context, const Arguments& arguments) {
  const auto& ids = arguments.all("ID");
  if (ids.empty() == !arguments.has("all")) return usage("say either the ids of dead events, or --all");
  Value::Map body;
  if (ids.empty()) {
    body["all"] = true;
  } else {
    Value::List list(ids.begin(), ids.end());
    body["ids"] = std::move(list);
  }
  if (auto rate = arguments.maybe("rate")) body["rate"] = *rate;
  Target target = {context.space(), "workers", arguments.one("WORKER"), "dead", "redrive"};
  auto answer = context.ask({.method = "POST",
                             .target = target.text(),
                             .body = Value(std::move(body)).to_json(),
                             .timeout = 10min,
                             .repeat = Repeat::kByKey});
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (context.json()) {
    context.print(answer->body.to_json());
    return {};
  }
  const Value* count = at_path(answer->body, "redriven|count");
  context.say(count == nullptr ? "redriven" : "redriven " + cell_of(count) + " events");
  return {};
}

OrFailure<void> list_attempts(Context& context, const Arguments& arguments) {
  return context.print_list({context.space(), "workers", arguments.one("WORKER"), "attempts"}, arguments,
                            {{"EVENT", "event"},
                             {"ATTEMPT", "attempt", Style::kRight},
                             {"OUTCOME", "outcome", Style::kState},
                             {"STARTED", "started"},
                             {"FINISHED", "ended"},
                             {"ERROR", "error"},
                             {"VALUE", "value"}});
}

}  // namespace

std::vector<Command> event_commands() {
  const Positional ids = {"ID", "Ids of events", Count::kAny};
  return {
      {"events",
       kEvents,
       "List events",
       {{"WORKER", "Only those of this worker", Count::kOptional}},
       {state_flag(), limit_flag()},
       list_events},
      {"event", kEvents, "Show an event", {kId}, {}, show_event},
      {"why", kEvents, "Say why an event is not running yet", {kId}, {}, why},
      {"history",
       kEvents,
       "Show how an event ended",
       {kId},
       {{"wait", "DURATION", "Wait so long for it to end"}},
       history},
      {"cancel",
       kEvents,
       "Cancel events: these, or all of a worker",
       {ids},
       {{"force", "", "Also if it is running: its completion is refused then"},
        {"worker", "WORKER", "Cancel all events of this worker"},
        state_flag()},
       cancel},
      {"dead", kEvents, "List the dead letters of a worker", {kWorker}, {limit_flag()}, list_dead},
      {"redrive",
       kEvents,
       "Make dead letters ready again",
       {kWorker, ids},
       {{"all", "", "All that are dead now"}, {"rate", "RATE", "Not faster than this, as in 10/s"}},
       redrive},
      {"attempts", kEvents, "List the recent executions of a worker", {kWorker}, {limit_flag()}, list_attempts},
  };
}

}  // namespace perdure::cli
