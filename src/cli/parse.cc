#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <list>

#include "cli/suggest.h"

namespace perdure::cli {
namespace {

const Flag* find_flag(std::span<const Flag> flags, std::string_view name) {
  auto found = std::ranges::find(flags, name, &Flag::name);
  return found == flags.end() ? nullptr : &*found;
}

// Where a parsed App leaves its values; in lists, for CLI11 keeps references to them.
struct Storage {
  std::list<std::pair<const Positional*, std::vector<std::string>>> many;
  std::list<std::pair<const Positional*, std::string>> single;
  std::list<std::pair<const Flag*, std::vector<std::string>>> flags;
  std::list<std::pair<const Flag*, bool>> switches;
};

void add_flag(CLI::App& app, Storage& storage, const Flag& flag, const std::string& group) {
  std::string summary = flag.summary + (flag.variable.empty() ? "" : " [" + flag.variable + "]");
  CLI::Option* option = nullptr;
  if (flag.value.empty()) {
    storage.switches.emplace_back(&flag, false);
    option = app.add_flag("--" + flag.name, storage.switches.back().second, summary);
  } else {
    storage.flags.emplace_back(&flag, std::vector<std::string>());
    // One value each time: what stands behind it may be a positional argument.
    option = app.add_option("--" + flag.name, storage.flags.back().second, summary)
                 ->type_name(flag.value)
                 ->expected(1)
                 ->allow_extra_args(false);
    if (flag.repeatable) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  option->group(group);
}

void add_positional(CLI::App& app, Storage& storage, const Positional& positional) {
  CLI::Option* option = nullptr;
  if (positional.count == Count::kAny || positional.count == Count::kRest) {
    storage.many.emplace_back(&positional, std::vector<std::string>());
    option = app.add_option(positional.name, storage.many.back().second, positional.summary);
  } else {
    storage.single.emplace_back(&positional, std::string());
    option = app.add_option(positional.name, storage.single.back().second, positional.summary);
    option->required(positional.count == Count::kOne);
  }
  option->type_name(" ");
}

void build(CLI::App& app, Storage& storage, const Command& command) {
  app.name("perdure " + command.name);
  app.footer(command.examples);
  for (const Positional& each : command.positionals) add_positional(app, storage, each);
  for (const Flag& flag : command.flags) add_flag(app, storage, flag, "Options");
  for (const Flag& flag : global_flags()) add_flag(app, storage, flag, "For every command");
}

Arguments collect(CLI::App& app, const Storage& storage) {
  Arguments out;
  for (const auto& [positional, value] : storage.single)
    if (app.get_option(positional->name)->count() > 0) out.set(positional->name, {value});
  for (const auto& [positional, values] : storage.many)
    if (!values.empty()) out.set(positional->name, values);
  for (const auto& [flag, values] : storage.flags)
    if (!values.empty()) out.set(flag->name, values);
  for (const auto& [flag, on] : storage.switches)
    if (on) out.set(flag->name, {});
  return out;
}

// The words that name the command, taken out of `args`; flags that stand before it stay.
std::vector<std::string> take_command_words(std::vector<std::string>& args) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size() && words.size() < 2;) {
    if (args[i] == "--") break;
    if (args[i].starts_with("-") && args[i].size() > 1) {
      const Flag* flag = args[i].starts_with("--") ? find_flag(global_flags(), args[i].substr(2)) : nullptr;
      i += flag != nullptr && !flag->value.empty() ? 2 : 1;
      continue;
    }
    std::string name = words.empty() ? args[i] : words[0] + " " + args[i];
    bool is_group =
        std::ranges::any_of(all_commands(), [&](const Command& c) { return c.name.starts_with(name + " "); });
    if (!words.empty() && find_command(name) == nullptr && find_command(words[0]) != nullptr) break;
    words.push_back(args[i]);
    args.erase(args.begin() + static_cast<std::ptrdiff_t>(i));
    if (!is_group) break;
  }
  return words;
}

const Command* named(const std::vector<std::string>& words) {
  return find_command(words.size() == 1 ? words[0] : words[0] + " " + words[1]);
}

std::unexpected<Failure> unknown_command(const std::vector<std::string>& words) {
  std::string name = words[0] + (words.size() > 1 ? " " + words[1] : "");
  std::string prefix = words[0] + " ", known;
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    if (!command.hidden) names.push_back(command.name);
    if (command.name.starts_with(prefix)) known += (known.empty() ? "" : ", ") + command.name.substr(prefix.size());
  }
  if (!known.empty() && words.size() == 1)
    return usage("'perdure " + words[0] + "' needs to know what to do: " + known);
  if (!known.empty()) return usage("'perdure " + name + "' does not exist", "there are: " + known);
  std::string near = nearest(name, names);
  return usage("there is no command '" + name + "'",
               near.empty() ? "'perdure --help' lists all commands" : "did you mean 'perdure " + near + "'?");
}

