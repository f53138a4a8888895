// Properties of random sequences of states: DGEN-U17, DGEN-B11.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "actor/state_codec.h"
#include "actor/state_model.h"
#include "value/value_generators.h"

namespace perdure::actor {
namespace {

/// Another value that has much in common with `value`: one place in it is changed, at any depth.
Value nearly(const Value& value, int depth) {
  if (random::pick(5) == 0) return random::any_value(depth);
  Value changed = value;
  if (auto* map = changed.as_map(); map != nullptr && !map->empty()) {
    auto entry = std::next(map->begin(), static_cast<std::ptrdiff_t>(random::pick(map->size())));
    if (random::pick(5) == 0) {
      map->erase(entry);
    } else {
      entry->second = nearly(entry->second, depth - 1);
    }
  } else if (auto* list = changed.as_list(); list != nullptr && !list->empty()) {
    auto any_place = [&] { return random::pick(list->size()); };
    switch (random::pick(4)) {
      case 0:
        std::swap((*list)[any_place()], (*list)[any_place()]);
        break;
      case 1:
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(any_place()));
        break;
      case 2:
        list->insert(list->begin() + static_cast<std::ptrdiff_t>(any_place()),
                     Value::Map{{"id", *rc::gen::element<std::string>("x", "y", "new", "newer")}});
        break;
      default:
        Value& item = (*list)[any_place()];
        item = nearly(item, depth - 1);
    }
  }
  return changed;
}

/// The keys of the rows, and the values of those that hold no order key, as far as one can tell from outside.
std::vector<Bytes> shape(const StateModel& model) {
  std::vector<Bytes> all;
  for (const Row& row : model.rows()) {
    all.push_back(row.key);
    bool marker = row.value.ends_with('\x10');
    all.push_back(marker ? "map" : row.value);
  }
  return all;
}

TEST(StateCodecRandom, ChangesGiveTheRowsOfAFreshWriteWhateverWasThere) {
  EXPECT_TRUE(rc::check([] {
    StateModel model;
    Value value = random::any_value(4);
    for (std::size_t i = 1 + random::pick(7); i > 0; --i) {
      auto made = model.put(value);
      StateModel fresh;
      fresh.put(value);
      RC_ASSERT(shape(model) == shape(fresh));
      auto read = model.read();
      RC_ASSERT(read.has_value());
      RC_ASSERT(read->value == value);
      RC_ASSERT(plain(read->orders) == plain(made.after.orders));
      RC_ASSERT(model.put(value).empty());
      value = nearly(value, 3);
    }
  }));
}

TEST(StateCodecRandom, OnlyRowsThatDifferAreWritten) {
  EXPECT_TRUE(rc::check([] {
    StateModel model;
    Value value = random::any_value(4);
    model.put(value);
    std::map<Bytes, Bytes> before;
    for (const Row& row : model.rows()) before[row.key] = row.value;
    auto made = model.put(nearly(value, 3));
    std::set<Bytes> written;
    for (const RowWrite& row : made.sets) {
      RC_ASSERT(written.insert(row.key).second);
      bool rewritten = false;
      for (const KeyRange& range : made.clear_ranges) rewritten = rewritten || range.contains(row.key);
      auto had = before.find(row.key);
      if (!rewritten) RC_ASSERT(had == before.end() || had->second != row.value);
    }
    for (const Bytes& key : made.clears) RC_ASSERT(written.insert(key).second);
  }));
}

}  // namespace
}  // namespace perdure::actor
