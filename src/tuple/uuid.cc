#include "perdure/uuid.h"

#include "perdure/bytes.h"

namespace perdure {
namespace {

constexpr std::size_t kTextSize = 36;

bool hyphen_at(std::size_t position) {
  return position == 8 || position == 13 || position == 18 || position == 23;
}

/// The value of a hexadecimal digit, or -1.
int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<Uuid> Uuid::parse(std::string_view text) {
  auto refuse = [&] { return fail(ErrorCode::kInvalidArgument, "not a uuid: \"" + printable(text) + "\""); };
  if (text.size() != kTextSize) return refuse();
  Uuid uuid;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < kTextSize; ++i) {
    if (hyphen_at(i)) {
      if (text[i] != '-') return refuse();
      continue;
    }
    int value = digit_value(text[i]);
    if (value < 0) return refuse();
    std::uint8_t& byte = uuid.bytes[digits++ / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
  }
  return uuid;
}

std::string to_string(const Uuid& uuid) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(kTextSize);
  for (std::uint8_t byte : uuid.bytes) {
    if (hyphen_at(text.size())) text += '-';
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace perdure
