// DGEN-U17: the state codec. DGEN-B11: reordered lists round-trip.
#include "actor/state_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "actor/list_order.h"
#include "actor/state_model.h"
#include "perdure/tuple.h"

namespace perdure::actor {
namespace {

using List = Value::List;
using Map = Value::Map;

Map map_of(int entries) {
  Map map;
  for (int i = 0; i < entries; ++i) map["k" + std::to_string(i)] = i;
  return map;
}

List items_of(int count) {
  List list;
  for (int i = 0; i < count; ++i) list.push_back(Map{{"id", "i" + std::to_string(i)}, {"n", i}});
  return list;
}

template <class... Path>
Bytes key(const Path&... path) {
  return tuple::pack_onto(StateModel::prefix(), path...);
}

TEST(StateCodec, MapIsAMarkerAndOneRowForEachEntry) {
  StateModel model;
  model.put(Map{{"a", 1}, {"m", Map{{"x", List{1, 2}}}}, {"none", Map{}}});
  EXPECT_EQ(model.keys(), (std::vector{key(), key("a"), key("m"), key("m", "x"), key("none")}));
  EXPECT_EQ(model.rows()[0].value, "\x10");
  EXPECT_EQ(model.rows()[1].value, Value(1).encode());
  EXPECT_EQ(model.rows()[3].value, Value(List{1, 2}).encode());
}

TEST(StateCodec, ListOfItemsIsAMarkerAndOneNodeForEachItem) {
  StateModel model;
  model.put(List{Map{{"id", "b"}, {"n", 1}}, Map{{"id", "a"}}});
  EXPECT_EQ(model.keys(), (std::vector{key(), key("a"), key("b"), key("b", "n")}));
  EXPECT_EQ(model.rows()[0].value, "\x11");
  EXPECT_EQ(model.read()->value.to_json(), R"([{"id":"b","n":1},{"id":"a"}])");
}

TEST(StateCodec, RowsAreThoseOfTheDocumentedExample) {
  Bytes s = tuple::pack("s");
  auto made = changes(s, nullptr, Map{{"count", 7}, {"lines", List{Map{{"id", "x"}, {"n", 1}}}}});
  using namespace std::string_literals;
  EXPECT_EQ(made->sets, (std::vector<RowWrite>{{s, "\x10"},
                                               {tuple::pack("s", "count"), "\x03\x0e"},
                                               {tuple::pack("s", "lines"), "\x11"},
                                               {tuple::pack("s", "lines", "x"), "\x04\x80\x00\x00\x01\x10"s},
                                               {tuple::pack("s", "lines", "x", "n"), "\x03\x02"}}));
}

TEST(StateCodec, UnchangedStateWritesNothing) {
  Value value = Map{{"a", 1}, {"list", items_of(20)}, {"big", std::string(250'000, 'x')}, {"odd", List{1, Map{}}}};
  StateModel model;
  model.put(value);
  EXPECT_TRUE(model.put(value).empty());
  EXPECT_EQ(plain(model.read()->orders), plain(model.state().orders));
}

TEST(StateCodec, OneChangedEntryWritesOneRow) {
  StateModel model;
  Value value = map_of(100);
  model.put(value);
  value["k42"] = "new";
  auto made = model.put(value);
  EXPECT_EQ(made.sets, (std::vector<RowWrite>{{key("k42"), Value("new").encode()}}));
  EXPECT_TRUE(made.clears.empty() && made.clear_ranges.empty());
  EXPECT_EQ(model.read()->value, value);
}

TEST(StateCodec, OneChangedEntryDeepInsideWritesOneRow) {
  StateModel model;
  Value value = Map{{"l", List{Map{{"id", "x"}, {"m", Map{{"inner", items_of(50)}}}}}}};
  model.put(value);
  auto& inner = *value.find("l")->as_list()->at(0).find("m")->find("inner")->as_list();
  inner[7]["n"] = "new";
  auto made = model.put(value);
  EXPECT_EQ(made.sets, (std::vector<RowWrite>{{key("l", "x", "m", "inner", "i7", "n"), Value("new").encode()}}));
  EXPECT_TRUE(made.clears.empty() && made.clear_ranges.empty());
  EXPECT_EQ(model.read()->value, value);
}

TEST(StateCodec, RemovedEntriesAreCleared) {
  StateModel model;
  model.put(Map{{"a", 1}, {"m", Map{{"x", 1}, {"l", items_of(2)}}}, {"empty", Map{}}});
  auto made = model.put(Map{{"a", 1}});
  EXPECT_EQ(made.clears, std::vector{key("empty")});
  EXPECT_EQ(made.clear_ranges, std::vector{state_range(key("m"))});
  EXPECT_TRUE(made.sets.empty());
  EXPECT_TRUE(made.after.orders.empty());
  EXPECT_EQ(model.keys(), (std::vector{key(), key("a")}));
}

TEST(StateCodec, RawBytesAreOneRow) {
  StateModel model;
  model.put(Blob{"\x00\xff"});
  EXPECT_EQ(model.keys(), std::vector{key()});
  EXPECT_EQ(model.read()->value, Value(Blob{"\x00\xff"}));
}

TEST(StateCodec, LargeValuesAreChunksOfAHundredThousandBytes) {
  StateModel model;
  Value value = Map{{"big", std::string(250'000, 'x')}};
  model.put(value);
  EXPECT_EQ(model.keys(), (std::vector{key(), key("big"), key("big", 0), key("big", 1), key("big", 2)}));
  EXPECT_EQ(model.rows()[2].value.size(), kChunkBytes);
  EXPECT_EQ(model.read()->value, value);

  (*value.find("big")->as_text())[150'000] = 'y';
  auto made = model.put(value);
  ASSERT_EQ(made.sets.size(), 1u);
  EXPECT_EQ(made.sets[0].key, key("big", 1));
  EXPECT_EQ(model.read()->value, value);

  for (std::size_t size : {150'000, 99'990, 100'000, 350'000, 100'000, 10}) {
    value["big"] = std::string(size, 'z');
    model.put(value);
    EXPECT_EQ(model.read()->value, value) << size;
  }
  EXPECT_EQ(model.keys(), (std::vector{key(), key("big")}));
}

TEST(StateCodec, RowHoldsUpToAHundredThousandBytesAndNoMore) {
  StateModel model;
  model.put(std::string(kChunkBytes - 4, 'x'));  // With a tag and a length of three bytes.
  EXPECT_EQ(model.keys().size(), 1u);
  model.put(std::string(kChunkBytes - 3, 'x'));
  EXPECT_EQ(model.keys().size(), 3u);
  EXPECT_TRUE(model.read());
}

TEST(StateCodec, TypeChangesLeaveNoStrayRows) {
  std::vector<Value> values = {
      nullptr, 7,         "text",           std::string(250'000, 'x'), List{}, List{1, "x"}, items_of(3),
      Map{},   map_of(3), Map{{"id", "a"}}, Map{{"k1", items_of(2)}}};
  for (const Value& before : values) {
    for (const Value& after : values) {
      StateModel at_root;
      at_root.put(before);
      at_root.put(after);
      StateModel fresh;
      fresh.put(after);
      EXPECT_EQ(at_root.rows(), fresh.rows())
          << before.to_json().substr(0, 50) << " to " << after.to_json().substr(0, 50);
      // And inside of an item of a list, with a sibling that nothing happens to.
      auto in_item = [](const Value& value) {
        return Value(List{Map{{"id", "a"}, {"v", value}, {"w", 1}}, Map{{"id", "b"}}});
      };
      StateModel inside;
      inside.put(in_item(before));
      inside.put(in_item(after));
      EXPECT_EQ(inside.read()->value, in_item(after));
      EXPECT_EQ(plain(inside.read()->orders), plain(inside.state().orders));
    }
  }
}

TEST(StateCodec, MapWithKeysTooLongForRowsStaysWholeInItsParentsPlace) {
  StateModel model;
  std::string longest(kChunkBytes, 'k');
  longest.resize(480 - 3 - 2 - StateModel::prefix().size());
  Value value = Map{{longest, 1}};
  model.put(value);
  EXPECT_EQ(model.keys(), (std::vector{key(), key(longest)}));

  value[longest] = std::string(250'000, 'x');  // The keys of its chunks still fit.
  model.put(value);
  EXPECT_LE(std::ranges::max(model.keys(), {}, &Bytes::size).size(), 480u);

  Value longer = Map{{longest + "k", 1}, {"short", 2}};
  model.put(longer);
  EXPECT_EQ(model.keys(), std::vector{key()});
  EXPECT_EQ(model.read()->value, longer);

  Value inside = Map{{"m", Map{{longest, 1}}}, {"l", List{Map{{"id", longest}, {"n", 1}}, Map{{"id", "x"}}}}};
  model.put(inside);
  EXPECT_EQ(model.keys(), (std::vector{key(), key("l"), key("m")}));
  EXPECT_EQ(model.read()->value, inside);
  EXPECT_TRUE(model.put(inside).empty());
}

TEST(StateCodec, ZeroBytesInNamesCountTwiceInTheirKeys) {
  StateModel model;
  Value value = Map{{std::string(240, '\0'), 1}};
  model.put(value);
  EXPECT_EQ(model.keys(), std::vector{key()});
  EXPECT_EQ(model.read()->value, value);
}

TEST(StateCodec, ItemWithKeysTooLongForRowsKeepsItsPlaceInTheList) {
  StateModel model;
  List list = items_of(3);
  list[1][std::string(470, 'k')] = 1;
  model.put(list);
  EXPECT_EQ(model.read()->value, Value(list));
  std::swap(list[0], list[1]);
  EXPECT_EQ(model.put(list).sets.size(), 1u);
  EXPECT_EQ(model.read()->value, Value(list));
}

TEST(StateCodec, ReorderedListsRoundTrip) {
  StateModel model;
  List list = items_of(50);
  model.put(list);

  std::ranges::reverse(list);
  EXPECT_EQ(model.put(list).sets.size(), 49u);  // One stays; without the entries "n", which are rows of their own.
  EXPECT_EQ(model.read()->value, Value(list));

  std::ranges::rotate(list, list.begin() + 1);
  EXPECT_EQ(model.put(list).sets.size(), 1u);
  EXPECT_EQ(model.read()->value, Value(list));

  list.insert(list.begin() + 20, Map{{"id", "between"}});
  EXPECT_EQ(model.put(list).sets.size(), 1u);
  EXPECT_EQ(model.read()->value, Value(list));

  std::swap(list[3], list[30]);
  list.erase(list.begin() + 10);
  auto made = model.put(list);
  EXPECT_EQ(made.sets.size(), 2u);
  EXPECT_EQ(made.clear_ranges.size(), 1u);
  EXPECT_EQ(model.read()->value, Value(list));
}

TEST(StateCodec, InsertingAtOnePlaceForEverGoesOn) {
  StateModel model;
  List list = items_of(2);
  for (int i = 0; i < 700; ++i) {
    model.put(list);
    list.insert(list.begin() + 1, Map{{"id", "x" + std::to_string(i)}});
  }
  model.put(list);
  EXPECT_EQ(model.read()->value, Value(list));
  for (const Bytes& order : *model.state().orders.at("")) EXPECT_LE(order.size(), kOrderKeyBytesMax);
}

TEST(StateCodec, StateOverTheLimitsIsTooLargeWithItsFigures) {
  StateModel model;
  model.put(map_of(1));
  auto rows = model.try_put(map_of(8'000));
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(rows.error().message.find(" in 8001 rows, and may take 8388608 bytes in 8000 rows"), std::string::npos)
      << rows.error().message;
  EXPECT_TRUE(model.try_put(map_of(7'999)));
  auto bytes = model.try_put(std::string(kStateBytesMax, 'x'));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kTooLarge);
}

TEST(StateCodec, StateThatCouldNotBeReadAgainIsRefused) {
  StateModel model;
  auto text = model.try_put(Map{{"a", "\xff"}});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text.error().message, "the state.a: text that is not UTF-8 at byte 0");
  EXPECT_FALSE(model.try_put(Map{{"\xff", 1}}));
  Value deep;
  for (std::size_t i = 0; i <= Value::kMaxDepth; ++i) deep = Map{{"k", deep}};
  EXPECT_FALSE(model.try_put(deep));
  EXPECT_TRUE(model.try_put(*deep.find("k")));
}

}  // namespace
}  // namespace perdure::actor
