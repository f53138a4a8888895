#pragma once

#include "cli/command.h"
#include "http/serve.h"

namespace perdure::cli {

/// What `perdure serve` was told, by flags, environment and file. Errors: exit code 2.
OrFailure<ServeOptions> serve_options(const Arguments& arguments);

}  // namespace perdure::cli
