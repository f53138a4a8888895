// Value::from_json.
//
// A parser by descent, which goes no deeper than lists and maps may be nested. The first refusal sticks and puts the
// position behind the text, where nothing is found that any caller looks for: so each returns at once, without asking
// whether something went wrong below it. Lines and columns are counted only for the message of a refusal.
#include <algorithm>
#include <charconv>
#include <optional>

#include "perdure/value.h"
#include "tuple/utf8.h"
#include "value/base64.h"

namespace perdure {
namespace {

static_assert(JsonLimits{}.depth_max == Value::kMaxDepth);

/// How much of a word, a number or a key a message shows.
constexpr std::size_t kShownMax = 40;
/// The only key of a map that stands for bytes.
constexpr std::string_view kBytesKey = "$bytes";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

void put_utf8(std::string& out, std::uint32_t character) {
  auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (character < 0x80) return put(character);
  if (character < 0x800) {
    put(0xc0 | character >> 6);
  } else {
    if (character < 0x10000) {
      put(0xe0 | character >> 12);
    } else {
      put(0xf0 | character >> 18);
      put(0x80 | (character >> 12 & 0x3f));
    }
    put(0x80 | (character >> 6 & 0x3f));
  }
  put(0x80 | (character & 0x3f));
}

/// Whether a number without its sign that is out of the range of doubles is too small for them, rather than too large.
bool is_too_small(std::string_view number) {
  std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  std::int64_t exponent = 0;
  if (mark < number.size()) {
    std::string_view digits = number.substr(mark + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc()) return digits.front() == '-';
  }
  std::string_view mantissa = number.substr(0, mark);
  auto point = static_cast<std::int64_t>(std::min(mantissa.find('.'), mantissa.size()));
  auto first = static_cast<std::int64_t>(mantissa.find_first_of("123456789"));
  // Where the first digit that counts stands, give or take one, which is nothing against the exponents of a double.
  return exponent < first - point;
}

class Parser {
 public:
  Parser(std::string_view text, JsonLimits limits)
      : text_(text), depth_max_(std::min(limits.depth_max, Value::kMaxDepth)) {}

  Result<Value> take_all() {
    Value value = take(0);
    skip_space();
    if (at_ < text_.size()) expect("the end of the text");
    if (error_) return std::unexpected(std::move(*error_));
    return value;
  }

 private:
  /// A character that JSON gives no meaning to where there is none.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  /// Takes `c` and the space before it, if that is what follows.
  bool take_char(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool take_digits() {
    std::size_t start = at_;
    while (is_digit(peek())) ++at_;
    return at_ > start;
  }

  Value refuse(std::size_t at, std::string_view expected, const std::string& found) {
    if (!error_) {
      std::string_view before = text_.substr(0, at);
      auto line = 1 + std::ranges::count(before, '\n');
      before.remove_prefix(before.rfind('\n') + 1);  // Nothing, if there is none: npos + 1 is 0.
      auto column = 1 + before.size() - static_cast<std::size_t>(std::ranges::count_if(before, is_continuation));
      error_ = Error{ErrorCode::kInvalidArgument, "JSON at line " + std::to_string(line) + ", column " +
                                                      std::to_string(column) + ": expected " + std::string(expected) +
                                                      ", found " + found};
    }
    at_ = text_.size();
    return {};
  }

  /// Refuses what stands here.
  Value expect(std::string_view expected) { return refuse(at_, expected, found()); }

  Value refuse_depth(std::size_t at) {
    return refuse(at, "lists and maps nested at most " + std::to_string(depth_max_) + " deep",
                  "one more; make it flatter");
  }

  /// What stands here, as a person would call it.
  std::string found() const {
    std::string_view rest = text_.substr(at_);
    if (rest.empty()) return "the end of the text";
    if (rest.front() == '\\') return "a backslash";
    if (rest.starts_with("\xef\xbb\xbf")) return "a byte order mark";
    if (rest.starts_with("//") || rest.starts_with("/*")) return "a comment";
    auto same = is_word(rest.front()) ? is_word : is_continuation;
    auto end = std::find_if_not(rest.begin() + 1, rest.end(), same);
    return '\'' + printable(std::string_view(rest.begin(), end), kShownMax) + '\'';
  }

  Value take(std::size_t depth) {
    skip_space();
    switch (peek()) {
      case '{':
        return take_map(depth);
      case '[':
        return take_list(depth);
      case '"':
        return take_string();
      case 't':
        return take_word("true") ? true : expect("a value");
      case 'f':
        return take_word("false") ? false : expect("a value");
      case 'n':
        return take_word("null") ? Value() : expect("a value");
      default:
        return peek() == '-' || is_digit(peek()) ? take_number() : expect("a value");
    }
  }

  Value take_list(std::size_t depth) {
    if (depth >= depth_max_) return refuse_depth(at_);
    ++at_;
    Value::List list;
    if (take_char(']')) return list;
    for (;;) {
      list.push_back(take(depth + 1));
      if (take_char(']')) return list;
      if (!take_char(',')) return expect("',' or ']'");
    }
  }

  Value take_map(std::size_t depth) {
    std::size_t start = at_++;
    skip_space();
    // Bytes are nested no deeper than any other scalar, although JSON needs an object for them.
    bool only_bytes = depth >= depth_max_;
    if (only_bytes && (depth > depth_max_ || !text_.substr(at_).starts_with("\"$bytes\""))) return refuse_depth(start);
    Value::Map map;
    if (take_char('}')) return map;
    std::size_t entry_at = 0;
    do {
      if (only_bytes && !map.empty()) return refuse_depth(start);
      skip_space();
      std::size_t key_at = at_;
      if (peek() != '"') return expect(map.empty() ? "a key in double quotes or '}'" : "a key in double quotes");
      std::string key = take_string();
      if (!take_char(':')) return expect("':' behind a key");
      // At the end, because to_json() writes keys in their order.
      std::size_t size = map.size();
      auto place = map.try_emplace(map.end(), std::move(key));
      if (map.size() == size)
        return refuse(key_at, "each key of a map once", '"' + printable(place->first, kShownMax) + "\" again");
      skip_space();
      entry_at = at_;
      place->second = take(depth + 1);
    } while (take_char(','));
    if (!take_char('}')) return expect("',' or '}'");
    if (map.size() == 1 && map.begin()->first == kBytesKey) return bytes_of(map.begin()->second, entry_at);
    return map;
  }

  Value bytes_of(const Value& entry, std::size_t at) {
    const std::string* text = entry.as_text();
    auto bytes = text == nullptr ? std::nullopt : from_base64(*text);
    if (!bytes) return refuse(at, "base64 with padding as the only entry \"$bytes\" of a map", describe_found(entry));
    return Blob{std::move(*bytes)};
  }

  /// The string whose opening quote stands here, or nothing that matters after a refusal.
  std::string take_string() {
    std::string out;
    for (++at_;;) {
      // Neither a quote nor a backslash is a part of a longer character, so each run is UTF-8 if the whole is.
      std::size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      std::string_view run = text_.substr(start, at_ - start);
      if (auto wrong = find_invalid_utf8(run)) {
        refuse(start + *wrong, "UTF-8", '\'' + printable(run.substr(*wrong, 1)) + '\'');
        return {};
      }
      out += run;
      if (peek() == '\\') {
        take_escape(out);
        if (!error_) continue;
      } else if (peek() == '"') {
        ++at_;
        return out;
      }
      expect(at_ < text_.size() ? "control characters of a string as escapes" : "a double quote to end a string");
      return {};
    }
  }

  void take_escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    std::size_t start = at_++;
    if (peek() == 'u') return take_unicode(out, start);
    auto name = kNames.find(peek());
    if (name == std::string_view::npos) {
      expect("one of \"\\/bfnrtu behind a backslash");
      return;
    }
    out += kMeanings[name];
    ++at_;
  }

