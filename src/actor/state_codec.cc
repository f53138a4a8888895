#include "actor/state_codec.h"

#include <algorithm>

#include "actor/list_order.h"
#include "actor/state_rows.h"

namespace perdure::actor {

std::size_t child_key_size(std::size_t key_size, std::string_view name) {
  // The code before the text and the zero byte behind it; a zero byte inside takes two.
  return key_size + 2 + name.size() + static_cast<std::size_t>(std::ranges::count(name, '\0'));
}

bool children_fit(const Value& value, std::size_t key_size) {
  auto fits = [&](std::string_view name) { return child_key_size(key_size, name) <= kChildKeyBytesMax; };
  if (const auto* map = value.as_map())
    return std::ranges::all_of(*map, [&](const auto& entry) { return fits(entry.first); });
  return std::ranges::all_of(*value.as_list(), [&](const Value& item) { return fits(*item_id(item)); });
}

Form form_of(const Value& value, std::size_t key_size) {
  Form form = value.is_map() ? Form::kMap : is_item_list(value) ? Form::kItems : Form::kLeaf;
  return form == Form::kLeaf || children_fit(value, key_size) ? form : Form::kLeaf;
}

KeyRange state_range(BytesView prefix) {
  // The extensions begin directly behind the prefix: no key lies between it and itself with a zero byte.
  KeyRange range{Bytes(prefix), Bytes(prefix)};
  range.end.push_back('\xff');
  return range;
}

void apply(Transaction& txn, const StateChanges& changes) {
  for (const KeyRange& range : changes.clear_ranges) txn.clear_range(range);
  for (const Bytes& key : changes.clears) txn.clear(key);
  for (const RowWrite& row : changes.sets) txn.set(row.key, row.value);
}

}  // namespace perdure::actor
