// Reading cron expressions, and saying what is wrong with them.
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <span>
#include <string>

#include "schedule/cron.h"

namespace perdure::schedule {
namespace {

constexpr std::size_t kTextBytesMax = 256;

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Field {
  std::string_view name;
  int least, most;
  std::string_view allowed;
  /// The first stands for `least`.
  std::span<const std::string_view> names = {};
  bool is_day = false;
};

constexpr std::array<Field, 5> kFields = {
    Field{"minute", 0, 59, "0 to 59"},
    Field{"hour", 0, 23, "0 to 23"},
    Field{"day of month", 1, 31, "1 to 31", {}, true},
    Field{"month", 1, 12, "1 to 12 or jan to dec", kMonths},
    Field{"day of week", 0, 7, "0 to 7 (0 and 7 are Sunday) or sun to sat", kWeekdays, true},
};

struct Macro {
  std::string_view name, means;
};
constexpr std::array<Macro, 7> kMacros = {Macro{"@hourly", "0 * * * *"},   Macro{"@daily", "0 0 * * *"},
                                          Macro{"@midnight", "0 0 * * *"}, Macro{"@weekly", "0 0 * * 0"},
                                          Macro{"@monthly", "0 0 1 * *"},  Macro{"@yearly", "0 0 1 1 *"},
                                          Macro{"@annually", "0 0 1 1 *"}};

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Quartz has these in its day fields: "L", "LW", "L-3", "15W", "5L", "fril", "mon#2".
bool is_of_quartz(std::string_view text) {
  std::string word = lowered(text);
  if (word == "l" || word == "w" || word == "lw" || word.starts_with("l-") || word.find('#') != word.npos) return true;
  if (!word.ends_with('l') && !word.ends_with('w')) return false;
  word.pop_back();
  return is_digits(word) || std::ranges::find(kWeekdays, word) != kWeekdays.end();
}

}  // namespace

class CronParser {
 public:
  explicit CronParser(std::string_view text) : text_(text), expanded_(text) {}

  Result<Cron> run() {
    if (text_.size() > kTextBytesMax)
      return fail(ErrorCode::kInvalidArgument, "a cron expression has at most " + std::to_string(kTextBytesMax) +
                                                   " bytes, and this one has " + std::to_string(text_.size()));
    if (auto macro = expand_macro(); !macro) return std::unexpected(std::move(macro.error()));
    if (auto split = split_fields(); !split) return std::unexpected(std::move(split.error()));
    std::array<std::uint64_t*, 5> sets = {&cron_.minutes_, &cron_.hours_, &cron_.days_, &cron_.months_,
                                          &cron_.weekdays_};
    for (std::size_t i = 0; i < sets.size(); ++i) {
      auto set = read_field(kFields[i], fields_[i]);
      if (!set) return std::unexpected(std::move(set.error()));
      *sets[i] = *set;
    }
    // Sunday is 0 from here on.
    cron_.weekdays_ = (cron_.weekdays_ | cron_.weekdays_ >> 7) & 0x7f;
    cron_.either_day_ = restricted(fields_[2]) && restricted(fields_[4]);
    cron_.every_hour_ = !restricted(fields_[1]) || std::popcount(cron_.hours_) == 24;
    if (!cron_.fires())
      return wrong("never fires: none of its months has such a day of month, \"" + std::string(fields_[2]) + "\"");
    return cron_;
  }

 private:
  static bool restricted(std::string_view field) { return !field.starts_with('*') && field != "?"; }

  std::unexpected<Error> wrong(const std::string& what) const {
    return fail(ErrorCode::kInvalidArgument, "the cron expression \"" + printable(text_, kTextBytesMax) + "\" " + what);
  }
  /// `part` is a piece of the text.
  std::unexpected<Error> wrong_at(const Field& field, std::string_view part, const std::string& what) const {
    return wrong("has a wrong " + std::string(field.name) + ", \"" + printable(part) + "\" at character " +
                 std::to_string(part.data() - expanded_.data() + 1) + ": " + what);
  }

  Result<void> expand_macro() {
    auto begin = std::ranges::find_if(text_, [](char c) { return c != ' ' && c != '\t'; });
    if (begin == text_.end() || *begin != '@') return {};
    std::string word = lowered(std::string_view(begin, text_.end()));
    word.erase(word.find_last_not_of(" \t") + 1);
    auto macro = std::ranges::find(kMacros, word, &Macro::name);
    if (macro == kMacros.end())
      return wrong("is not known; allowed are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually");
    expanded_ = macro->means;
    return {};
  }

