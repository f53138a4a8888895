// perdure emit: one event, or one for each line of stdin, in batches.
#include <algorithm>
#include <charconv>

#include "cli/commands.h"
#include "cli/duration.h"

namespace perdure::cli {
namespace {

// What the API takes in one array, and half of what it takes in one body.
constexpr std::size_t kBatchEvents = 1000, kBatchBytes = std::size_t{4} << 20;
constexpr int kBusyRetries = 20;

// All of an event but its value, as the members of a JSON object: `"worker":"mail","delay":"5m"`.
OrFailure<std::string> settings_of(const Arguments& arguments) {
  Value::Map event;
  event["worker"] = arguments.one("WORKER");
  if (auto delay = arguments.maybe("delay")) event["delay"] = duration_value(*delay);
  if (auto priority = arguments.maybe("priority")) event["priority"] = duration_value(*priority);
  for (std::string name : {"at", "id", "limit-key"}) {
    auto text = arguments.maybe(name);
    std::ranges::replace(name, '-', '_');
    if (text) event[name] = *text;
  }
  if (auto key = arguments.maybe("unique")) {
    Value::Map unique = {{"key", *key}};
    if (auto span = arguments.maybe("unique-for")) unique["for"] = duration_value(*span);
    event["unique"] = std::move(unique);
  } else if (arguments.has("unique-for")) {
    return usage("--unique-for goes with --unique KEY");
  }
  if (auto text = arguments.maybe("retry")) {
    auto retry = Value::from_json(*text);
    if (!retry) return usage("--retry is not JSON: " + retry.error().message, R"(as in '{"max":2,"delay":"5m"}')");
    event["retry"] = std::move(*retry);
  }
  std::string json = Value(std::move(event)).to_json();
  return json.substr(1, json.size() - 2);
}

void print_id(Context& context, const Value& item) {
  context.print(context.json() ? item.to_json() : cell_of(item.find("id")));
}

OrFailure<void> emit_one(Context& context, const Arguments& arguments, const std::string& settings) {
  auto value = context.json_text(arguments.one("JSON"), "value");
  if (!value) return std::unexpected(std::move(value.error()));
  Target target = {context.space(), "events"};
  // The text goes as it was typed, so that no number in it changes its form on the way.
  auto answer = context.ask({.method = "POST",
                             .target = target.text(),
                             .body = "{" + settings + ",\"value\":" + *value + "}",
                             .repeat = Repeat::kByKey});
  if (!answer) return std::unexpected(std::move(answer.error()));
  print_id(context, answer->body);
  const Value* duplicate = answer->body.find("duplicate");
  if (duplicate != nullptr && *duplicate == Value(true) && !context.json())
    context.say("there is one with this key already");
  return {};
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

// Reads lines, sends them in batches, and says how far it is.
class Emitter {
 public:
  Emitter(Context& context, std::string settings)
      : context_(context), world_(context.world()), settings_(std::move(settings)) {}

  OrFailure<void> run() {
    std::string line;
    while (std::getline(world_.in, line)) {
      ++line_number_;
      bytes_read_ += line.size() + 1;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (auto value = Value::from_json(line); !value) {
        return stopped(
            usage("line " + std::to_string(line_number_) + " is not JSON: " + value.error().message).error());
      }
      batch_ += (batch_.empty() ? "{" : ",{") + settings_ + ",\"value\":" + line + "}";
      ++batch_events_;
      // What comes slowly, from a program that goes on running, is not kept waiting for a full batch.
      bool full = batch_events_ == kBatchEvents || batch_.size() >= kBatchBytes;
      if (!full && world_.in_is_ready()) continue;
      if (auto sent = send(); !sent) return stopped(std::move(sent.error()));
    }
    if (auto sent = send(); !sent) return stopped(std::move(sent.error()));
    clear_progress();
    if (!context_.json()) context_.say("emitted " + with_commas(emitted_) + " events");
    return {};
  }

 private:
  OrFailure<void> send() {
    if (batch_events_ == 0) return {};
    Target target = {context_.space(), "events"};
    auto answer = context_.ask({.method = "POST",
                                .target = target.text(),
                                .body = "[" + batch_ + "]",
                                .timeout = std::chrono::minutes(2),
                                .repeat = Repeat::kByKey,
                                .busy_retries = kBusyRetries});
    if (!answer) return std::unexpected(std::move(answer.error()));
    const Value* items = answer->body.find("items");
    // A flood of ids is of use to a program only.
    if (items != nullptr && items->is_list() && (context_.json() || !world_.out_is_terminal))
      for (const Value& item : *items->as_list()) print_id(context_, item);
    world_.out << std::flush;
    emitted_ += batch_events_;
    emitted_lines_ = line_number_;
    batch_events_ = 0;
    batch_.clear();
    show_progress();
    return {};
  }

  // What was emitted stays: say from where to go on.
  OrFailure<void> stopped(Failure failure) {
    clear_progress();
    std::string done = emitted_ == 0 ? "nothing was emitted"
                                     : "emitted the " + with_commas(emitted_) + " events up to line " +
                                           std::to_string(emitted_lines_) + "; go on with line " +
                                           std::to_string(emitted_lines_ + 1);
    failure.hint += (failure.hint.empty() ? "" : "\n") + done;
    return std::unexpected(std::move(failure));
  }

  void show_progress() {
    if (!world_.err_is_terminal || context_.json()) return;
    constexpr std::uint64_t kBarWidth = 30;
    world_.err << "\r";
    if (world_.in_size && *world_.in_size > 0) {
      std::uint64_t percent = std::min<std::uint64_t>(100, bytes_read_ * 100 / *world_.in_size);
      std::string bar(percent * kBarWidth / 100, '#');
      bar.resize(kBarWidth, '.');
      world_.err << "[" << bar << "] " << percent << "%  ";
    }
    world_.err << with_commas(emitted_) << " events" << std::flush;
    shows_progress_ = true;
  }

  void clear_progress() {
    if (std::exchange(shows_progress_, false)) world_.err << "\r\x1b[K" << std::flush;
  }

  Context& context_;
  World& world_;
  std::string settings_;
  std::string batch_;
  std::size_t batch_events_ = 0;
  std::uint64_t line_number_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t emitted_ = 0;
  std::uint64_t emitted_lines_ = 0;
  bool shows_progress_ = false;
};

OrFailure<void> emit(Context& context, const Arguments& arguments) {
  auto settings = settings_of(arguments);
  if (!settings) return std::unexpected(std::move(settings.error()));
  if (arguments.one("JSON") != "-") return emit_one(context, arguments, *settings);
  if (arguments.has("id")) return usage("--id is for one event, not for a line each");
  return Emitter(context, *settings).run();
}

constexpr const char* kExamples = R"(Examples:
  perdure emit mail '{"to":"ada@example.org"}'
  perdure emit mail '"hello"' --delay 5m
  perdure emit report 7 --at 2030-01-01T09:00:00Z --unique report-7
  perdure emit import - < values.jsonl      one JSON value per line
)";

}  // namespace

std::vector<Command> emit_commands() {
  return {{"emit",
           kEvents,
           "Put an event into the queue of a worker",
           {{"WORKER", "The worker that it is for"}, {"JSON", "Its value; - reads one value per line from stdin"}},
           {{"delay", "DURATION", "Not before this has passed, as in 5m"},
            {"at", "TIME", "Not before this time, as in 2030-01-01T09:00:00Z"},
            {"unique", "KEY", "Only if there is none with this key"},
            {"unique-for", "DURATION", "How long the key is remembered"},
            {"id", "UUID", "Its id, instead of a new one"},
            {"priority", "0-9", "0 is first"},
            {"limit-key", "KEY", "What the worker's limit_per_key counts by"},
            {"retry", "JSON", R"(What happens when it fails: {"max":2,"delay":"5m"})"}},
           emit,
           kExamples}};
}

}  // namespace perdure::cli
