#include "schedule/interval.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "perdure/bytes.h"

namespace perdure::schedule {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct Named {
  std::string_view name;
  Duration every;
};
constexpr std::array<Named, 6> kNamed = {Named{"Daily", days(1)},        Named{"Weekly", days(7)},
                                         Named{"Fortnightly", days(14)}, Named{"Every 12hrs", hours(12)},
                                         Named{"Every 1hr", hours(1)},   Named{"Every 1min", minutes(1)}};
constexpr std::array<Named, 4> kUnits = {Named{"s", seconds(1)}, Named{"m", minutes(1)}, Named{"h", hours(1)},
                                         Named{"d", days(1)}};
constexpr Duration kLongest = days(3653);

bool same_word(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

}  // namespace

Result<Interval> Interval::parse(std::string_view text) {
  for (const Named& named : kNamed)
    if (same_word(text, named.name)) return Interval(std::string(named.name), named.every);
  auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::kInvalidArgument, "the interval \"" + printable(text) + "\" " + std::string(what));
  };
  std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto unit = std::ranges::find_if(kUnits, [&](const Named& known) { return text.substr(digits) == known.name; });
  if (digits == 0 || unit == kUnits.end())
    return wrong(
        "is not known; allowed are Daily, Weekly, Fortnightly, Every 12hrs, Every 1hr, Every 1min, and numbers with a "
        "unit like 90s, 15m, 2h or 3d");
  // Nine digits fit, of any unit; more are too long anyway.
  Duration::rep number = digits <= 9 ? std::stoll(std::string(text.substr(0, digits))) : kLongest.count();
  if (number == 0) return wrong("is no time at all; the shortest is 1s");
  if (number > kLongest / unit->every) return wrong("is too long; the longest is 3653d");
  return Interval(std::string(text), unit->every * number);
}

std::optional<WallTime> Interval::next(WallTime after, WallTime first) const {
  if (after < first) return first;
  // What has gone by of the present one, so that nothing larger than `after` is made before it is known to fit.
  Duration left = every_ - (after - first) % every_;
  if (left > WallTime::max() - after) return std::nullopt;
  return after + left;
}

std::uint64_t Interval::count(WallTime after, WallTime until, WallTime first) const {
  auto up_to = [&](WallTime time) {
    return time < first ? std::uint64_t{0} : static_cast<std::uint64_t>((time - first) / every_) + 1;
  };
  return until <= after ? 0 : up_to(until) - up_to(after);
}

}  // namespace perdure::schedule
