#include "cli/duration.h"

#include <array>
#include <charconv>
#include <cmath>

namespace perdure::cli {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr std::array kUnits = {Unit{"ms", 1e-3}, Unit{"s", 1}, Unit{"m", 60}, Unit{"h", 3600}, Unit{"d", 86400}};
// More than any deadline that is meant: a century.
constexpr double kSecondsMax = 100.0 * 365 * 86400;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return {};
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  double scale = unit.empty() ? 1 : 0;
  for (const Unit& each : kUnits)
    if (each.name == unit) scale = each.seconds;
  if (scale == 0 || number * scale > kSecondsMax) return {};
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number * scale));
}

Value duration_value(std::string_view text) {
  auto number = Value::from_json(text);
  if (number && (number->is_integer() || number->is_double())) return *number;
  return text;
}

std::string duration_text(Duration duration) {
  auto count = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + "s" : std::to_string(count) + "ms";
}

}  // namespace perdure::cli
