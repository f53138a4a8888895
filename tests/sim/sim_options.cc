#include "sim_options.h"

#include <charconv>
#include <functional>
#include <map>
#include <string_view>

namespace perdure::sim {
namespace {

Result<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return fail(ErrorCode::kInvalidArgument, "'" + std::string(text) + "' is not a number");
  return number;
}

Result<std::vector<std::size_t>> numbers_of(std::string_view list) {
  std::vector<std::size_t> numbers;
  while (!list.empty() && list != "none") {
    auto comma = list.find(',');
    auto number = number_of(list.substr(0, comma));
    if (!number) return std::unexpected(number.error());
    numbers.push_back(*number);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return numbers;
}

/// What an option with a value does with it.
using Take = std::function<Result<void>(Options&, std::string_view)>;

Take number_into(std::uint64_t Options::* member, std::optional<Options::Command> command) {
  return [=](Options& options, std::string_view text) -> Result<void> {
    auto number = number_of(text);
    if (!number) return std::unexpected(number.error());
    options.*member = *number;
    if (command) options.command = *command;
    return {};
  };
}

Take text_into(std::string Options::* member) {
  return [=](Options& options, std::string_view text) -> Result<void> {
    options.*member = text;
    return {};
  };
}

const std::map<std::string_view, Take>& with_value() {
  using enum Options::Command;
  static const std::map<std::string_view, Take> kOptions = {
      {"--seeds", number_into(&Options::seeds, kSeeds)},
      {"--from", number_into(&Options::from, std::nullopt)},
      {"--seed", number_into(&Options::seed, kOneSeed)},
      {"--scenario", text_into(&Options::scenario)},
      {"--bug", text_into(&Options::bug)},
      {"--report", text_into(&Options::report)},
      {"--jobs",
       [](Options& options, std::string_view text) -> Result<void> {
         auto number = number_of(text);
         if (!number) return std::unexpected(number.error());
         options.jobs = static_cast<unsigned>(*number);
         return {};
       }},
      {"--faults",
       [](Options& options, std::string_view text) -> Result<void> {
         auto numbers = numbers_of(text);
         if (!numbers) return std::unexpected(numbers.error());
         options.faults = std::move(*numbers);
         return {};
       }},
  };
  return kOptions;
}

}  // namespace

std::string usage() {
  return R"(usage: ./dev sim COMMAND

  --seeds N [--from S] [--jobs J] [--report FILE]
                      run N seeds over all scenarios by their weights; one in twenty twice, which must be the same
  --seed S [--trace] [--faults 3,7|none] [--no-shrink]
                      run one seed; print what happens, or keep only some of its faults, by number
  --bugs [--jobs J] [--report FILE]
                      seed every bug, and see that a scenario which claims to catch it does
  --list              scenarios, workloads and seeded bugs

  --scenario NAME     only this scenario
  --bug NAME          with this bug seeded

The exit code is 0 if all is well, 1 if something was found (with --bugs: if a bug was not), 2 for wrong usage.
)";
}

Result<Options> parse_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string_view name = arguments[i];
    if (auto found = with_value().find(name); found != with_value().end()) {
      if (++i == count) return fail(ErrorCode::kInvalidArgument, std::string(name) + " needs a value");
      if (auto taken = found->second(options, arguments[i]); !taken)
        return fail(ErrorCode::kInvalidArgument, std::string(name) + ": " + taken.error().message);
    } else if (name == "--trace") {
      options.trace = true;
    } else if (name == "--no-shrink") {
      options.shrink = false;
    } else if (name == "--bugs") {
      options.command = Options::Command::kBugs;
    } else if (name == "--list") {
      options.command = Options::Command::kList;
    } else if (name == "--help" || name == "-h") {
      options.command = Options::Command::kHelp;
      return options;
    } else {
      return fail(ErrorCode::kInvalidArgument, "there is no option '" + std::string(name) + "'");
    }
  }
  if (options.command == Options::Command::kHelp)
    return fail(ErrorCode::kInvalidArgument, "say --seeds N, --seed S, --bugs or --list");
  return options;
}

}  // namespace perdure::sim
