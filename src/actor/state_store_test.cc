// The state codec on a real store: DGEN-U17.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "actor/state_codec.h"
#include "perdure/store.h"
#include "perdure/tuple.h"
#include "store/store_test_util.h"

namespace perdure::actor {
namespace {

using List = Value::List;
using Map = Value::Map;

TEST(StateCodecStore, WhatIsAppliedInOneTransactionIsReadInTheNext) {
  Store store = fresh_store();
  Bytes prefix = tuple::pack("actor", 7);
  List items;
  for (int i = 0; i < 20; ++i) items.push_back(Map{{"id", std::to_string(i)}, {"n", i}});
  List turned(items.rbegin(), items.rend());
  // A map, a list, large text and a map again under one name, so that sets follow clears of a range they lie in.
  std::vector<Value> states = {Map{{"a", 1}, {"v", Map{{"x", 1}, {"y", 2}}}},
                               Map{{"a", 1}, {"v", items}},
                               Map{{"a", 1}, {"v", turned}},
                               Map{{"v", std::string(250'000, 'x')}},
                               Map{{"v", Map{{"x", Map{{"y", 3}}}}}},
                               Blob{"raw"}};
  for (const Value& state : states) {
    auto put = store.transact([&](Transaction& txn) -> Result<void> {
      auto before = read_state(prefix, txn.get_range(state_range(prefix)));
      if (!before && before.error().code != ErrorCode::kNotFound) return std::unexpected(before.error());
      auto made = changes(prefix, before ? &*before : nullptr, state);
      if (!made) return std::unexpected(made.error());
      apply(txn, *made);
      return {};
    });
    ASSERT_TRUE(put) << to_string(put.error());
    auto read = store.transact([&](Transaction& txn) -> Result<Value> {
      auto stored = read_state(prefix, txn.get_range(state_range(prefix)));
      if (!stored) return std::unexpected(stored.error());
      return std::move(stored->value);
    });
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(*read, state);
  }
}

}  // namespace
}  // namespace perdure::actor