  Result<void> split_fields() {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = expanded_.find_first_not_of(" \t", at)) != expanded_.npos; ++count) {
      std::size_t end = std::min(expanded_.find_first_of(" \t", at), expanded_.size());
      if (count < fields_.size()) fields_[count] = expanded_.substr(at, end - at);
      at = end;
    }
    if (count == fields_.size()) return {};
    std::string hint = count == 6 || count == 7 ? "; there is none for seconds or years" : "";
    return wrong("has " + std::to_string(count) + (count == 1 ? " field" : " fields") +
                 ", and must have 5: minute, hour, day of month, month, day of week" + hint);
  }

  Result<std::uint64_t> read_field(const Field& field, std::string_view text) const {
    if (text == "?" && field.is_day) return read_item(field, "*");
    std::uint64_t set = 0;
    for (std::size_t at = 0; at <= text.size();) {
      std::size_t end = std::min(text.find(',', at), text.size());
      auto item = read_item(field, text.substr(at, end - at));
      if (!item) return item;
      set |= *item;
      at = end + 1;
    }
    return set;
  }

  /// One of a list: "*", "5", "mon-fri", and each of them with "/2".
  Result<std::uint64_t> read_item(const Field& field, std::string_view item) const {
    std::size_t slash = item.find('/');
    std::string_view base = item.substr(0, slash);
    int first = field.least, last = field.most, step = 1;
    if (base != "*") {
      std::size_t dash = base.find('-');
      auto from = read_number(field, base.substr(0, dash), item);
      if (!from) return std::unexpected(std::move(from.error()));
      first = last = *from;
      if (dash != base.npos) {
        auto to = read_number(field, base.substr(dash + 1), item);
        if (!to) return std::unexpected(std::move(to.error()));
        last = *to;
        if (first > 0 && last == 0 && !is_digits(base.substr(dash + 1))) last = 7;  // "fri-sun"
        if (first > last)
          return wrong_at(field, item,
                          "the range goes backwards; write it as two, one up to the end and one from the "
                          "beginning");
      } else if (slash != item.npos) {
        last = field.names.data() == kWeekdays.data() && first < 7 ? 6 : field.most;
      }
    }
    if (slash != item.npos) {
      auto read = read_step(field, item.substr(slash + 1), item);
      if (!read) return std::unexpected(std::move(read.error()));
      step = *read;
    }
    std::uint64_t set = 0;
    for (int number = first; number <= last; number += step) set |= std::uint64_t{1} << number;
    return set;
  }

  Result<int> read_number(const Field& field, std::string_view text, std::string_view item) const {
    if (is_digits(text) && text.size() <= 4) {
      int number = std::stoi(std::string(text));
      if (number >= field.least && number <= field.most) return number;
      return wrong_at(field, text, "it must be " + std::string(field.allowed));
    }
    auto name = std::ranges::find(field.names, lowered(text));
    if (name != field.names.end()) return field.least + static_cast<int>(name - field.names.begin());
    if (field.is_day && is_of_quartz(item)) return wrong_at(field, item, "L, W and # are not supported");
    if (text.empty()) return wrong_at(field, item, "something is missing; " + allowed_in(field));
    return wrong_at(field, text, allowed_in(field));
  }

  static std::string allowed_in(const Field& field) {
    return "allowed are *, " + std::string(field.allowed) +
           ", ranges like a-b, steps like */n or a-b/n, and lists of " + "these with commas";
  }

  Result<int> read_step(const Field& field, std::string_view text, std::string_view item) const {
    // No larger than its numbers, so that */90 does not pass for every 90 minutes.
    int step = is_digits(text) && text.size() <= 4 ? std::stoi(std::string(text)) : 0;
    if (step >= 1 && step <= field.most) return step;
    return wrong_at(field, item, "its step must be a number from 1 to " + std::to_string(field.most));
  }

  const std::string_view text_;
  /// The text, or what its macro stands for; fields are pieces of it.
  std::string_view expanded_;
  std::array<std::string_view, 5> fields_;
  Cron cron_;
};

Result<Cron> Cron::parse(std::string_view text) {
  return CronParser(text).run();
}

}  // namespace perdure::schedule