  /// An escape of a character, or two that are a pair of surrogates, from behind its backslash, which is at `start`.
  void take_unicode(std::string& out, std::size_t start) {
    auto is_high = [](std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; };
    auto is_low = [](std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; };
    std::uint32_t character = take_unit();
    if (is_high(character) && take_word("\\")) {
      std::uint32_t low = peek() == 'u' ? take_unit() : 0;
      if (is_low(low)) return put_utf8(out, 0x10000 + ((character - 0xd800) << 10) + (low - 0xdc00));
    }
    if (is_high(character) || is_low(character))
      refuse(start, "a pair of surrogates", std::string(text_.substr(start, 6)) + " alone");
    put_utf8(out, character);
  }

  /// The four digits behind the "u" that stands here.
  std::uint32_t take_unit() {
    std::uint32_t unit = 0;
    ++at_;
    for (std::size_t end = at_ + 4; at_ < end; ++at_) {
      std::uint32_t digit = 0;
      char c = peek();
      if (std::from_chars(&c, &c + 1, digit, 16).ec != std::errc()) {
        expect("four hexadecimal digits behind \\u");
        return 0;
      }
      unit = unit << 4 | digit;
    }
    return unit;
  }

  Value take_number() {
    std::size_t start = at_;
    bool whole = true;
    if (peek() == '-') ++at_;
    std::size_t first = at_;
    if (!take_digits()) return expect("a digit");
    if (text_[first] == '0' && at_ > first + 1)
      return refuse(start, "a number without leading zeros", printable(text_.substr(start, at_ - start), kShownMax));
    if (peek() == '.') {
      whole = false;
      ++at_;
      if (!take_digits()) return expect("a digit behind the point");
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!take_digits()) return expect("a digit of the exponent");
    }
    std::string_view number = text_.substr(start, at_ - start);
    return whole && number != "-0" ? integer(number, start) : to_double(number, start);
  }

  Value integer(std::string_view number, std::size_t at) {
    const char* end = number.data() + number.size();
    std::int64_t small = 0;
    if (std::from_chars(number.data(), end, small).ec == std::errc()) return small;
    std::uint64_t large = 0;
    if (std::from_chars(number.data(), end, large).ec == std::errc()) return large;
    return refuse(at, "an integer from -9223372036854775808 to 18446744073709551615",
                  printable(number, kShownMax) + "; write it as text, or with a point or an exponent as a double");
  }

  Value to_double(std::string_view number, std::size_t at) {
    double rounded = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), rounded).ec == std::errc()) return rounded;
    std::string_view magnitude = number.substr(number.front() == '-' ? 1 : 0);
    if (is_too_small(magnitude)) return number.front() == '-' ? -0.0 : 0.0;
    return refuse(at, "a number that a double can hold, up to 1.7976931348623157e308", printable(number, kShownMax));
  }

  std::string_view text_;
  std::size_t depth_max_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Value> Value::from_json(std::string_view text, JsonLimits limits) {
  return Parser(text, limits).take_all();
}

}  // namespace perdure
