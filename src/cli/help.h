#pragma once

#include <string>

namespace perdure::cli {

/// What `perdure --help` prints: every command in a line, and how to begin.
std::string main_help();
/// The manual page, in roff: docs/man/perdure.1 is this.
std::string man_page();

}  // namespace perdure::cli
