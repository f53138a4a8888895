#include "perdure/version.h"

#include "base/endian.h"

namespace perdure {

std::array<char, Stamp::kSize> Stamp::encode() const {
  std::array<char, kSize> bytes;
  store_big(bytes.data(), version.number);
  store_big(bytes.data() + 8, order);
  return bytes;
}

std::optional<Stamp> Stamp::decode(BytesView bytes) {
  if (bytes.size() != kSize) return std::nullopt;
  return Stamp{Version{load_big<std::uint64_t>(bytes.data())}, load_big<std::uint32_t>(bytes.data() + 8)};
}

}  // namespace perdure
