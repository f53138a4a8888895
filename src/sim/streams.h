// Chance, by labelled streams.
//
// Every part of a simulation draws from a stream of its own, made from the seed and a label. So a part that draws once
// more, or a fault that is left out while a failure is made smaller, does not change what all the others draw.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "perdure/time.h"
#include "runtime/random.h"

namespace perdure::sim {

inline Random stream(std::uint64_t seed, std::string_view label) {
  return Random(hash64(label, seed));
}

/// From `low` to `high`, both included.
inline std::uint64_t draw(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}

/// True `permille` times in a thousand.
inline bool chance(Random& random, std::uint64_t permille) {
  return random() % 1000 < permille;
}

/// Up to `most`, short ones more often than long ones: the smaller of two draws.
inline Duration draw_delay(Random& random, Duration most) {
  auto one = random(), other = random();
  auto bound = static_cast<std::uint64_t>(most.count()) + 1;
  return Duration(static_cast<Duration::rep>(one % bound < other % bound ? one % bound : other % bound));
}

}  // namespace perdure::sim
