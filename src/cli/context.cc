#include "cli/context.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

namespace perdure::cli {
namespace {

constexpr std::uint64_t kPageMax = 1000, kLimitDefault = 100;

Places places_of(const World& world, const Arguments& arguments) {
  Places places;
  places.url = arguments.maybe("url");
  auto store = world.variables("PERDURE_STORE");
  if (store && store->starts_with("lmdb:")) places.directory = store->substr(5);
  return places;
}

std::optional<std::string> filled(std::optional<std::string> text) {
  return text && !text->empty() ? text : std::nullopt;
}

OrFailure<std::uint64_t> limit_of(const Arguments& arguments) {
  auto text = arguments.maybe("limit");
  if (!text) return kLimitDefault;
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || text->empty())
    return usage("--limit is '" + *text + "', but must be a number; 0 is for all");
  return number == 0 ? std::numeric_limits<std::uint64_t>::max() : number;
}

}  // namespace

Flag limit_flag() {
  return {"limit", "N", "How many to show at most, 0 for all; 100 unless told"};
}

Context::Context(World& world, const Arguments& arguments)
    : world_(world),
      json_(arguments.has("json")),
      yes_(arguments.has("yes")),
      space_(arguments.maybe("space").value_or("default")),
      places_(places_of(world, arguments)),
      daemon_(places_, filled(world.variables("PERDURE_TOKEN")), filled(world.variables("TRACEPARENT"))) {}

void Context::say(std::string_view message) {
  world_.err << message << "\n" << std::flush;
}

void Context::print(std::string_view line) {
  world_.out << line << "\n";
}

TableLook Context::look() const {
  auto no_colour = world_.variables("NO_COLOR");
  return {.colour = world_.out_is_terminal && (!no_colour || no_colour->empty()),
          .columns = world_.out_is_terminal ? world_.columns : 0};
}

void Context::print_object(const Value& object) {
  if (json_) {
    print(object.to_json());
  } else {
    world_.out << pairs(object, look());
  }
}

void Context::print_rows(std::span<const Value> rows, std::vector<Column> columns) {
  if (!json_) {
    world_.out << Table(std::move(columns), look()).page(rows);
    return;
  }
  for (const Value& row : rows) print(row.to_json());
}

OrFailure<void> Context::print_list(const Target& target, const Arguments& arguments, std::vector<Column> columns) {
  auto limit = limit_of(arguments);
  if (!limit) return std::unexpected(std::move(limit.error()));
  Table table(std::move(columns), look());
  std::optional<std::string> after = arguments.maybe("after");
  std::uint64_t shown = 0;
  while (true) {
    Target page = target;
    page.query("limit", std::to_string(std::min(kPageMax, *limit - shown))).query("after", after);
    auto answer = get(page);
    if (!answer) return std::unexpected(std::move(answer.error()));
    const Value* items = answer->body.find("items");
    if (items == nullptr || !items->is_list()) return give_up(kExitError, "the daemon's answer is not a list");
    std::span<const Value> rows = *items->as_list();
    if (json_) {
      for (const Value& row : rows) print(row.to_json());
    } else {
      world_.out << table.page(rows);
    }
    world_.out << std::flush;
    shown += rows.size();
    const Value* next = answer->body.find("next");
    if (next == nullptr || next->is_null() || rows.empty()) break;
    after = cell_of(next);
    if (shown < *limit) continue;
    say("there are more; --limit 0 shows all");
    break;
  }
  if (shown == 0 && world_.out_is_terminal && !json_) say("none");
  return {};
}

OrFailure<void> Context::confirm(const std::string& question) {
  if (yes_) return {};
  if (!world_.in_is_terminal || !world_.err_is_terminal)
    return usage("this cannot be undone, and nobody is here to ask: " + question, "say --yes if you mean it");
  world_.err << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(world_.in, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return give_up(kExitError, "nothing was done");
}

OrFailure<std::string> Context::json_text(const std::string& argument, std::string_view what) {
  std::string text = argument == "-" ? std::string(std::istreambuf_iterator<char>(world_.in), {}) : argument;
  if (auto value = Value::from_json(text); !value) {
    std::string hint = "quote it for the shell, as in '{\"to\":\"ada\"}'";
    if (argument != "-" && text.find_first_of("{}[]\"':") == std::string::npos && !text.empty())
      hint = "text is '\"" + text + "\"' in JSON";
    return usage("the " + std::string(what) + " is not JSON: " + value.error().message, hint);
  }
  return text;
}

}  // namespace perdure::cli
