#include "cli/commands.h"

namespace perdure::cli {

std::vector<Command> work_commands() {
  return {};
}

}  // namespace perdure::cli
