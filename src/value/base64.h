// Base64 with padding, RFC 4648 section 4: how bytes stand in JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/bytes.h"

namespace perdure {

inline constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline void put_base64(std::string& out, BytesView bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) three = three << 8 | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += j <= have ? kBase64Digits[three >> (18 - 6 * j) & 63] : '=';
  }
}

/// What put_base64() writes as `text`, or nothing if it never writes that: bytes have one form only, with padding, and
/// with zeros in the bits of the last digit that say nothing.
inline std::optional<Bytes> from_base64(std::string_view text) {
  static constexpr std::uint8_t kNoDigit = 64;
  static constexpr auto kNumbers = [] {
    std::array<std::uint8_t, 256> numbers;
    numbers.fill(kNoDigit);
    for (std::size_t i = 0; i < kBase64Digits.size(); ++i)
      numbers[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<std::uint8_t>(i);
    return numbers;
  }();
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  Bytes bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t four = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      std::uint8_t number = j < digits ? kNumbers[static_cast<unsigned char>(text[i + j])] : 0;
      if (number == kNoDigit) return std::nullopt;
      four = four << 6 | number;
    }
    for (std::size_t j = 1; j < digits; ++j) bytes.push_back(static_cast<char>(four >> (24 - 8 * j)));
    if ((four & ((1u << (8 * (4 - digits))) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace perdure
