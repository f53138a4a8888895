#include "actor/list_order.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/endian.h"

namespace perdure::actor {
namespace {

/// Keys at the ends of a list count up or down in their first bytes, so that a list which only ever grows at its ends
/// has short keys for ever. The first item of all lies in the middle.
constexpr std::size_t kHeadBytes = 4;
constexpr std::uint32_t kFirstHead = 0x80000000;

constexpr std::size_t kFewItems = 8;

std::uint32_t head_of(BytesView key) {
  char bytes[kHeadBytes] = {};
  std::ranges::copy(key.substr(0, kHeadBytes), bytes);
  return load_big<std::uint32_t>(bytes);
}

Bytes key_of(std::uint32_t head) {
  Bytes key(kHeadBytes, '\0');
  store_big(key.data(), head);
  return key;
}

/// Heads that end in a zero byte are left out, as no order key does.
Bytes order_after(BytesView low) {
  std::uint32_t head = low.empty() ? kFirstHead : head_of(low);
  if (head >= UINT32_MAX - 1) return order_between(low, {});
  ++head;
  return key_of((head & 0xff) == 0 ? head + 1 : head);
}

Bytes order_before(BytesView high) {
  std::uint32_t head = head_of(high);
  if (head <= 2) return order_between({}, high);
  --head;
  return key_of((head & 0xff) == 0 ? head - 1 : head);
}

/// Fills `keys` with ascending keys between `low` and `high`, either of which may be empty for an open end.
void fill(std::span<Bytes> keys, BytesView low, BytesView high) {
  if (keys.empty()) return;
  if (high.empty()) {
    for (Bytes& key : keys) low = key = order_after(low);
  } else if (low.empty()) {
    for (std::size_t i = keys.size(); i-- > 0;) high = keys[i] = order_before(high);
  } else {
    // The middle one first, so that the keys grow with the logarithm of their number.
    std::size_t middle = keys.size() / 2;
    keys[middle] = order_between(low, high);
    fill(keys.first(middle), low, keys[middle]);
    fill(keys.subspan(middle + 1), keys[middle], high);
  }
}

/// For each item whether it keeps its key: the longest subsequence that ascends, by patience sorting.
std::vector<bool> longest_ascending(std::span<const Bytes* const> had) {
  constexpr auto kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> ends;  // The item with the smallest key that ends an ascending subsequence of each length.
  std::vector<std::size_t> before(had.size(), kNone);
  for (std::size_t i = 0; i < had.size(); ++i) {
    if (had[i] == nullptr) continue;
    auto place =
        std::ranges::lower_bound(ends, *had[i], {}, [&](std::size_t end) -> const Bytes& { return *had[end]; });
    if (place != ends.begin()) before[i] = *std::prev(place);
    if (place == ends.end()) {
      ends.push_back(i);
    } else {
      *place = i;
    }
  }
  std::vector<bool> keeps(had.size());
  for (std::size_t i = ends.empty() ? kNone : ends.back(); i != kNone; i = before[i]) keeps[i] = true;
  return keeps;
}

}  // namespace

const std::string* item_id(const Value& item) {
  const Value* id = item.find("id");
  return id == nullptr ? nullptr : id->as_text();
}

bool is_item_list(const Value& value) {
  const Value::List* list = value.as_list();
  if (list == nullptr) return false;
  for (const Value& item : *list)
    if (item_id(item) == nullptr) return false;
  if (list->size() <= kFewItems) {
    for (std::size_t i = 1; i < list->size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (*item_id((*list)[i]) == *item_id((*list)[j])) return false;
    return true;
  }
  std::vector<std::string_view> ids;
  ids.reserve(list->size());
  for (const Value& item : *list) ids.push_back(*item_id(item));
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

bool is_order_key(BytesView key) {
  return !key.empty() && key.size() <= kOrderKeyBytesMax && key.back() != '\0';
}

Bytes order_between(BytesView low, BytesView high) {
  Bytes key;
  bool open = high.empty();  // Also as soon as the key is below `high` whatever follows.
  for (std::size_t i = 0;; ++i) {
    int from = i < low.size() ? static_cast<unsigned char>(low[i]) : 0;
    int to = open ? 256 : i < high.size() ? static_cast<unsigned char>(high[i]) : 0;
    if (to - from >= 2) {
      key.push_back(static_cast<char>(from + (to - from) / 2));
      return key;
    }
    key.push_back(static_cast<char>(from));
    if (to != from) open = true;
  }
}

std::vector<Bytes> arrange(std::span<const Bytes* const> had) {
  std::vector<bool> keeps = longest_ascending(had);
  std::vector<Bytes> keys(had.size());
  for (std::size_t i = 0; i < had.size(); ++i)
    if (keeps[i]) keys[i] = *had[i];
  for (std::size_t begin = 0; begin < had.size();) {
    if (keeps[begin]) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < had.size() && !keeps[end]) ++end;
    fill(std::span(keys).subspan(begin, end - begin), begin == 0 ? BytesView() : keys[begin - 1],
         end == had.size() ? BytesView() : keys[end]);
    begin = end;
  }
  if (std::ranges::any_of(keys, [](const Bytes& key) { return key.size() > kOrderKeyBytesMax; })) fill(keys, {}, {});
  return keys;
}

}  // namespace perdure::actor
