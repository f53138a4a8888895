#include "base/rfc3339.h"

#include <chrono>
#include <cstdio>

namespace perdure {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

/// Takes fields from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int digits(std::size_t count) {
    int number = 0;
    if (rest_.size() < count) ok_ = false;
    for (std::size_t i = 0; ok_ && i < count; ++i) {
      ok_ = rest_[i] >= '0' && rest_[i] <= '9';
      number = number * 10 + (rest_[i] - '0');
    }
    if (ok_) rest_.remove_prefix(count);
    return number;
  }
  /// Whether it was there.
  bool take(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_[0]) == std::string_view::npos) return false;
    last_ = rest_[0];
    rest_.remove_prefix(1);
    return true;
  }
  void expect(std::string_view any_of) { ok_ = take(any_of) && ok_; }
  char last() const { return last_; }
  Duration fraction() {
    Duration value{}, unit = seconds(1);
    std::size_t count = 0;
    for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; ++count) {
      unit /= 10;
      value += unit * (rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    ok_ = ok_ && count > 0;
    return value;
  }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  char last_ = 0;
  bool ok_ = true;
};

}  // namespace

std::string format_rfc3339(WallTime time) {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  auto day = std::chrono::floor<days>(ms);
  year_month_day date{sys_days(day)};
  auto of_day = std::chrono::duration_cast<std::chrono::milliseconds>(ms - day).count();
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02lld:%02lld:%02lld.%03lldZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<long long>(of_day / 3'600'000), static_cast<long long>(of_day / 60'000 % 60),
                static_cast<long long>(of_day / 1'000 % 60), static_cast<long long>(of_day % 1'000));
  return text;
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  Scanner scan(text);
  int year = scan.digits(4);
  scan.expect("-");
  int month = scan.digits(2);
  scan.expect("-");
  int day = scan.digits(2);
  scan.expect("Tt ");
  int hour = scan.digits(2);
  scan.expect(":");
  int minute = scan.digits(2);
  scan.expect(":");
  int second = scan.digits(2);
  Duration fraction = scan.take(".") ? scan.fraction() : Duration::zero();
  minutes offset{0};
  if (!scan.take("Zz")) {
    scan.expect("+-");
    int sign = scan.last() == '-' ? -1 : 1;
    int offset_hours = scan.digits(2);
    scan.expect(":");
    int offset_minutes = scan.digits(2);
    offset = sign * (hours(offset_hours) + minutes(offset_minutes));
    if (offset_hours > 23 || offset_minutes > 59) month = 0;
  }
  year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                      std::chrono::day(static_cast<unsigned>(day))};
  // 60 is a leap second, which is the moment after.
  bool good = scan.done() && date.ok() && hour < 24 && minute < 60 && second <= 60;
  // What nanoseconds since 1970 can say.
  if (!good || year < 1678 || year > 2261)
    return fail(ErrorCode::kInvalidArgument, "not a time as in RFC 3339, such as 2026-01-31T08:15:00.250Z: '" +
                                                 std::string(text.substr(0, 64)) + "'");
  auto since = sys_days(date).time_since_epoch() + hours(hour) + minutes(minute) + seconds(second) - offset;
  return WallTime(std::chrono::duration_cast<Duration>(since) + fraction);
}

}  // namespace perdure
