#include "cli/work/settlements.h"

#include <gtest/gtest.h>

namespace perdure::cli {
namespace {

using Kind = Settlement::Kind;

TEST(CliSettlements, WhatEndsTogetherIsOneCall) {
  Settlements waiting;
  waiting.add({Kind::kFail, "b", "t2", {{"error", "exit code 3"}}});
  waiting.add({Kind::kComplete, "a", "t1", {{"result", 7}}});
  waiting.add({Kind::kComplete, "c", "t3"});
  waiting.add({Kind::kExtend, "d", "t4", {{"lock", "30s"}}});
  waiting.add({Kind::kRelease, "e", "t5"});
  SettleBatch batch = waiting.take();
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(batch.body, R"({"complete":[{"id":"a","result":7,"token":"t1"},{"id":"c","token":"t3"}],)"
                        R"("fail":[{"error":"exit code 3","id":"b","token":"t2"}],)"
                        R"("extend":[{"id":"d","lock":"30s","token":"t4"}],"release":[{"id":"e","token":"t5"}]})");
  EXPECT_FALSE(batch.idempotency_key.empty());
}

TEST(CliSettlements, ACallNamesAClaimOnce) {
  Settlements waiting;
  waiting.add({Kind::kExtend, "a", "t1", {{"lock", "30s"}}});
  waiting.add({Kind::kExtend, "b", "t2", {{"lock", "30s"}}});
  waiting.add({Kind::kExtend, "b", "t2", {{"lock", "31s"}}});
  waiting.add({Kind::kComplete, "a", "t1"});
  EXPECT_EQ(waiting.take().body,
            R"({"complete":[{"id":"a","token":"t1"}],"extend":[{"id":"b","lock":"31s","token":"t2"}]})");
}

TEST(CliSettlements, ACallIsBounded) {
  Settlements waiting;
  for (int i = 0; i < 1500; ++i) waiting.add({Kind::kComplete, "e", "t"});
  EXPECT_EQ(waiting.take().items.size(), Settlements::kItemsMax);
  EXPECT_EQ(waiting.take().items.size(), 500u);
  for (int i = 0; i < 5; ++i) waiting.add({Kind::kComplete, "e", "t", {{"result", std::string(1'500'000, 'x')}}});
  EXPECT_EQ(waiting.take().items.size(), 2u);
  waiting = {};
  waiting.add({Kind::kComplete, "e", "t", {{"result", std::string(5'000'000, 'x')}}});
  EXPECT_EQ(waiting.take().items.size(), 1u) << "one is always sent";
}

TEST(CliSettlements, FindsTheRefusedOnesInEitherFormOfTheAnswer) {
  Settlements waiting;
  waiting.add({Kind::kComplete, "a", "t1"});
  waiting.add({Kind::kFail, "b", "t2"});
  waiting.add({Kind::kComplete, "c", "t3"});
  SettleBatch batch = waiting.take();
  for (std::string answer :
       {R"({"complete":[{"id":"a"},{"error":{"code":"stale_token","message":"lost"}}],"fail":[{}]})",
        R"({"items":[{},{"id":"c","error":{"code":"stale_token","message":"lost"}},{"error":null}]})"}) {
    auto found = refused(batch, *Value::from_json(answer));
    ASSERT_EQ(found.size(), 1u) << answer;
    EXPECT_EQ(found[0].item.id, "c");
    EXPECT_EQ(found[0].failure.code, "stale_token");
    EXPECT_EQ(found[0].failure.message, "lost");
  }
  EXPECT_TRUE(refused(batch, *Value::from_json("{}")).empty());
}

}  // namespace
}  // namespace perdure::cli
