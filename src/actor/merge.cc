#include "actor/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actor/list_order.h"
#include "value/format.h"

namespace perdure::actor {
namespace {

using List = Value::List;
using Map = Value::Map;
using Ids = std::vector<std::string_view>;
using Index = std::map<std::string_view, const Value*>;

/// One thing on the three sides; null where it is not there.
struct Three {
  const Value* base;
  const Value* mine;
  const Value* theirs;
};

bool same(const Value* one, const Value* other) {
  return one == nullptr || other == nullptr ? one == other : *one == *other;
}

const Value* entry_of(const Map* map, const std::string& key) {
  if (map == nullptr) return nullptr;
  auto found = map->find(key);
  return found == map->end() ? nullptr : &found->second;
}

const Value* item_of(const Index& index, std::string_view id) {
  auto found = index.find(id);
  return found == index.end() ? nullptr : found->second;
}

Index index_of(const List* list) {
  Index index;
  if (list == nullptr) return index;
  for (const Value& item : *list) index.emplace(*item_id(item), &item);
  return index;
}

/// The ids of `list` that are in `wanted` too, in the order of the list.
Ids ids_of(const List* list, const Index& wanted) {
  Ids ids;
  if (list == nullptr) return ids;
  for (const Value& item : *list)
    if (wanted.contains(*item_id(item))) ids.push_back(*item_id(item));
  return ids;
}

/// Whether `list` has the items that it shares with `base` in another order.
bool reordered(const List* base, const Index& base_index, const List& list, const Index& index) {
  return ids_of(base, index) != ids_of(&list, base_index);
}

class Merger {
 public:
  /// Nothing if the merged state does not have it, or if there is a conflict.
  std::optional<Value> merge(const Three& sides) {
    if (same(sides.mine, sides.theirs) || same(sides.base, sides.theirs)) return copy(sides.mine);
    if (same(sides.base, sides.mine)) return copy(sides.theirs);
    if (sides.mine != nullptr && sides.theirs != nullptr) {
      auto all = [&](auto is) {
        return is(*sides.mine) && is(*sides.theirs) && (sides.base == nullptr || is(*sides.base));
      };
      if (all([](const Value& value) { return value.is_map(); })) return merge_maps(sides);
      if (all(is_item_list)) return merge_lists(sides);
    }
    refuse(sides);
    return std::nullopt;
  }

  std::optional<Error> take_error() { return std::move(error_); }

 private:
  static std::optional<Value> copy(const Value* value) {
    return value == nullptr ? std::nullopt : std::optional<Value>(*value);
  }

  static std::string shown(const Value* value) { return value == nullptr ? "removed" : describe_found(*value); }

  void refuse(const Three& sides) {
    if (error_) return;
    error_ = Error{ErrorCode::kConflict, path_ + " was changed on both sides: here it is now " + shown(sides.mine) +
                                             ", and meanwhile it became " + shown(sides.theirs) +
                                             "; read the state again and repeat the change"};
  }

  /// Calls merge() for a part of what is merged now, whose name `append` adds to the path.
  template <class Append>
  std::optional<Value> merge_part(const Three& sides, const Append& append) {
    std::size_t size = path_.size();
    append(path_);
    auto merged = merge(sides);
    path_.resize(size);
    return merged;
  }

  std::optional<Value> merge_maps(const Three& sides) {
    const Map* base = sides.base == nullptr ? nullptr : sides.base->as_map();
    const Map& mine = *sides.mine->as_map();
    const Map& theirs = *sides.theirs->as_map();
    Map merged;
    auto take = [&](const std::string& key) {
      Three entry{entry_of(base, key), entry_of(&mine, key), entry_of(&theirs, key)};
      auto value = merge_part(entry, [&](std::string& path) { append_key(path, key); });
      if (value) merged.emplace(key, std::move(*value));
    };
    for (const auto& entry : mine) take(entry.first);
    for (const auto& entry : theirs)
      if (!mine.contains(entry.first)) take(entry.first);
    return merged;
  }

  std::optional<Value> merge_lists(const Three& sides) {
    const List* base = sides.base == nullptr ? nullptr : sides.base->as_list();
    const List& mine = *sides.mine->as_list();
    const List& theirs = *sides.theirs->as_list();
    Index in_base = index_of(base);
    Index in_mine = index_of(&mine);
    Index in_theirs = index_of(&theirs);
    bool by_mine = reordered(base, in_base, mine, in_mine);
    bool by_theirs = reordered(base, in_base, theirs, in_theirs);
    Ids order;
    if (by_mine && by_theirs && ids_of(&mine, in_theirs) != ids_of(&theirs, in_mine)) {
      order = ids_of(&mine, in_mine);
      for (const Value& item : theirs)
        if (!in_mine.contains(*item_id(item))) order.push_back(*item_id(item));
    } else if (by_theirs && !by_mine) {
      order = joined(theirs, in_theirs, mine);
    } else {
      order = joined(mine, in_mine, theirs);
    }
    List merged;
    merged.reserve(order.size());
    for (std::string_view id : order) {
      Three item{item_of(in_base, id), item_of(in_mine, id), item_of(in_theirs, id)};
      auto value = merge_part(item, [&](std::string& path) { append_item(path, id); });
      if (value) merged.push_back(std::move(*value));
    }
    return merged;
  }

  static void append_item(std::string& path, std::string_view id) { path += "[id " + printable(id) + "]"; }

  /// The ids of `first` in their order, and each one that only `second` has behind the one that it is behind there. At
  /// the end if the two have nothing in common, as when both began to fill an empty list.
  static Ids joined(const List& first, const Index& in_first, const List& second) {
    std::map<std::string_view, Ids> followers;  // By the last id before them that `first` has; empty for none.
    Ids leading;
    Ids* place = &leading;
    for (const Value& item : second) {
      std::string_view id = *item_id(item);
      if (in_first.contains(id)) {
        place = &followers[id];
      } else {
        place->push_back(id);
      }
    }
    Ids ids;
    if (!followers.empty()) ids.swap(leading);
    for (const Value& item : first) {
      ids.push_back(*item_id(item));
      if (auto found = followers.find(ids.back()); found != followers.end())
        ids.insert(ids.end(), found->second.begin(), found->second.end());
    }
    ids.insert(ids.end(), leading.begin(), leading.end());
    return ids;
  }

  std::string path_ = "the state";
  std::optional<Error> error_;
};

}  // namespace

Result<Value> merge(const Value& base, const Value& mine, const Value& theirs) {
  Merger merger;
  auto merged = merger.merge({&base, &mine, &theirs});
  if (auto error = merger.take_error()) return std::unexpected(std::move(*error));
  return std::move(*merged);
}

}  // namespace perdure::actor
