#include "http/units.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/rfc3339.h"

namespace perdure::http {
namespace {

struct Unit {
  std::string_view name;
  Duration length;
};
constexpr std::array kUnits = {Unit{"ms", std::chrono::milliseconds(1)}, Unit{"s", std::chrono::seconds(1)},
                               Unit{"m", std::chrono::minutes(1)}, Unit{"h", std::chrono::hours(1)},
                               Unit{"d", std::chrono::hours(24)}};
constexpr double kLongest = 200.0 * 365.25 * 86'400 * 1e9;

std::unexpected<Error> no_duration(std::string_view what, const std::string& found) {
  return fail(ErrorCode::kInvalidArgument, std::string(what) +
                                               " must be a duration, such as \"250ms\", \"5s\", \"5m\", "
                                               "\"24h\", \"7d\" or a number of seconds, and not " +
                                               found);
}

}  // namespace

Result<Duration> read_duration(const Value& value, std::string_view what) {
  if (const std::string* text = value.as_text()) return parse_duration(*text, what);
  double seconds = 0;
  if (const std::int64_t* integer = value.as_integer())
    seconds = static_cast<double>(*integer);
  else if (const double* number = value.as_double())
    seconds = *number;
  else
    return no_duration(what, describe_found(value));
  if (!(seconds >= 0) || seconds * 1e9 > kLongest) return no_duration(what, describe_found(value));
  if (const std::int64_t* integer = value.as_integer()) return std::chrono::seconds(*integer);
  return Duration(static_cast<std::int64_t>(std::llround(seconds * 1e9)));
}

Result<Duration> parse_duration(std::string_view text, std::string_view what) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) unit = "s";
  for (const Unit& each : kUnits) {
    if (error != std::errc() || each.name != unit) continue;
    double length = number * static_cast<double>(each.length.count());
    if (!(length >= 0) || length > kLongest || text.starts_with("-")) break;
    return Duration(static_cast<std::int64_t>(std::llround(length)));
  }
  return no_duration(what, "'" + std::string(text) + "'");
}

std::string format_duration(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  for (std::size_t i = kUnits.size(); i-- > 0;) {
    const Unit& unit = kUnits[i];
    if (duration % unit.length == Duration::zero())
      return std::to_string(duration / unit.length) + std::string(unit.name);
  }
  return std::to_string(std::chrono::round<std::chrono::milliseconds>(duration).count()) + "ms";
}

Result<DueTime> parse_time(std::string_view text, std::string_view what) {
  auto time = parse_rfc3339(text);
  if (!time)
    return fail(ErrorCode::kInvalidArgument, std::string(what) +
                                                 " must be a time of RFC 3339, such as "
                                                 "\"2026-01-31T08:15:00Z\": " +
                                                 time.error().message);
  return std::chrono::ceil<std::chrono::milliseconds>(*time);
}

std::string format_time(WallTime time) {
  return format_rfc3339(time);
}

std::string format_time(DueTime time) {
  // What is beyond the range of a WallTime is far enough away to be its end.
  constexpr auto kEnd = std::chrono::floor<std::chrono::milliseconds>(WallTime::max());
  return format_rfc3339(WallTime(std::min(time, kEnd)));
}

Result<Rate> parse_rate(std::string_view text, std::string_view what) {
  auto wrong = [&] {
    return fail(ErrorCode::kInvalidArgument, std::string(what) +
                                                 " must be a rate, such as \"10/s\", \"600/m\" or "
                                                 "\"5/10s\", and not '" +
                                                 std::string(text) + "'");
  };
  Rate rate;
  std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return wrong();
  auto [end, error] = std::from_chars(text.data(), text.data() + slash, rate.count);
  if (error != std::errc() || end != text.data() + slash || rate.count == 0) return wrong();
  std::string per(text.substr(slash + 1));
  if (!per.empty() && (per[0] < '0' || per[0] > '9')) per.insert(0, "1");
  auto length = parse_duration(per, what);
  if (!length || *length <= Duration::zero()) return wrong();
  rate.per = *length;
  return rate;
}

std::string format_rate(const Rate& rate) {
  std::string per = format_duration(rate.per);
  if (per.size() == 2 && per[0] == '1') per.erase(0, 1);
  return std::to_string(rate.count) + "/" + per;
}

Value number_value(std::uint64_t number) {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  if (number > kExact) return std::to_string(number);
  return static_cast<std::int64_t>(number);
}

Value pair_value(Value first, Value second) {
  Value::List list;
  list.push_back(std::move(first));
  list.push_back(std::move(second));
  return list;
}

std::string format_version(Version version) {
  std::array<char, 17> out{};
  std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(version.number));
  return out.data();
}

Result<Version> parse_version(std::string_view text) {
  Version version;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version.number, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    return fail(ErrorCode::kInvalidArgument, "'" + std::string(text) + "' is no version; use one that was answered");
  return version;
}

}  // namespace perdure::http
