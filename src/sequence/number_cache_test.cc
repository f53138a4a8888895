#include "sequence/number_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

namespace perdure::sequence {
namespace {

SeqKey key(std::uint64_t workspace) {
  return {WorkspaceId{workspace}, SeqId{1}};
}

TEST(NumberCache, TheOneNotUsedForLongestGoesFirst) {
  NumberCache cache(2);
  cache.put(key(1), 10);
  cache.put(key(2), 20);
  EXPECT_EQ(*cache.find(key(1)), 10u);
  cache.put(key(3), 30);
  EXPECT_EQ(cache.find(key(2)), nullptr);
  EXPECT_EQ(*cache.find(key(1)), 10u);
  EXPECT_EQ(*cache.find(key(3)), 30u);
}

TEST(NumberCache, WithoutRoomItHasNothing) {
  NumberCache cache(0);
  cache.put(key(1), 10);
  EXPECT_EQ(cache.find(key(1)), nullptr);
}

TEST(NumberCache, IsLikeAListThatIsSearched) {
  std::mt19937_64 random(7);
  for (std::size_t most : {1, 2, 3, 10}) {
    NumberCache cache(most);
    std::list<std::pair<SeqKey, Number>> model;
    for (int i = 0; i < 20'000; ++i) {
      SeqKey one{WorkspaceId{random() % 8}, SeqId{static_cast<std::uint16_t>(random() % 3)}};
      auto found = std::ranges::find(model, one, &std::pair<SeqKey, Number>::first);
      if (random() % 2 == 0) {
        Number* number = cache.find(one);
        ASSERT_EQ(number != nullptr, found != model.end());
        if (!number) continue;
        ASSERT_EQ(*number, found->second);
        model.splice(model.begin(), model, found);
      } else {
        Number number = random();
        cache.put(one, number);
        if (found != model.end()) model.erase(found);
        model.emplace_front(one, number);
        if (model.size() > most) model.pop_back();
      }
      if (random() % 5'000 == 0) {
        cache.clear();
        model.clear();
      }
      ASSERT_EQ(cache.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace perdure::sequence
