// The rule at the end of a time zone file: the variable TZ of POSIX, with the hours of RFC 9636.
#include <cctype>
#include <chrono>
#include <map>
#include <optional>

#include "schedule/tzif.h"

namespace perdure::schedule {
namespace {

constexpr Seconds kDay = 86'400;

/// A day of each year, and when on it.
struct RuleDay {
  enum class Kind {
    kJulian,   ///< "J60": the 1st to 365th day, 29 February not counted.
    kOrdinal,  ///< "59": the day from 0 to 365, 29 February counted.
    kWeekday,  ///< "M3.5.0": the nth weekday of a month; the 5th is the last.
  };
  Kind kind = Kind::kOrdinal;
  int day = 0;
  unsigned month = 0, week = 0;
  Seconds time = 7200;

  /// In local time, by the clock that is about to be changed.
  Seconds in_year(int year) const {
    using namespace std::chrono;
    auto january = sys_days(std::chrono::year(year) / 1 / 1);
    days found{};
    if (kind == Kind::kWeekday) {
      auto of_month = std::chrono::year(year) / static_cast<int>(month);
      weekday wanted(static_cast<unsigned>(day));
      found = (week == 5 ? sys_days(of_month / wanted[last]) : sys_days(of_month / wanted[week])).time_since_epoch();
    } else {
      bool past_leap_day = day >= 60 && std::chrono::year(year).is_leap();
      int from_zero = kind == Kind::kOrdinal ? day : day - 1 + (past_leap_day ? 1 : 0);
      found = (january + days(from_zero)).time_since_epoch();
    }
    return Seconds{found.count()} * kDay + time;
  }
};

/// Reads a rule from its front; the first that does not fit makes all else nothing.
class RuleReader {
 public:
  explicit RuleReader(std::string_view rest) : rest_(rest) {}

  bool done() const { return ok_ && rest_.empty(); }
  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }
  bool at(char c) const { return rest_.starts_with(c); }
  bool skip(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!skip(c)) ok_ = false;
  }

  /// An abbreviation: letters, or anything in angle brackets.
  void name() {
    std::size_t size = 0;
    bool quoted = at('<');
    if (quoted) {
      size = rest_.find('>');
    } else {
      while (size < rest_.size() && std::isalpha(static_cast<unsigned char>(rest_[size]))) ++size;
    }
    if (size == std::string_view::npos || size < 3) return fail();
    rest_.remove_prefix(size + (quoted ? 1 : 0));
  }

  int number(int least, int most) {
    int value = 0;
    std::size_t size = 0;
    for (; size < 3 && size < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[size])); ++size)
      value = value * 10 + (rest_[size] - '0');
    rest_.remove_prefix(size);
    if (size == 0 || value < least || value > most) fail();
    return ok_ ? value : least;
  }

  /// "-1", "5:30", "+167:00:00", in seconds.
  Seconds time(int hours_max) {
    bool negative = skip('-');
    if (!negative) skip('+');
    Seconds value = Seconds{3600} * number(0, hours_max);
    if (skip(':')) value += Seconds{60} * number(0, 59);
    if (skip(':')) value += number(0, 59);
    return negative ? -value : value;
  }

  RuleDay day() {
    RuleDay day;
    if (skip('M')) {
      day.kind = RuleDay::Kind::kWeekday;
      day.month = static_cast<unsigned>(number(1, 12));
      expect('.');
      day.week = static_cast<unsigned>(number(1, 5));
      expect('.');
      day.day = number(0, 6);
    } else if (skip('J')) {
      day.kind = RuleDay::Kind::kJulian;
      day.day = number(1, 365);
    } else {
      day.day = number(0, 365);
    }
    if (skip('/')) day.time = time(167);
    return day;
  }

 private:
  void fail() { ok_ = false; }
  std::string_view rest_;
  bool ok_ = true;
};

struct Rule {
  /// Ahead of UTC; in the rule itself they have the opposite sign.
  Seconds standard = 0, summer = 0;
  struct Changes {
    RuleDay to_summer, to_standard;
  };
  std::optional<Changes> changes;
};

std::optional<Rule> parse_rule(std::string_view text) {
  RuleReader reader(text);
  Rule rule;
  reader.name();
  rule.standard = -reader.time(24);
  if (reader.done()) return rule;
  reader.name();
  rule.summer = reader.at(',') ? rule.standard + 3600 : -reader.time(24);
  reader.expect(',');
  Rule::Changes changes;
  changes.to_summer = reader.day();
  reader.expect(',');
  changes.to_standard = reader.day();
  rule.changes = changes;
  if (!reader.done()) return std::nullopt;
  return rule;
}

int year_of(Seconds utc) {
  using namespace std::chrono;
  return static_cast<int>(year_month_day(sys_days(floor<days>(seconds(utc)))).year());
}

}  // namespace

Result<std::vector<Transition>> expand_rule(std::string_view text, Seconds after) {
  auto rule = parse_rule(text);
  if (!rule) return fail(ErrorCode::kCorrupt, "its rule \"" + printable(text) + "\" cannot be read");
  // Of two at the same time, as where it is summer all year, the one that the rule makes later holds.
  std::map<Seconds, Seconds> offsets;
  if (rule->changes && after < kEndOfRules) {
    // From the year before, so that what holds at `after` is among them.
    for (int year = year_of(after) - 1; year <= year_of(kEndOfRules); ++year) {
      offsets[rule->changes->to_summer.in_year(year) - rule->standard] = rule->summer;
      offsets[rule->changes->to_standard.in_year(year) - rule->summer] = rule->standard;
    }
  }
  std::vector<Transition> out = {{after, rule->standard}};
  for (auto [begin, offset] : offsets) {
    if (begin <= after) {
      out.front().offset = offset;
    } else if (begin < kEndOfRules) {
      out.push_back({begin, offset});
    }
  }
  return out;
}

}  // namespace perdure::schedule
