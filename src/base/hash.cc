#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace perdure {

std::uint64_t hash64(BytesView bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace perdure
