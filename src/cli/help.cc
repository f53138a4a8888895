#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "cli/command.h"

namespace perdure::cli {
namespace {

constexpr const char* kIntroduction = "Durable actors, queues, debouncers and sequences that outlive your process.\n";

constexpr const char* kMainExamples = R"(Examples:
  perdure serve                                   run the daemon, here and now
  perdure emit mail '{"to":"ada@example.org"}'    put an event into a queue
  perdure work mail -- ./send-mail.sh             run a program for each event
  perdure worker ls                               see what there is
)";

constexpr const char* kExitCodes = R"(Exit codes:
  0 done  1 error  2 wrongly typed  3 not found  4 conflict  5 daemon unavailable
)";

std::vector<std::string> groups() {
  std::vector<std::string> names;
  for (const Command& command : all_commands())
    if (std::ranges::count(names, command.group) == 0) names.push_back(command.group);
  return names;
}

std::string synopsis(const Command& command) {
  std::string out = command.name;
  for (const Positional& each : command.positionals) {
    if (each.count == Count::kOne) out += " " + each.name;
    if (each.count == Count::kOptional) out += " [" + each.name + "]";
    if (each.count == Count::kAny) out += " [" + each.name + "...]";
    if (each.count == Count::kRest) out += " -- " + each.name + "...";
  }
  return out;
}

// Text of roff: a hyphen that can be copied, no backslash that does something, no line that is taken for a request.
std::string roff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

std::string roff_flag(const Flag& flag) {
  std::string out = ".TP\n\\fB\\-\\-" + roff(flag.name) + "\\fR";
  if (!flag.value.empty()) out += " \\fI" + roff(flag.value) + "\\fR";
  out += "\n" + roff(flag.summary) + ".";
  if (!flag.variable.empty()) out += " Environment: " + roff(flag.variable) + ".";
  return out + "\n";
}

std::string roff_command(const Command& command) {
  std::string out = ".SS \"perdure " + roff(synopsis(command)) + "\"\n" + roff(command.summary) + ".\n";
  for (const Positional& each : command.positionals)
    out += ".TP\n\\fI" + roff(each.name) + "\\fR\n" + roff(each.summary) + ".\n";
  for (const Flag& flag : command.flags) out += roff_flag(flag);
  if (!command.examples.empty()) out += ".PP\n.nf\n" + roff(command.examples) + ".fi\n";
  return out;
}

}  // namespace

std::string main_help() {
  constexpr std::size_t kMargin = 34;
  std::string out = std::string(kIntroduction) + "\nUsage: perdure COMMAND [ARGUMENTS] [OPTIONS]\n";
  for (const std::string& group : groups()) {
    out += "\n" + group + ":\n";
    for (const Command& command : all_commands()) {
      if (command.group != group || command.hidden) continue;
      std::string line = "  " + synopsis(command);
      line.resize(std::max(kMargin, line.size() + 2), ' ');
      out += line + command.summary + "\n";
    }
  }
  out += "\nFor every command:\n";
  for (const Flag& flag : global_flags()) {
    std::string line = "  --" + flag.name + (flag.value.empty() ? "" : " " + flag.value);
    line.resize(std::max(kMargin, line.size() + 2), ' ');
    out += line + flag.summary + (flag.variable.empty() ? "" : " [" + flag.variable + "]") + "\n";
  }
  return out + "\n" + kMainExamples + "\n" + kExitCodes + "\n'perdure COMMAND --help' says more about a command.\n";
}

std::string man_page() {
  std::string out = ".\\\" Written by 'perdure man'; change the table of commands instead.\n";
  out += ".TH PERDURE 1 \"\" \"perdure " PERDURE_VERSION "\" \"perdure\"\n";
  out += ".SH NAME\nperdure \\- durable actors, queues, debouncers and sequences that outlive your process\n";
  out += ".SH SYNOPSIS\n.B perdure\n.I COMMAND\n[ARGUMENTS] [OPTIONS]\n";
  out += ".SH DESCRIPTION\n";
  out += roff(
      "'perdure serve' runs a daemon, and every other command asks one. It is found by --url, else by a socket in "
      "./perdure-data (in the directory of PERDURE_STORE if that is set), else at http://127.0.0.1:7420.\n");
  out += ".PP\n";
  out += roff(
      "Data goes to stdout, messages go to stderr. Lists are tables, or with --json one line of JSON for each "
      "item. Colours are used on a terminal, unless NO_COLOR is set.\n");
  out += ".PP\n" + roff("Durations are 250ms, 5s, 5m, 24h, 7d, or a number of seconds; times are RFC 3339.\n");
  out += ".SH OPTIONS\n" + roff("For every command:\n");
  for (const Flag& flag : global_flags()) out += roff_flag(flag);
  for (const std::string& group : groups()) {
    std::string title = group;
    std::ranges::transform(title, title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    out += ".SH " + roff(title) + "\n";
    for (const Command& command : all_commands())
      if (command.group == group && !command.hidden) out += roff_command(command);
  }
  out += ".SH ENVIRONMENT\n.TP\n.B PERDURE_TOKEN\nSent to the daemon as a Bearer token.\n";
  out += ".TP\n.B NO_COLOR\nNo colours, if it is not empty.\n";
  out += ".TP\n.B TRACEPARENT\n" + roff("Sent along, and stored with events and messages.\n");
  out += ".SH EXIT STATUS\n";
  constexpr const char* kCodes[] = {"done",
                                    "an error",
                                    "wrongly typed, or refused as such by the daemon",
                                    "not found",
                                    "a conflict with what is there",
                                    "the daemon is unavailable"};
  int number = 0;
  for (const char* meaning : kCodes) out += ".TP\n.B " + std::to_string(number++) + "\n" + meaning + "\n";
  return out;
}

}  // namespace perdure::cli
