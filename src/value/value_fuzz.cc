// libFuzzer target: whatever bytes the decoder accepts are exactly those that the encoder writes for the result.
//
//     cmake --preset clang && ninja -C build/clang value_fuzz && build/clang/src/value/value_fuzz -max_total_time=60
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "perdure/value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perdure;
  BytesView encoded(reinterpret_cast<const char*>(data), size);
  auto decoded = Value::decode(encoded);
  if (!decoded) return 0;
  check(decoded->check("it").has_value(), "a decoded value passes its own check");
  check(decoded->encode() == encoded, "a decoded value encodes to the bytes that it came from");
  check(decoded->encoded_size() == size, "the size is known without encoding");
  check(!decoded->to_json().empty(), "every value has a form in JSON");
  return 0;
}
