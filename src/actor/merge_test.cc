// DGEN-B4: what priority messages changed while a locked handler ran is not lost, and not overwritten in silence.
#include "actor/merge.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "value/value_generators.h"

namespace perdure::actor {
namespace {

using List = Value::List;
using Map = Value::Map;

std::string merged(const Value& base, const Value& mine, const Value& theirs) {
  auto value = merge(base, mine, theirs);
  return value ? value->to_json() : to_string(value.error());
}

/// A list of items with these ids.
Value items(const std::string& ids) {
  List list;
  for (char id : ids) list.push_back(Map{{"id", std::string(1, id)}});
  return list;
}

/// The ids of the merged list.
std::string merged_ids(const std::string& base, const std::string& mine, const std::string& theirs) {
  auto value = merge(items(base), items(mine), items(theirs));
  if (!value) return value.error().message;
  std::string ids;
  for (const Value& item : *value->as_list()) ids += *item.find("id")->as_text();
  return ids;
}

TEST(Merge, DifferentEntriesOfAMapAreBothTaken) {
  Value base = Map{{"a", 1}, {"b", 1}, {"c", 1}, {"m", Map{{"x", 1}}}};
  Value mine = Map{{"a", 2}, {"b", 1}, {"m", Map{{"x", 2}}}};
  Value theirs = Map{{"a", 1}, {"b", 3}, {"c", 1}, {"m", Map{{"x", 1}, {"y", 2}}}};
  EXPECT_EQ(merged(base, mine, theirs), R"({"a":2,"b":3,"m":{"x":2,"y":2}})");
}

TEST(Merge, SameLeafChangedDifferentlyIsAConflictWithItsPath) {
  Value base = Map{{"m", Map{{"x", 1}}}};
  auto value = merge(base, Map{{"m", Map{{"x", 2}}}}, Map{{"m", Map{{"x", "z"}}}});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kConflict);
  EXPECT_EQ(value.error().message,
            "the state.m.x was changed on both sides: here it is now integer 2, and meanwhile it became text \"z\"; "
            "read the state again and repeat the change");
}

TEST(Merge, RemovingWhatTheOtherSideChangedIsAConflict) {
  EXPECT_TRUE(merged(Map{{"a", 1}}, Map{}, Map{{"a", 2}}).starts_with("conflict: the state.a was changed"));
  EXPECT_TRUE(merged(Map{{"a", 1}}, Map{{"a", 2}}, Map{}).starts_with("conflict: the state.a was changed"));
  EXPECT_EQ(merged(Map{{"a", 1}}, Map{}, Map{}), "{}");
}

TEST(Merge, MapsAddedOnBothSidesAreMergedInside) {
  EXPECT_EQ(merged(Map{}, Map{{"m", Map{{"a", 1}}}}, Map{{"m", Map{{"b", 2}}}}), R"({"m":{"a":1,"b":2}})");
  EXPECT_TRUE(
      merged(Map{{"m", 1}}, Map{{"m", Map{{"a", 1}}}}, Map{{"m", Map{}}}).starts_with("conflict: the state.m "));
}

TEST(Merge, ItemsAreMergedByTheirIds) {
  auto list = [](int a, int b) { return Value(List{Map{{"id", "a"}, {"n", a}}, Map{{"id", "b"}, {"n", b}}}); };
  EXPECT_EQ(merged(list(1, 1), list(2, 1), list(1, 3)), list(2, 3).to_json());
  EXPECT_TRUE(merged(list(1, 1), list(1, 2), list(1, 3)).starts_with("conflict: the state[id b].n was changed"));
  EXPECT_TRUE(merged(list(1, 1), List{}, list(1, 3)).starts_with("conflict: the state[id b] was changed"));
}

TEST(Merge, OtherListsAreLeaves) {
  EXPECT_TRUE(merged(List{1}, List{1, 2}, List{0, 1}).starts_with("conflict: the state was changed"));
  EXPECT_EQ(merged(List{1}, List{2}, List{2}), "[2]");
}

TEST(Merge, OrderIsThatOfTheSideThatReordered) {
  EXPECT_EQ(merged_ids("abc", "cba", "abcd"), "cdba");
  EXPECT_EQ(merged_ids("abc", "abcd", "cba"), "cdba");
  EXPECT_EQ(merged_ids("abc", "cba", "ac"), "ca");
  EXPECT_EQ(merged_ids("abc", "xabc", "abyc"), "xabyc");
  EXPECT_EQ(merged_ids("abc", "cab", "bcad"), "cabd");
  EXPECT_EQ(merged_ids("abc", "cba", "cbxa"), "cbxa");
  EXPECT_EQ(merged_ids("", "ab", "cd"), "abcd");
}

TEST(Merge, OneUnchangedSideGivesTheOther) {
  EXPECT_TRUE(rc::check([] {
    Value base = random::any_value(3);
    Value other = random::any_value(3);
    RC_ASSERT(merge(base, base, other).value() == other);
    RC_ASSERT(merge(base, other, base).value() == other);
    RC_ASSERT(merge(base, other, other).value() == other);
  }));
}

/// Three maps with some entries in common.
struct Sides {
  Value base = Map{};
  Value mine = Map{};
  Value theirs = Map{};
};

Sides any_sides() {
  Sides sides;
  for (const char* key : {"a", "b", "c"}) {
    for (Value* side : {&sides.base, &sides.mine, &sides.theirs})
      if (std::size_t leaf = random::pick(3); leaf > 0) (*side)[key] = leaf;
  }
  return sides;
}

TEST(Merge, ConflictsExactlyIfTheSameLeafDiffers) {
  EXPECT_TRUE(rc::check([] {
    Sides sides = any_sides();
    bool conflicts = false;
    Value expected = Map{};
    for (const char* key : {"a", "b", "c"}) {
      auto at = [&](const Value& side) { return side.find(key) == nullptr ? Value() : *side.find(key); };
      Value base = at(sides.base);
      Value mine = at(sides.mine);
      Value theirs = at(sides.theirs);
      conflicts = conflicts || (mine != base && theirs != base && mine != theirs);
      Value leaf = mine == base ? theirs : mine;
      if (!leaf.is_null()) expected[key] = leaf;
    }
    auto value = merge(sides.base, sides.mine, sides.theirs);
    RC_ASSERT(value.has_value() == !conflicts);
    RC_ASSERT(conflicts || *value == expected);
  }));
}

TEST(Merge, SidesMayBeSwappedButForTheOrderOfItems) {
  EXPECT_TRUE(rc::check([] {
    Value base = random::any_value(3);
    Value mine = random::any_value(3);
    Value theirs = random::any_value(3);
    auto one = merge(base, mine, theirs);
    auto other = merge(base, theirs, mine);
    RC_ASSERT(one.has_value() == other.has_value());
    if (one) RC_ASSERT(one->encoded_size() == other->encoded_size());
  }));
}

}  // namespace
}  // namespace perdure::actor
