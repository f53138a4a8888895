#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace perdure::cli {

/// Runs what was typed behind "perdure"; answers the exit code.
int run(const std::vector<std::string>& args, World& world);

}  // namespace perdure::cli
