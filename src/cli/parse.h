// From what was typed to a command and its arguments.
//
// Which command it is, is read here; CLI11 then parses the arguments of that command alone, so that no name of a worker
// can be taken for a command. Flags that were not typed come from the environment, and then from a configuration file.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace perdure::cli {

using Variables = std::function<std::optional<std::string>(std::string_view name)>;

struct Parsed {
  const Command* command = nullptr;  ///< Null if help for all is asked for.
  Arguments arguments = {};
  bool help = false;
};

/// `args` without the name of the program. Errors: exit code 2, saying what would be right.
OrFailure<Parsed> parse(std::vector<std::string> args, const Variables& variables);

/// The command that they name, whatever is wrong with the rest; null if there is none.
const Command* command_of(std::vector<std::string> args);

/// What `perdure COMMAND --help` prints.
std::string help_of(const Command& command);

}  // namespace perdure::cli
