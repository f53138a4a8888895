// The bytes of an encoded value, shared by those who write and those who read them. See
// docs/internals/value_format.md, which is the contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/bytes.h"

namespace perdure::value_format {

enum Tag : unsigned char {
  kNull = 0x00,
  kFalse = 0x01,
  kTrue = 0x02,
  kInteger = 0x03,
  kDouble = 0x04,
  kText = 0x05,
  kBytes = 0x06,
  kList = 0x07,
  kMap = 0x08,
};

/// Of the longest varint, that of a number of 64 bits.
inline constexpr std::size_t kVarintMax = 10;

/// Signed numbers as unsigned ones whose size is that of the magnitude: 0, -1, 1, -2 become 0, 1, 2, 3.
inline std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}

inline std::int64_t unzigzag(std::uint64_t number) {
  return static_cast<std::int64_t>((number >> 1) ^ (0 - (number & 1)));
}

inline void put_varint(Bytes& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

inline std::size_t varint_size(std::uint64_t number) {
  std::size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

/// Reads the varint at the beginning of `bytes` and takes it away. False, and nothing taken, if it is cut short, longer
/// than its number needs, or larger than 64 bits.
inline bool take_varint(BytesView& bytes, std::uint64_t& number) {
  number = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kVarintMax; ++i) {
    auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == kVarintMax - 1 && byte > 1) return false;
    number |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    if (byte == 0 && i > 0) return false;
    bytes.remove_prefix(i + 1);
    return true;
  }
  return false;
}

}  // namespace perdure::value_format

namespace perdure {

/// Extends `path` by an entry of a map or an item of a list, as it stands in messages: `.name`, `["odd name"]`, `[3]`.
void append_key(std::string& path, std::string_view key);
void append_index(std::string& path, std::size_t index);

}  // namespace perdure
