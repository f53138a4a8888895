// The preset of the fifth seed, the debounced worker with a marker and a lock, and its one setting.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "perdure/debounce.h"

namespace perdure {
namespace {

constexpr Duration kDebounceMax = std::chrono::hours(24);
constexpr int kLockTimes = 30;

std::unexpected<Error> wrong(std::string_view text) {
  return fail(ErrorCode::kInvalidArgument, "DEBOUNCE_SECONDS must be a number of seconds from 0 to 86400; it is '" +
                                               std::string(text.substr(0, 64)) + "'");
}

}  // namespace

Result<MarkerPreset> marker_preset(Duration debounce) {
  if (debounce < Duration::zero() || debounce > kDebounceMax)
    return wrong(std::to_string(std::chrono::duration<double>(debounce).count()));
  MarkerPreset preset;
  // An event that comes later does not move the end: the first worker to wake finds the period expired, and goes on.
  preset.settings.window = debounce;
  preset.run.timeout = std::max<Duration>(debounce * kLockTimes, kMarkerLockMin);
  return preset;
}

Result<MarkerPreset> marker_preset(std::string_view debounce_seconds) {
  if (debounce_seconds.empty()) return marker_preset();
  double seconds = 0;
  const char* end = debounce_seconds.data() + debounce_seconds.size();
  auto [rest, error] = std::from_chars(debounce_seconds.data(), end, seconds, std::chars_format::fixed);
  bool good = error == std::errc() && rest == end && std::isfinite(seconds) && seconds >= 0 && seconds <= 86'400;
  if (!good) return wrong(debounce_seconds);
  return marker_preset(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace perdure
