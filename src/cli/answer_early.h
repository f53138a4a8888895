// Answering a caller that must not be kept waiting, and going on without it.
#pragma once

#include <ostream>
#include <string_view>

#include "perdure/time.h"

namespace perdure::cli {

/// Writes `answer` to the stdout of the process and, if the process still runs after `within`, lets its caller go: to
/// the caller it has ended with exit code 0. What it was doing goes on in a child that has neither stdout nor stderr,
/// whose stdin ends after 5 s, and which ends after 15 s itself, done or not. Where no child can be made, the caller
/// waits that long.
///
/// For a process with one thread. Nothing may have been written to stdout before. Closed or broken outputs are no
/// error from here on, and what is opened later never gets the number of a stream that was closed.
void answer_early(std::ostream& out, std::string_view answer, Duration within);

}  // namespace perdure::cli
