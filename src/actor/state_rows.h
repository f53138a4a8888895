// What writing and reading the rows of a state have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "actor/state_codec.h"
#include "perdure/bytes.h"
#include "perdure/value.h"

namespace perdure::actor {

/// The first byte of a node; those below are the tags of values, which a small leaf begins with.
enum NodeTag : unsigned char {
  kMapNode = 0x10,
  kItemsNode = 0x11,
  kChunksNode = 0x12,
};

/// How a value is stored.
enum class Form { kLeaf, kMap, kItems };

/// Of the key of a child, so that the number of a chunk fits behind it into a key of the store.
inline constexpr std::size_t kChildKeyBytesMax = 480 - 3;

/// The size of a key that is extended by `name`.
std::size_t child_key_size(std::size_t key_size, std::string_view name);

/// The form of `value` at a key of `key_size` bytes.
Form form_of(const Value& value, std::size_t key_size);
/// The same for a map or a list of items that is known to be one: whether the keys of its children fit.
bool children_fit(const Value& value, std::size_t key_size);

/// How many chunks a leaf of that encoded size has; 0 if it is in its row.
constexpr std::size_t chunks_of(std::size_t encoded_size) {
  return encoded_size <= kChunkBytes ? 0 : (encoded_size + kChunkBytes - 1) / kChunkBytes;
}

}  // namespace perdure::actor
