#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perdure/time.h"
#include "perdure/value.h"

namespace perdure::cli {

/// "250ms", "5s", "5m", "24h", "7d", or a number of seconds, as the API has them; nothing for what is not one.
std::optional<Duration> parse_duration(std::string_view text);
/// As it goes into a request: a number stays a number, anything else is for the daemon to judge.
Value duration_value(std::string_view text);
/// "5s", "1500ms": whole milliseconds, as the API reads them.
std::string duration_text(Duration duration);

}  // namespace perdure::cli
