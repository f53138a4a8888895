#pragma once

#include <string>
#include <string_view>

#include "cli/failure.h"

namespace perdure::cli {

/// A script that completes commands, flags and what choices there are. Errors: exit code 2 for an unknown shell.
OrFailure<std::string> completion(std::string_view shell);

}  // namespace perdure::cli
