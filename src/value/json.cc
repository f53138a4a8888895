// Value::to_json.
#include <array>
#include <charconv>
#include <cmath>

#include "perdure/value.h"
#include "tuple/utf8.h"
#include "value/base64.h"

namespace perdure {
namespace {

/// A text without anything that is not UTF-8: each byte of that is replaced.
void put_text_bytes(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
}

void put_text(std::string& out, std::string_view text) {
  out += '"';
  for (auto wrong = find_invalid_utf8(text); wrong; wrong = find_invalid_utf8(text)) {
    put_text_bytes(out, text.substr(0, *wrong));
    out += "\xef\xbf\xbd";
    text.remove_prefix(*wrong + 1);
  }
  put_text_bytes(out, text);
  out += '"';
}

void put_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 32> digits;
  char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string_view shortest(digits.data(), end);
  out += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void put(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      out += "null";
      return;
    case Value::Kind::kBool:
      out += *value.as_bool() ? "true" : "false";
      return;
    case Value::Kind::kInteger:
      out += std::to_string(*value.as_integer());
      return;
    case Value::Kind::kDouble:
      return put_double(out, *value.as_double());
    case Value::Kind::kText:
      return put_text(out, *value.as_text());
    case Value::Kind::kBytes:
      out += "{\"$bytes\":\"";
      put_base64(out, value.as_bytes()->bytes);
      out += "\"}";
      return;
    case Value::Kind::kList:
    case Value::Kind::kMap:
      break;
  }
  const char* comma = "";
  out += value.is_list() ? '[' : '{';
  if (const auto* list = value.as_list()) {
    for (const Value& item : *list) {
      out += std::exchange(comma, ",");
      put(out, item);
    }
  } else {
    for (const auto& [key, entry] : *value.as_map()) {
      out += std::exchange(comma, ",");
      put_text(out, key);
      out += ':';
      put(out, entry);
    }
  }
  out += value.is_list() ? ']' : '}';
}

}  // namespace

std::string Value::to_json() const {
  std::string out;
  put(out, *this);
  return out;
}

}  // namespace perdure
