#include "transcript/json_text.h"

#include <charconv>
#include <cstdint>
#include <cstring>

namespace perdure::transcript {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;
/// The length of \uXXXX.
constexpr std::size_t kEscapeBytes = 6;

bool is_high(std::uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}
bool is_low(std::uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

/// Whether a byte of UTF-8 is inside a character.
bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// The unit that the \uXXXX at the front of `raw` stands for; false if there is none.
bool read_unit(std::string_view raw, std::uint32_t& unit) {
  if (raw.size() < kEscapeBytes || raw[0] != '\\' || raw[1] != 'u') return false;
  auto [end, error] = std::from_chars(raw.data() + 2, raw.data() + kEscapeBytes, unit, 16);
  return error == std::errc() && end == raw.data() + kEscapeBytes;
}

void append_utf8(std::uint32_t point, std::string& out) {
  auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  auto put_rest = [&](std::uint32_t shift) { put(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | (point >> 6));
  } else if (point < 0x10000) {
    put(0xe0 | (point >> 12));
    put_rest(6);
  } else {
    put(0xf0 | (point >> 18));
    put_rest(12);
    put_rest(6);
  }
  put_rest(0);
}

/// Takes a \uXXXX, or a pair of them, from the front.
bool take_unicode(std::string_view& raw, std::string& out) {
  std::uint32_t unit = 0, next = 0;
  if (!read_unit(raw, unit)) return false;
  raw.remove_prefix(kEscapeBytes);
  if (is_high(unit) && read_unit(raw, next) && is_low(next)) {
    raw.remove_prefix(kEscapeBytes);
    unit = 0x10000 + ((unit - 0xd800) << 10) + (next - 0xdc00);
  } else if (is_high(unit) || is_low(unit)) {
    unit = kReplacement;
  }
  append_utf8(unit, out);
  return true;
}

}  // namespace

bool append_unescaped(std::string_view raw, std::string& out, std::size_t enough) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  while (!raw.empty() && out.size() < enough) {
    const void* found = std::memchr(raw.data(), '\\', raw.size());
    auto plain = found == nullptr ? raw.size() : static_cast<std::size_t>(static_cast<const char*>(found) - raw.data());
    if (plain > enough - out.size()) {
      plain = enough - out.size();
      while (plain < raw.size() && continues(raw[plain])) ++plain;
      out.append(raw, 0, plain);
      return true;
    }
    out.append(raw, 0, plain);
    raw.remove_prefix(plain);
    if (raw.empty() || out.size() >= enough) break;
    if (raw.size() < 2) return false;
    if (raw[1] == 'u') {
      if (!take_unicode(raw, out)) return false;
      continue;
    }
    std::size_t which = kEscapes.find(raw[1]);
    if (which == kEscapes.npos) return false;
    out.push_back(kMeanings[which]);
    raw.remove_prefix(2);
  }
  return true;
}

void mend_surrogates(std::string& json) {
  for (std::size_t at = json.find('\\'); at != json.npos; at = json.find('\\', at)) {
    std::string_view rest = std::string_view(json).substr(at);
    std::uint32_t unit = 0, next = 0;
    if (!read_unit(rest, unit)) {
      at += 2;
    } else if (is_high(unit) && read_unit(rest.substr(kEscapeBytes), next) && is_low(next)) {
      at += 2 * kEscapeBytes;
    } else {
      if (is_high(unit) || is_low(unit)) json.replace(at, kEscapeBytes, "\\ufffd");
      at += kEscapeBytes;
    }
  }
}

std::string_view first_bytes(std::string_view text, std::size_t count) {
  if (text.size() <= count) return text;
  while (count > 0 && continues(text[count])) --count;
  return text.substr(0, count);
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  if (text.size() <= count) return text;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (!continues(text[at]) && count-- == 0) return text.substr(0, at);
  return text;
}

}  // namespace perdure::transcript
