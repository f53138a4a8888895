// The commands of perdure, as data: one table that parsing, help, completion and the man page are made from.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/failure.h"

namespace perdure::cli {

class Context;

/// Of a positional argument.
enum class Count {
  kOne,
  kOptional,
  kAny,   ///< None, one or more.
  kRest,  ///< All that stands behind "--", one at least, untouched.
};

struct Positional {
  std::string name;  ///< As help shows it: "WORKER".
  std::string summary;
  Count count = Count::kOne;
  /// What completion offers for it, separated by blanks; empty for no offer.
  std::string choices = "";
};

struct Flag {
  std::string name;   ///< Without the dashes: "delay".
  std::string value;  ///< What stands for its value: "TIME"; empty for a switch.
  std::string summary;
  std::string variable = "";  ///< The environment variable that stands in for it, if any.
  bool repeatable = false;
};

/// What was typed, by the names of the table. A switch that is on is there with no value.
class Arguments {
 public:
  bool has(std::string_view name) const { return values_.contains(name); }
  /// The first, or empty.
  std::string one(std::string_view name) const;
  std::optional<std::string> maybe(std::string_view name) const;
  const std::vector<std::string>& all(std::string_view name) const;
  void set(std::string name, std::vector<std::string> values) { values_[std::move(name)] = std::move(values); }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

struct Command {
  std::string name;   ///< "emit", "worker ls".
  std::string group;  ///< The heading that help puts it under.
  std::string summary;
  std::vector<Positional> positionals = {};
  std::vector<Flag> flags = {};
  std::function<OrFailure<void>(Context&, const Arguments&)> run = {};
  /// Printed behind its help.
  std::string examples = "";
  bool hidden = false;
  /// For one that is called by programs which must not fail for it: printed when it is used wrongly, and exit code 0.
  std::string answer_anyway = "";
};

/// Every command, in the order of the help. Built once.
std::span<const Command> all_commands();
/// Those that every command takes: --url, --space, --json, --yes.
std::span<const Flag> global_flags();
/// The one of that name, or null.
const Command* find_command(std::string_view name);

}  // namespace perdure::cli
