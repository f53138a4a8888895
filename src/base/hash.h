#pragma once

#include <cstdint>

#include "perdure/bytes.h"

namespace perdure {

/// A fast 64-bit hash (XXH3), stable across processes and versions of perdure: rows on disk carry it.
std::uint64_t hash64(BytesView bytes, std::uint64_t seed = 0);

}  // namespace perdure
