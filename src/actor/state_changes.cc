// changes(): the rows of one state turned into those of the next.
#include <algorithm>
#include <string>
#include <utility>

#include "actor/list_order.h"
#include "actor/state_codec.h"
#include "actor/state_rows.h"
#include "perdure/tuple.h"
#include "value/format.h"

namespace perdure::actor {
namespace {

using Orders = std::vector<Bytes>;

constexpr auto kNone = static_cast<std::size_t>(-1);

struct Size {
  std::size_t rows = 0;
  std::size_t bytes = 0;
};

/// Adds what `value` takes at a key of `key_size` bytes, order keys not counted.
void measure(const Value& value, std::size_t key_size, bool is_item, Size& size) {
  Form form = form_of(value, key_size);
  ++size.rows;
  size.bytes += key_size;
  if (form == Form::kLeaf) {
    std::size_t encoded = value.encoded_size();
    std::size_t chunks = chunks_of(encoded);
    size.rows += chunks;
    size.bytes += encoded + chunks * key_size;
  } else if (form == Form::kMap) {
    for (const auto& [name, entry] : *value.as_map())
      if (!is_item || name != "id") measure(entry, child_key_size(key_size, name), false, size);
  } else {
    for (const Value& item : *value.as_list()) measure(item, child_key_size(key_size, *item_id(item)), true, size);
  }
}

/// Walks the states before and after side by side. `key_` is always the key of the node that is looked at, and order
/// keys come with it, for a node that is an item, or are null.
class Differ {
 public:
  Differ(BytesView prefix, const StoredState* before, StateChanges& out)
      : key_(prefix), prefix_size_(prefix.size()), before_(before), out_(out) {
    if (before != nullptr) out.after.orders = before->orders;
  }

  void run(const Value& after) {
    if (before_ == nullptr) {
      write(after, nullptr);
    } else {
      change(before_->value, after, nullptr, nullptr);
    }
  }

 private:
  /// Calls `visit` with `key_` extended by `name`.
  template <class Visit>
  void at_child(const std::string& name, const Visit& visit) {
    std::size_t size = key_.size();
    tuple::append(key_, name);
    visit();
    key_.resize(size);
  }

  BytesView relative_key() const { return BytesView(key_).substr(prefix_size_); }

  /// The order keys of the list at `key_` as it was, or null if what was there is not a list of items.
  const Orders* orders_before() const {
    auto found = before_->orders.find(relative_key());
    return found == before_->orders.end() ? nullptr : found->second.get();
  }

  Form form_before(const Value& value) const {
    if (value.is_list()) return orders_before() == nullptr ? Form::kLeaf : Form::kItems;
    return form_of(value, key_.size());
  }

  void forget_orders() {
    ListOrders& orders = out_.after.orders;
    if (orders.empty()) return;
    KeyRange range = state_range(relative_key());
    orders.erase(orders.lower_bound(range.begin), orders.lower_bound(range.end));
  }

  static Bytes row_start(const Bytes* order) {
    Bytes row;
    if (order == nullptr) return row;
    value_format::put_varint(row, order->size());
    return row += *order;
  }

  void set_marker(NodeTag tag, const Bytes* order) {
    Bytes row = row_start(order);
    row.push_back(static_cast<char>(tag));
    out_.sets.push_back({key_, std::move(row)});
  }

  static Bytes leaf_row(const Value& leaf, std::size_t encoded_size, const Bytes* order) {
    Bytes row = row_start(order);
    if (chunks_of(encoded_size) == 0) {
      row.reserve(row.size() + encoded_size);
      leaf.encode_onto(row);
    } else {
      row.push_back(static_cast<char>(kChunksNode));
      value_format::put_varint(row, encoded_size);
    }
    return row;
  }

  void write_leaf(const Value& leaf, const Bytes* order) {
    std::size_t size = leaf.encoded_size();
    out_.sets.push_back({key_, leaf_row(leaf, size, order)});
    if (chunks_of(size) > 0) write_chunks({}, leaf.encode());
  }

  /// Writes the chunks of `after` that are not also those of `before`, and clears those that are too many.
  void write_chunks(BytesView before, BytesView after) {
    std::size_t end = std::max(chunks_of(before.size()), chunks_of(after.size()));
    for (std::size_t i = 0; i < end; ++i) {
      auto chunk = [&](BytesView all) {
        return i < chunks_of(all.size()) ? all.substr(i * kChunkBytes, kChunkBytes) : BytesView();
      };
      if (chunk(before) == chunk(after)) continue;
      Bytes key = tuple::pack_onto(key_, i);
      if (chunk(after).empty()) {
        out_.clears.push_back(std::move(key));
      } else {
        out_.sets.push_back({std::move(key), Bytes(chunk(after))});
      }
    }
  }

  void change_leaf(const Value& before, const Value& after, const Bytes* had, const Bytes* has) {
    bool moved = had != has && *had != *has;
    bool same = before == after;
    if (same && !moved) return;
    std::size_t size_before = before.encoded_size();
    std::size_t size = after.encoded_size();
    bool chunked_before = chunks_of(size_before) > 0;
    bool chunked = chunks_of(size) > 0;
    if (moved || !chunked || size != size_before) out_.sets.push_back({key_, leaf_row(after, size, has)});
    if (!same && (chunked_before || chunked))
      write_chunks(chunked_before ? before.encode() : Bytes(), chunked ? after.encode() : Bytes());
  }

