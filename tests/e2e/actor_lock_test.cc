// Nodes that die or sleep with the lock of an actor. DGEN-B1: the lock goes with its holder.
#include "actor_fixture.h"

namespace perdure::e2e {
namespace {

class ActorLock : public ActorProcesses {
 protected:
  static std::string code_of(const Answered& answered) {
    return answered.result ? "ok" : std::string(answered.result.error().name());
  }
};

/// DGEN-B1, DGEN-U11, DGEN-U12: those behind it wait for the lock, and for no longer.
TEST_F(ActorLock, TheLockOfAKilledNodeIsFreeWhenItsDeathIsKnown) {
  std::vector<double> told, served;
  for (int i = 0; i < by_engine(10, 4); ++i) {
    std::string ledger = ledger_name(static_cast<std::uint64_t>(i));
    ActorWorker holder, survivor;
    open(holder, kMortal + " tell=1");
    auto held = call(ledger, RecordLocked{"held", 60'000});
    ASSERT_EQ(holder.event(), "locked held");
    open(survivor, kMortal);
    // Every other time nothing is behind it that would make anybody look at the lock.
    std::future<Answered> behind;
    if (i % 2 == 0) {
      behind = call(ledger, Record{"behind"});
      ASSERT_TRUE(wait_until(survivor, [&] { return unfinished().size() > 1; })) << "a lock and a message";
      survivor.gather(Milliseconds(50));
      EXPECT_TRUE(counts(ledger).empty()) << "it was handled in spite of the lock";
    }
    std::int64_t killed_ns = steady_ns();
    holder.kill();
    Answered lost = held.get();
    ASSERT_EQ(code_of(lost), "stale_token");
    if (i % 2 != 0) behind = call(ledger, Record{"behind"});
    Answered next = behind.get();
    EXPECT_EQ(next.result, 1);
    told.push_back(ms_between(killed_ns, lost.at_ns));
    served.push_back(ms_between(killed_ns, next.at_ns));
    EXPECT_TRUE(wait_until_finished(survivor)) << unfinished().front();
    EXPECT_EQ(counts(ledger), (std::map<std::string, std::int64_t>{{"behind", 1}}));
    EXPECT_TRUE(wait_until_nobody_waits(survivor));
  }
  report_ms("from the kill to the error of its caller", told);
  report_ms("from the kill to the message behind it", served);
  EXPECT_LE(std::ranges::max(told), kNoticedMs + 2000);
  EXPECT_LE(std::ranges::max(served), kNoticedMs + 2000);
}

/// DGEN-B1, DGEN-B3: after its TTL the lock is others', and what was done under it comes to nothing.
TEST_F(ActorLock, ANodeThatIsPausedForLongLosesTheLockAndChangesNothing) {
  ActorWorker holder, other;
  open(holder, kQuick + " tell=1");
  auto held = call("a", RecordLocked{"held", 4000});
  ASSERT_EQ(holder.event(), "locked held");
  open(other, kQuick);
  auto behind = call("a", Record{"behind"});
  std::int64_t stopped_ns = steady_ns();
  stop_outside_of_a_commit(holder);
  Answered lost = held.get(), next = behind.get();
  EXPECT_EQ(code_of(lost), "stale_token");
  EXPECT_EQ(next.result, 1);
  double waited_ms = ms_between(stopped_ns, next.at_ns);
  std::printf("from the pause to the message behind it: %.0f ms, with a TTL of 1,000 ms\n", waited_ms);
  EXPECT_GE(waited_ms, 700) << "a TTL less a renewal";
  EXPECT_LE(waited_ms, 4000);

  holder.signal(SIGCONT);
  ASSERT_EQ(holder.event(), "worked held");
  EXPECT_EQ(holder.ask("call a after"), "ok 1") << "it goes on, with a new session";
  end(holder);
  EXPECT_EQ(counts("a"), (std::map<std::string, std::int64_t>{{"after", 1}, {"behind", 1}}));
  EXPECT_TRUE(wait_until_finished(other)) << unfinished().front();
  EXPECT_TRUE(wait_until_nobody_waits(other));
}

}  // namespace
}  // namespace perdure::e2e
