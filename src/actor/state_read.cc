// read_state(): a state from its rows.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "actor/list_order.h"
#include "actor/state_codec.h"
#include "actor/state_rows.h"
#include "perdure/tuple.h"
#include "value/format.h"

namespace perdure::actor {
namespace {

struct Item {
  Bytes order;
  Value value;
};

/// Goes through the rows once. Children follow their parent, and all rows below a node are next to each other. As
/// strict as it must be for changes() to trust what it reads: a value has to be stored in the form that form_of() gives
/// it. The first error sticks, and ends all loops.
class StateReader {
 public:
  StateReader(BytesView prefix, std::span<const Row> rows) : prefix_size_(prefix.size()), rows_(rows) {}

  Result<StoredState> read() {
    state_.value = node(nullptr, nullptr, 0);
    if (!error_ && next_ < rows_.size()) refuse(rows_[next_].key, "a row that belongs to no part of the state");
    if (error_) return std::unexpected(std::move(*error_));
    return std::move(state_);
  }

 private:
  Value refuse(BytesView key, const std::string& what) {
    if (!error_)
      error_ = Error{ErrorCode::kCorrupt, "the state row " + printable(key, 480) + ": " + what +
                                              "; restore it from a backup, or replace the state"};
    return {};
  }

  /// The node whose row comes next. An item has an `id`, and gives its order key.
  Value node(const std::string* id, Bytes* order, std::size_t depth) {
    const Row& row = rows_[next_++];
    BytesView rest = row.value;
    if (id != nullptr && !take_order(rest, *order)) return refuse(row.key, "an item without a proper order key");
    if (rest.empty()) return refuse(row.key, "no value");
    auto tag = static_cast<unsigned char>(rest.front());
    if (tag == kMapNode || tag == kItemsNode) {
      if (rest.size() > 1) return refuse(row.key, "more bytes than a marker has");
      if (depth == Value::kMaxDepth) return refuse(row.key, "lists and maps nested more than 64 deep");
      if (tag == kMapNode) return map(row.key, id, depth);
      return items(row.key, depth);
    }
    Value leaf = tag == kChunksNode ? chunks(row.key, rest.substr(1)) : decode(row.key, rest);
    if (error_) return {};
    if (form_of(leaf, row.key.size()) != Form::kLeaf)
      return refuse(row.key, "a map or list that is not in rows of its own");
    if (id != nullptr && (item_id(leaf) == nullptr || *item_id(leaf) != *id))
      return refuse(row.key, "an item with another id than its key");
    return leaf;
  }

  static bool take_order(BytesView& rest, Bytes& order) {
    std::uint64_t size = 0;
    if (!value_format::take_varint(rest, size) || size > rest.size()) return false;
    order = rest.substr(0, size);
    rest.remove_prefix(size);
    return is_order_key(order);
  }

  Value decode(BytesView key, BytesView encoded) {
    if (encoded.size() > kChunkBytes) return refuse(key, "a value too large for one row");
    return decode_any(key, encoded);
  }

  Value decode_any(BytesView key, BytesView encoded) {
    auto value = Value::decode(encoded);
    if (!value) return refuse(key, value.error().message);
    return std::move(*value);
  }

  Value chunks(BytesView key, BytesView header) {
    std::uint64_t size = 0;
    if (!value_format::take_varint(header, size) || !header.empty() || size <= kChunkBytes || size > kStateBytesMax)
      return refuse(key, "a size of chunks that cannot be");
    Bytes encoded;
    for (std::size_t i = 0; i < chunks_of(size); ++i) {
      Bytes chunk_key = tuple::pack_onto(key, i);
      if (next_ == rows_.size() || rows_[next_].key != chunk_key) return refuse(chunk_key, "a chunk that is missing");
      BytesView chunk = rows_[next_++].value;
      if (chunk.size() != std::min<std::size_t>(kChunkBytes, size - i * kChunkBytes))
        return refuse(chunk_key, "a chunk of the wrong size");
      encoded += chunk;
    }
    return decode_any(key, encoded);
  }

  /// The name of the next child of the node at `key`, if there is one.
  std::optional<std::string> child_name(BytesView key) {
    if (error_ || next_ == rows_.size()) return std::nullopt;
    BytesView child = rows_[next_].key;
    if (child.size() <= key.size() || !child.starts_with(key) || child[key.size()] == '\xff') return std::nullopt;
    tuple::Reader reader(child.substr(key.size()));
    std::string name(reader.next_text());
    if (!reader.finish() || child.size() > kChildKeyBytesMax) {
      refuse(child, "a row that belongs to no part of the state");
      return std::nullopt;
    }
    return name;
  }

  Value map(BytesView key, const std::string* id, std::size_t depth) {
    Value::Map map;
    while (auto name = child_name(key)) {
      if (id != nullptr && *name == "id") return refuse(rows_[next_].key, "the id of an item, which its key holds");
      Value entry = node(nullptr, nullptr, depth + 1);
      map.emplace_hint(map.end(), std::move(*name), std::move(entry));
    }
    if (id != nullptr) map.emplace("id", *id);
    Value value = std::move(map);
    if (!error_ && !children_fit(value, key.size())) return refuse(key, "a map whose keys are too long for rows");
    return value;
  }

  Value items(BytesView key, std::size_t depth) {
    std::vector<Item> items;
    while (auto id = child_name(key)) {
      Item item;
      BytesView child = rows_[next_].key;
      item.value = node(&*id, &item.order, depth + 1);
      if (!error_ && !item.value.is_map()) return refuse(child, "an item that is not a map");
      items.push_back(std::move(item));
    }
    if (error_) return {};
    std::ranges::sort(items, {}, &Item::order);
    if (std::ranges::adjacent_find(items, {}, &Item::order) != items.end())
      return refuse(key, "a list in which two items have one order key");
    std::vector<Bytes> orders;
    Value::List list;
    orders.reserve(items.size());
    list.reserve(items.size());
    for (Item& item : items) {
      orders.push_back(std::move(item.order));
      list.push_back(std::move(item.value));
    }
    state_.orders.emplace(key.substr(prefix_size_), std::make_shared<const std::vector<Bytes>>(std::move(orders)));
    return list;
  }

  std::size_t prefix_size_;
  std::span<const Row> rows_;
  std::size_t next_ = 0;
  StoredState state_;
  std::optional<Error> error_;
};

}  // namespace

Result<StoredState> read_state(BytesView prefix, std::span<const Row> rows) {
  if (rows.empty()) return fail(ErrorCode::kNotFound, "there is no state at " + printable(prefix, 480));
  if (rows.front().key != prefix)
    return fail(ErrorCode::kCorrupt,
                "the state row " + printable(rows.front().key, 480) + ": the row of the state itself is missing");
  return StateReader(prefix, rows).read();
}

}  // namespace perdure::actor