  /// A node that was not there before.
  void write(const Value& after, const Bytes* order) {
    Form form = form_of(after, key_.size());
    if (form == Form::kLeaf) {
      write_leaf(after, order);
    } else if (form == Form::kMap) {
      set_marker(kMapNode, order);
      for (const auto& [name, entry] : *after.as_map())
        if (order == nullptr || name != "id") at_child(name, [&] { write(entry, nullptr); });
    } else {
      set_marker(kItemsNode, order);
      const Value::List& list = *after.as_list();
      auto orders = std::make_shared<const Orders>(arrange(std::vector<const Bytes*>(list.size())));
      for (std::size_t i = 0; i < list.size(); ++i) at_child(*item_id(list[i]), [&] { write(list[i], &(*orders)[i]); });
      out_.after.orders.insert_or_assign(Bytes(relative_key()), std::move(orders));
    }
  }

  bool has_rows_below(const Value& before, Form form, bool is_item) const {
    if (form == Form::kMap) return before.as_map()->size() > (is_item ? 1u : 0u);
    if (form == Form::kItems) return !before.as_list()->empty();
    return chunks_of(before.encoded_size()) > 0;
  }

  void remove(const Value& before, bool is_item) {
    if (has_rows_below(before, form_before(before), is_item)) {
      out_.clear_ranges.push_back(state_range(key_));
    } else {
      out_.clears.push_back(key_);
    }
    forget_orders();
  }

  void change(const Value& before, const Value& after, const Bytes* had, const Bytes* has) {
    Form form = form_of(after, key_.size());
    if (Form was = form_before(before); was != form) {
      if (has_rows_below(before, was, had != nullptr)) out_.clear_ranges.push_back(tuple::extensions(key_));
      forget_orders();
      write(after, has);
    } else if (form == Form::kLeaf) {
      change_leaf(before, after, had, has);
    } else if (form == Form::kMap) {
      if (had != has && *had != *has) set_marker(kMapNode, has);
      change_entries(*before.as_map(), *after.as_map(), has != nullptr);
    } else {
      change_items(*before.as_list(), *after.as_list());
    }
  }

  void change_entries(const Value::Map& before, const Value::Map& after, bool is_item) {
    auto old_entry = before.begin();
    auto new_entry = after.begin();
    while (old_entry != before.end() || new_entry != after.end()) {
      int order = old_entry == before.end()  ? 1
                  : new_entry == after.end() ? -1
                                             : old_entry->first.compare(new_entry->first);
      const std::string& name = order <= 0 ? old_entry->first : new_entry->first;
      // Equal ones are left out before their key is made: they are most, and comparing is cheaper.
      bool same = order == 0 && old_entry->second == new_entry->second;
      if (!same && (!is_item || name != "id")) {
        at_child(name, [&] {
          if (order < 0) {
            remove(old_entry->second, false);
          } else if (order > 0) {
            write(new_entry->second, nullptr);
          } else {
            change(old_entry->second, new_entry->second, nullptr, nullptr);
          }
        });
      }
      if (order <= 0) ++old_entry;
      if (order >= 0) ++new_entry;
    }
  }

  void change_items(const Value::List& before, const Value::List& after) {
    const Orders& had = *orders_before();
    if (std::ranges::equal(before, after, {}, item_id_of, item_id_of)) {
      for (std::size_t i = 0; i < after.size(); ++i) {
        if (before[i] == after[i]) continue;
        at_child(*item_id(after[i]), [&] { change(before[i], after[i], &had[i], &had[i]); });
      }
      return;
    }
    std::vector<std::size_t> from = origins(before, after);
    std::vector<bool> stays(before.size());
    std::vector<const Bytes*> kept(after.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (from[i] == kNone) continue;
      kept[i] = &had[from[i]];
      stays[from[i]] = true;
    }
    for (std::size_t i = 0; i < before.size(); ++i)
      if (!stays[i]) at_child(*item_id(before[i]), [&] { remove(before[i], true); });
    auto has = std::make_shared<const Orders>(arrange(kept));
    for (std::size_t i = 0; i < after.size(); ++i) {
      at_child(*item_id(after[i]), [&] {
        if (from[i] == kNone) {
          write(after[i], &(*has)[i]);
        } else {
          change(before[from[i]], after[i], kept[i], &(*has)[i]);
        }
      });
    }
    out_.after.orders.insert_or_assign(Bytes(relative_key()), std::move(has));
  }

  static std::string_view item_id_of(const Value& item) { return *item_id(item); }

  /// Where each item of `after` stands in `before`, by its id, or kNone.
  static std::vector<std::size_t> origins(const Value::List& before, const Value::List& after) {
    std::vector<std::pair<std::string_view, std::size_t>> index;
    index.reserve(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) index.emplace_back(item_id_of(before[i]), i);
    std::ranges::sort(index);
    std::vector<std::size_t> from;
    from.reserve(after.size());
    for (const Value& item : after) {
      std::string_view id = item_id_of(item);
      auto found = std::ranges::lower_bound(index, id, {}, [](const auto& entry) { return entry.first; });
      from.push_back(found != index.end() && found->first == id ? found->second : kNone);
    }
    return from;
  }

  Bytes key_;
  std::size_t prefix_size_;
  const StoredState* before_;
  StateChanges& out_;
};

}  // namespace

Result<StateChanges> changes(BytesView prefix, const StoredState* before, Value after) {
  StateChanges out;
  Differ(prefix, before, out).run(after);
  if (!out.empty()) {
    if (auto good = after.check("the state"); !good) return std::unexpected(std::move(good).error());
    Size size;
    measure(after, prefix.size(), false, size);
    if (size.rows > kStateRowsMax || size.bytes > kStateBytesMax)
      return fail(ErrorCode::kTooLarge, "the state would take " + std::to_string(size.bytes) + " bytes in " +
                                            std::to_string(size.rows) + " rows, and may take " +
                                            std::to_string(kStateBytesMax) + " bytes in " +
                                            std::to_string(kStateRowsMax) + " rows; spread it over several actors");
  }
  out.after.value = std::move(after);
  return out;
}

}  // namespace perdure::actor
