// libFuzzer target: whatever bytes the decoder accepts are exactly those that the encoder writes for the result.
//
//     cmake --preset clang && ninja -C build/clang tuple_fuzz && build/clang/src/tuple/tuple_fuzz -max_total_time=60
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "perdure/tuple.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdure;
  BytesView packed(reinterpret_cast<const char*>(data), size);
  auto decoded = tuple::unpack(packed);
  if (!decoded) return 0;
  auto encoded = tuple::pack(*decoded);
  check(encoded.has_value(), "a decoded tuple can be packed");
  check(*encoded == packed, "a decoded tuple packs to the bytes that it came from");
  check(!tuple::to_string(*decoded).empty(), "every tuple has a readable form");
  return 0;
}
