#include "tuple/utf8.h"

#include <cstdint>
#include <cstring>

namespace perdure {
namespace {

/// The bytes that may follow a lead byte. Overlong forms, surrogates and what is above U+10FFFF are all excluded by the
/// bounds of the second byte alone; the others may be any continuation byte.
struct Lead {
  std::size_t length;  ///< Of the whole character; 0 if no character starts with this byte.
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {0};
  if (byte < 0xe0) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

/// The length of the character that `rest` starts with, or 0 if it is malformed.
std::size_t character_length(std::string_view rest) {
  auto at = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  Lead lead = lead_of(at(0));
  if (lead.length <= 1) return lead.length;
  if (lead.length > rest.size() || at(1) < lead.second_min || at(1) > lead.second_max) return 0;
  for (std::size_t i = 2; i < lead.length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  return lead.length;
}

/// Whether the eight bytes at `p` are all ASCII, as most of the text in keys is.
bool eight_ascii(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return (word & 0x8080808080808080u) == 0;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text.size() - i >= 8 && eight_ascii(text.data() + i)) {
      i += 8;
      continue;
    }
    std::size_t length = character_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace perdure
