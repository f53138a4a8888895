#include "actor/list_order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "value/value_generators.h"

namespace perdure::actor {
namespace {

using List = Value::List;
using Map = Value::Map;

std::vector<const Bytes*> pointers(const std::vector<Bytes>& keys) {
  std::vector<const Bytes*> all;
  for (const Bytes& key : keys) all.push_back(&key);
  return all;
}

bool ascends(const std::vector<Bytes>& keys) {
  return std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end() &&
         std::ranges::all_of(keys, is_order_key);
}

/// How many items have another key than they had.
std::size_t changed(const std::vector<const Bytes*>& had, const std::vector<Bytes>& has) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < has.size(); ++i) count += had[i] == nullptr || *had[i] != has[i];
  return count;
}

TEST(ListOrder, ListsOfMapsWithDistinctTextIdsHaveItems) {
  EXPECT_TRUE(is_item_list(List{}));
  EXPECT_TRUE(is_item_list(List{Map{{"id", "a"}}, Map{{"id", "b"}, {"n", 1}}}));
  EXPECT_FALSE(is_item_list(List{Map{{"id", "a"}}, Map{{"id", "a"}}}));
  EXPECT_FALSE(is_item_list(List{Map{{"id", 1}}}));
  EXPECT_FALSE(is_item_list(List{Map{{"n", 1}}}));
  EXPECT_FALSE(is_item_list(List{1}));
  EXPECT_FALSE(is_item_list(Map{}));
  List many;
  for (int i = 0; i < 20; ++i) many.push_back(Map{{"id", std::to_string(i)}});
  EXPECT_TRUE(is_item_list(many));
  many.push_back(Map{{"id", "7"}});
  EXPECT_FALSE(is_item_list(many));
}

TEST(ListOrder, ThereIsAlwaysAKeyBetweenTwo) {
  EXPECT_TRUE(rc::check([] {
    auto digits = rc::gen::container<Bytes>(rc::gen::element('\0', '\1', '\2', '\x7f', '\xfe', '\xff'));
    Bytes low = *digits;
    Bytes high = *digits;
    if (!low.empty() && low.back() == '\0') low.back() = '\1';
    if (!high.empty() && high.back() == '\0') high.back() = '\1';
    if (!high.empty() && high < low) std::swap(low, high);
    RC_PRE(high.empty() || low != high);
    Bytes key = order_between(low, high);
    RC_ASSERT(low < key);
    RC_ASSERT(high.empty() || key < high);
    RC_ASSERT(key.back() != '\0');
  }));
}

TEST(ListOrder, MovingOneItemChangesOneKey) {
  auto keys = arrange(std::vector<const Bytes*>(100));
  EXPECT_TRUE(ascends(keys));
  for (auto [from, to] : {std::pair{0, 99}, {99, 0}, {10, 50}, {50, 10}, {50, 51}}) {
    auto had = pointers(keys);
    const Bytes* moved = had[from];
    had.erase(had.begin() + from);
    had.insert(had.begin() + to, moved);
    auto has = arrange(had);
    EXPECT_TRUE(ascends(has));
    EXPECT_EQ(changed(had, has), 1u) << from << " to " << to;
  }
}

TEST(ListOrder, AnyMixtureOfKeptAndNewItemsAscendsAndKeepsTheLongestRun) {
  EXPECT_TRUE(rc::check([] {
    auto keys = arrange(std::vector<const Bytes*>(random::pick(12)));
    std::vector<const Bytes*> had;
    for (const Bytes& key : keys) {
      if (random::pick(4) == 0) had.push_back(nullptr);
      had.insert(had.begin() + static_cast<std::ptrdiff_t>(random::pick(had.size() + 1)), &key);
    }
    auto has = arrange(had);
    RC_ASSERT(ascends(has));
    // The longest ascending run, the slow way.
    std::vector<std::size_t> run(had.size(), 0);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < had.size(); ++i) {
      if (had[i] == nullptr) continue;
      for (std::size_t j = 0; j < i; ++j)
        if (had[j] != nullptr && *had[j] < *had[i]) run[i] = std::max(run[i], run[j]);
      longest = std::max(longest, ++run[i]);
    }
    RC_ASSERT(changed(had, has) == had.size() - longest);
  }));
}

TEST(ListOrder, GrowingAtTheEndsKeepsKeysShort) {
  auto keys = arrange(std::vector<const Bytes*>(1));
  for (int i = 0; i < 2000; ++i) {
    auto had = pointers(keys);
    had.insert(i % 2 == 0 ? had.begin() : had.end(), nullptr);
    keys = arrange(had);
  }
  EXPECT_TRUE(ascends(keys));
  EXPECT_EQ(std::ranges::max(keys, {}, &Bytes::size).size(), 4u);
}

TEST(ListOrder, KeysThatWouldGrowTooLongAreAllMadeNew) {
  auto keys = arrange(std::vector<const Bytes*>(2));
  std::size_t longest = 0;
  bool renewed = false;
  for (int i = 0; i < 1000; ++i) {
    auto had = pointers(keys);
    had.insert(had.begin() + 1, nullptr);
    auto has = arrange(had);
    ASSERT_TRUE(ascends(has)) << i;
    renewed = renewed || changed(had, has) > 1;
    keys = std::move(has);
    for (const Bytes& key : keys) longest = std::max(longest, key.size());
  }
  EXPECT_TRUE(renewed);
  EXPECT_LE(longest, kOrderKeyBytesMax);
}

}  // namespace
}  // namespace perdure::actor
