#pragma once

#include <bit>
#include <concepts>
#include <cstring>

namespace perdure {

/// Fixed-width integers as bytes, most significant first so that they sort, or least significant first where only
/// speed counts. `p` needs no alignment.
template <std::unsigned_integral T>
void store_big(char* p, T value) {
  for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(value >> 7 >> 1)) p[i] = static_cast<char>(value);
}

template <std::unsigned_integral T>
T load_big(const char* p) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(static_cast<T>(value << 7 << 1) | static_cast<unsigned char>(p[i]));
  return value;
}

static_assert(std::endian::native == std::endian::little, "rows are stored as the machine has them: little-endian");

template <std::unsigned_integral T>
void store_little(char* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

template <std::unsigned_integral T>
T load_little(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace perdure
