#include <gtest/gtest.h>

#include <random>

#include "sim/bank.h"
#include "sim/ring.h"

namespace perdure::sim {
namespace {

auto reader(const std::vector<RingNode>& ring) {
  return [&ring](RingNode node) -> Result<RingNode> { return ring[node]; };
}

TEST(Ring, AnyNumberOfStepsLeavesARing) {
  std::mt19937_64 random(1);
  for (RingNode n : {3u, 4u, 5u, 64u}) {
    std::vector<RingNode> ring = ring_initial(n);
    const std::vector<RingNode> initial = ring;
    bool changed = false;
    for (int i = 0; i < 200; ++i) {
      auto writes = ring_step(ring_draw(n, random()), n, reader(ring));
      ASSERT_TRUE(writes) << writes.error().message;
      for (const RingWrite& write : *writes) ring[write.node] = write.successor;
      ASSERT_TRUE(check_ring(ring));
      changed |= ring != initial;
    }
    EXPECT_TRUE(changed);
  }
}

TEST(Ring, StepSwapsTheTwoNodesAfterIt) {
  auto writes = ring_step(1, 6, reader(ring_initial(6)));
  ASSERT_TRUE(writes);
  EXPECT_EQ(*writes, (std::array{RingWrite{1, 3}, RingWrite{3, 2}, RingWrite{2, 4}}));
}

TEST(Ring, LosingAnyOneWriteOfAStepBreaksTheRing) {
  const std::vector<RingNode> ring = ring_initial(6);
  auto writes = *ring_step(0, 6, reader(ring));
  for (std::size_t lost = 0; lost < writes.size(); ++lost) {
    std::vector<RingNode> broken = ring;
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (i != lost) broken[writes[i].node] = writes[i].successor;
    EXPECT_FALSE(check_ring(broken)) << lost;
  }
}

TEST(Ring, TwoOverlappingStepsFromTheSameStateBreakTheRing) {
  std::vector<RingNode> ring = ring_initial(6);
  auto first = *ring_step(0, 6, reader(ring)), second = *ring_step(1, 6, reader(ring));
  for (const RingWrite& write : first) ring[write.node] = write.successor;
  for (const RingWrite& write : second) ring[write.node] = write.successor;
  EXPECT_FALSE(check_ring(ring));
}

TEST(Ring, CheckSaysWhereItIsBroken) {
  auto message = [](std::vector<RingNode> ring) { return check_ring(ring).error().message; };
  EXPECT_EQ(message({1, 0, 3, 2}), "from 0, node 0 comes again after 2 of 4 nodes");
  EXPECT_EQ(message({1, 2, 1}), "after all nodes, the last points to 1 and not to 0");
  EXPECT_EQ(message({1, 7, 0}), "node 1 points to 7, outside of a ring of 3");
}

TEST(Ring, StepPassesErrorsOnAndRefusesABrokenRing) {
  auto unavailable = [](RingNode) -> Result<RingNode> { return fail(ErrorCode::kUnavailable, "gone"); };
  EXPECT_EQ(ring_step(0, 4, unavailable).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(ring_step(0, 4, reader({1, 0, 3, 2})).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ring_step(0, 4, reader({9, 2, 3, 0})).error().code, ErrorCode::kCorrupt);
}

TEST(Bank, AnyNumberOfTransfersKeepsTheTotalAndNoBalanceIsNegative) {
  std::mt19937_64 random(2);
  std::vector<Money> balances = bank_initial(7, 100);
  int refused = 0, made = 0;
  for (int i = 0; i < 5000; ++i) {
    Transfer transfer = bank_draw({.accounts = 7, .amount_max = 40}, random());
    ASSERT_NE(transfer.from, transfer.to);
    auto after = bank_apply(transfer, {balances[transfer.from], balances[transfer.to]});
    ++(after ? made : refused);
    if (!after) continue;
    balances[transfer.from] = after->from;
    balances[transfer.to] = after->to;
    ASSERT_TRUE(check_bank(balances, 100));
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(made, 100);
}

TEST(Bank, DrawReachesEveryPairAndAmount) {
  std::vector<int> seen(3 * 3 * 3);
  for (std::uint64_t random = 0; random < 3 * 2 * 2; ++random) {
    Transfer transfer = bank_draw({.accounts = 3, .amount_max = 2}, random);
    ++seen[(transfer.from * 3 + transfer.to) * 3 + static_cast<std::size_t>(transfer.amount)];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 12);
}

TEST(Bank, TransferOfMoreThanThereIsWritesNothing) {
  EXPECT_EQ(bank_apply({0, 1, 5}, {4, 0}), std::nullopt);
  EXPECT_EQ(bank_apply({0, 1, 5}, {5, 0}), (Balances{0, 5}));
  EXPECT_EQ(bank_apply({0, 0, 5}, {5, 5}), std::nullopt);
}

TEST(Bank, CheckSaysWhatIsWrong) {
  auto message = [](std::vector<Money> balances) { return check_bank(balances, 10).error().message; };
  EXPECT_TRUE(check_bank(std::vector<Money>{4, 6}, 10));
  EXPECT_EQ(message({4, 5}), "the accounts hold 9 instead of 10: lost 1");
  EXPECT_EQ(message({4, 7}), "the accounts hold 11 instead of 10: made 1");
  EXPECT_EQ(message({-1, 11}), "account 0 holds -1");
}

}  // namespace
}  // namespace perdure::sim