// A variable or a line of the configuration that stands for a switch.
OrFailure<bool> truth_of(const std::string& text, const std::string& where) {
  static constexpr std::array<std::string_view, 4> kOn = {"1", "true", "yes", "on"}, kOff = {"0", "false", "no", "off"};
  if (std::ranges::count(kOn, text) > 0) return true;
  if (text.empty() || std::ranges::count(kOff, text) > 0) return false;
  return usage(where + " is '" + text + "', but must be true or false");
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

OrFailure<void> fill(Arguments& arguments, const Flag& flag, std::vector<std::string> values,
                     const std::string& where) {
  if (arguments.has(flag.name)) return {};
  if (!flag.value.empty()) {
    if (flag.repeatable && values.size() == 1) values = split_at_commas(values[0]);
    if (!values.empty()) arguments.set(flag.name, std::move(values));
    return {};
  }
  auto on = truth_of(values.empty() ? "" : values[0], where);
  if (!on) return std::unexpected(on.error());
  if (*on) arguments.set(flag.name, {});
  return {};
}

OrFailure<void> fill_from_environment(Arguments& arguments, std::span<const Flag> flags, const Variables& variables) {
  for (const Flag& flag : flags) {
    if (flag.variable.empty()) continue;
    auto value = variables(flag.variable);
    if (!value || value->empty()) continue;
    if (auto filled = fill(arguments, flag, {*value}, flag.variable); !filled) return filled;
  }
  return {};
}

OrFailure<void> fill_from_file(Arguments& arguments, const Command& command) {
  if (find_flag(command.flags, "config") == nullptr || !arguments.has("config")) return {};
  std::string path = arguments.one("config");
  std::ifstream file(path);
  if (!file) return usage("cannot read the configuration file " + path);
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(file);
  } catch (const CLI::Error& error) {
    return usage(path + " is not a configuration file: " + error.what());
  }
  for (CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // How CLI11 marks the begin and the end of a section.
    std::string name = item.name;
    std::ranges::replace(name, '_', '-');
    const Flag* flag = item.parents.empty() && name != "config" ? find_flag(command.flags, name) : nullptr;
    if (flag == nullptr) return usage(path + " sets '" + item.fullname() + "', which is not a flag of " + command.name);
    if (auto filled = fill(arguments, *flag, std::move(item.inputs), path + ": " + item.name); !filled) return filled;
  }
  return {};
}

OrFailure<Arguments> parse_arguments(const Command& command, std::vector<std::string> args) {
  auto rest = std::ranges::find(command.positionals, Count::kRest, &Positional::count);
  std::vector<std::string> behind;
  if (rest != command.positionals.end()) {
    auto mark = std::ranges::find(args, "--");
    if (mark == args.end() || mark + 1 == args.end())
      return usage("'perdure " + command.name + "' needs -- and then the program to run", help_of(command));
    behind.assign(mark + 1, args.end());
    args.erase(mark, args.end());
  }
  CLI::App app;
  Storage storage;
  build(app, storage, command);
  std::ranges::reverse(args);
  try {
    app.parse(args);
  } catch (const CLI::Error& error) {
    return usage(std::string(error.what()), "'perdure " + command.name + " --help' says more");
  }
  Arguments arguments = collect(app, storage);
  if (!behind.empty()) arguments.set(rest->name, std::move(behind));
  return arguments;
}

}  // namespace

std::string help_of(const Command& command) {
  CLI::App app(command.summary);
  Storage storage;
  build(app, storage, command);
  return app.help();
}

const Command* command_of(std::vector<std::string> args) {
  std::vector<std::string> words = take_command_words(args);
  return words.empty() ? nullptr : named(words);
}

OrFailure<Parsed> parse(std::vector<std::string> args, const Variables& variables) {
  Parsed parsed;
  auto end_of_flags = std::ranges::find(args, "--");
  parsed.help = std::find_if(args.begin(), end_of_flags,
                             [](const std::string& arg) { return arg == "--help" || arg == "-h"; }) != end_of_flags;
  if (std::ranges::count(args, "--version") > 0 && args.size() == 1) args = {"version"};
  std::vector<std::string> words = take_command_words(args);
  if (!words.empty() && words[0] == "help") {
    parsed.help = true;
    words = take_command_words(args);
  }
  if (words.empty()) {
    if (parsed.help) return parsed;
    return usage("no command", "'perdure --help' lists them");
  }
  parsed.command = named(words);
  if (parsed.command == nullptr && parsed.help && words.size() == 1) return parsed;
  if (parsed.command == nullptr) return unknown_command(words);
  if (parsed.help) return parsed;
  auto arguments = parse_arguments(*parsed.command, std::move(args));
  if (!arguments) return std::unexpected(std::move(arguments.error()));
  parsed.arguments = std::move(*arguments);
  for (std::span<const Flag> flags : {std::span<const Flag>(parsed.command->flags), global_flags()})
    if (auto filled = fill_from_environment(parsed.arguments, flags, variables); !filled)
      return std::unexpected(filled.error());
  if (auto filled = fill_from_file(parsed.arguments, *parsed.command); !filled) return std::unexpected(filled.error());
  return parsed;
}

}  // namespace perdure::cli
