// A process that serves nothing, and what it leaves in the store.
#include "actor_fixture.h"

namespace perdure::e2e {
namespace {

class ActorQueue : public ActorProcesses {};

/// DGEN-11, DGEN-14, DGEN-15, DGEN-17, DGEN-23, DGEN-30.
TEST_F(ActorQueue, LargeRepliesComeToAProcessThatServesNothing) {
  constexpr std::uint64_t kBytes = 250'000;
  ActorWorker worker;
  open(worker);
  for (int i = 0; i < 20; ++i) {
    auto reply = actors_.of<Ledger>(ledger_name(static_cast<std::uint64_t>(i) % 3)).call(Big{kBytes});
    ASSERT_TRUE(reply) << to_string(reply.error());
    EXPECT_TRUE(*reply == std::string(kBytes, 'b')) << reply->size() << " bytes";
  }
  EXPECT_TRUE(wait_until_nobody_waits(worker));
  EXPECT_TRUE(wait_until_finished(worker)) << unfinished().front();
}

/// DGEN-24, DGEN-21, DGEN-27, DGEN-28, DGEN-B7: also those whose time is over before their message has arrived.
TEST_F(ActorQueue, CallsThatTimeOutLeaveNothingAndAreHandledAllTheSame) {
  constexpr std::uint64_t kCalls = 1000, kTimedOutLedgers = 10;
  std::vector<std::future<Answered>> calls;
  for (std::uint64_t i = 0; i < kCalls; ++i)
    calls.push_back(
        call(ledger_name(i % kTimedOutLedgers), Record{std::to_string(i)}, Milliseconds(i % 2 == 0 ? 0 : 300)));
  for (auto& one : calls) {
    Answered answered = one.get();
    ASSERT_FALSE(answered.result) << "nobody serves it";
    EXPECT_EQ(answered.result.error().code, ErrorCode::kReplyTimeout) << to_string(answered.result.error());
  }
  ActorWorker worker;
  EXPECT_TRUE(wait_until_nobody_waits(worker));
  EXPECT_EQ(unfinished().size(), 2 * kTimedOutLedgers) << "a mailbox and its mark each";

  open(worker);
  EXPECT_TRUE(wait_until_finished(worker)) << unfinished().front();
  EXPECT_EQ(waiting(), 0u) << "replies to nobody";
  std::size_t recorded = 0;
  for (std::uint64_t i = 0; i < kTimedOutLedgers; ++i)
    for (auto& [id, count] : counts(ledger_name(i))) recorded += count == 1 ? 1 : 0;
  EXPECT_EQ(recorded, kCalls);
}

}  // namespace
}  // namespace perdure::e2e
