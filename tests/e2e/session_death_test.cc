// Holders that die: killed, or gone without a word. What they held is free as soon as that is known, and swept soon
// after.
#include "session_fixture.h"

namespace perdure::e2e {
namespace {

/// The bound of the median; a machine that is busy with other things may be late once.
const double kSoonMs = by_engine(100.0, kNoticedMs), kWorstMs = kNoticedMs + 1000;
const int kRepetitions = by_engine(10, 3);

class SessionDeath : public SessionProcesses {
 protected:
  static void expect_soon(const char* what, const std::vector<double>& measured) {
    EXPECT_LE(report_ms(what, measured), kSoonMs);
    EXPECT_LE(std::ranges::max(measured), kWorstMs);
  }
};

TEST_F(SessionDeath, AKilledHolderIsReplacedAtOnce) {
  std::vector<double> measured;
  SessionWorker waiter;
  open(waiter, kMortal);
  for (int i = 0; i < kRepetitions; ++i) {
    SessionWorker holder;
    open(holder, kMortal);
    holder.want("leader");
    std::string before = acquired(holder).token;
    waiter.want("leader");
    ASSERT_EQ(waiter.ask("alive"), "ok yes") << "it has had time to ask the store";
    std::int64_t killed_ns = steady_ns();
    holder.kill();
    Acquired now = acquired(waiter);
    measured.push_back(ms_between(killed_ns, now.at_ns));
    EXPECT_GT(now.token, before);
    EXPECT_EQ(waiter.ask("write leader key " + std::to_string(i)), "ok");
    EXPECT_EQ(waiter.ask("release leader"), "ok");
  }
  expect_soon("from the kill to the next holder", measured);
}

TEST_F(SessionDeath, AHolderThatExitsWithoutStoppingIsReplacedAtOnce) {
  std::vector<double> measured;
  SessionWorker waiter;
  open(waiter, kMortal);
  for (int i = 0; i < kRepetitions; ++i) {
    SessionWorker holder;
    open(holder, kMortal);
    holder.want("leader");
    acquired(holder);
    waiter.want("leader");
    std::int64_t left_ns = steady_ns();
    holder.say("vanish");
    measured.push_back(ms_between(left_ns, acquired(waiter).at_ns));
    EXPECT_EQ(waiter.ask("release leader"), "ok");
  }
  expect_soon("from the exit to the next holder", measured);
}

TEST_F(SessionDeath, ANewProcessNeedNotWaitForADeadOne) {
  std::vector<double> measured;
  for (int i = 0; i < kRepetitions; ++i) {
    SessionWorker first, second;
    open(first, kMortal);
    first.want("leader");
    acquired(first);
    first.kill();
    open(second, kMortal);
    std::int64_t asked_ns = steady_ns();
    second.want("leader");
    measured.push_back(ms_between(asked_ns, acquired(second).at_ns));
    second.kill();
  }
  expect_soon("from the request of a new process to its lease", measured);
}

TEST_F(SessionDeath, AllThatAKilledProcessHeldIsFreeAtOnceAndSwept) {
  const int kLeases = by_engine(1000, 200);
  SessionWorker survivor;
  open(survivor, kMortal);
  ASSERT_TRUE(survivor.ask("acquire-many warm 1 0").starts_with("ok "));
  ASSERT_EQ(survivor.ask("release warm0"), "ok");
  std::uint64_t rows_before = rows();
  std::vector<double> first, all;
  for (int i = 0; i < by_engine(3, 1); ++i) {
    SessionWorker holder;
    open(holder, kMortal);
    ASSERT_TRUE(holder.ask("acquire-many lease " + std::to_string(kLeases) + " 0").starts_with("ok "));
    EXPECT_EQ(rows(), rows_before + 2 + 2 * kLeases) << "the session, and two rows for each lease";
    // One of the last to be swept.
    survivor.want("lease" + std::to_string(kLeases - 1));
    std::int64_t killed_ns = steady_ns();
    holder.kill();
    first.push_back(ms_between(killed_ns, acquired(survivor).at_ns));
    survivor.say("acquire-many lease " + std::to_string(kLeases - 1) + " 60000");
    std::string answer = survivor.answer().value_or("(no answer)");
    ASSERT_TRUE(answer.starts_with("ok ")) << answer;
    all.push_back(ms_between(killed_ns, std::stoll(answer.substr(3))));
    EXPECT_TRUE(wait_for_rows(rows_before + 2 * kLeases)) << rows() << " rows, before: " << rows_before;
    EXPECT_EQ(sessions(), 1u);
    for (int lease = 0; lease < kLeases; ++lease)
      ASSERT_EQ(survivor.ask("release lease" + std::to_string(lease)), "ok") << "the sweep took it from its new holder";
    EXPECT_EQ(rows(), rows_before);
  }
  expect_soon("from the kill to the first of all leases", first);
  EXPECT_LE(report_ms("from the kill to all of them", all), 10 * kWorstMs);
}

TEST_F(SessionDeath, NoLeaseIsEverStuckAndNoneHasTwoHolders) {
  constexpr int kLeases = 50, kChains = 16;
  const int kKills = by_engine(20, 4);
  SessionWorker survivor;
  open(survivor, kMortal);
  std::vector<double> measured;
  for (int i = 0; i < kKills; ++i) {
    SessionWorker victim;
    open(victim, kMortal);
    ASSERT_EQ(
        victim.ask("churn " + std::to_string(i) + " l " + std::to_string(kLeases) + " " + std::to_string(kChains)),
        "ok");
    // Killed in the middle of whatever it is doing after a while that differs from time to time.
    victim.gather(Milliseconds(by_engine(50, 300) + i * 7));
    std::int64_t killed_ns = steady_ns();
    victim.kill();
    survivor.say("acquire-many l " + std::to_string(kLeases) + " 60000");
    std::string answer = survivor.answer().value_or("(no answer)");
    ASSERT_TRUE(answer.starts_with("ok ")) << answer;
    measured.push_back(ms_between(killed_ns, std::stoll(answer.substr(3))));
    for (int lease = 0; lease < kLeases; ++lease) ASSERT_EQ(survivor.ask("release l" + std::to_string(lease)), "ok");
  }
  expect_soon("from the kill to each of 50 leases", measured);
  LeaseLogs logs = check_lease_logs(store_, "l", kLeases);
  EXPECT_EQ(logs.problems, std::vector<std::string>());
  EXPECT_GT(logs.tokens, 100u) << "too little happened to show anything";
  std::printf("%zu fenced writes under %zu tokens\n", logs.entries, logs.tokens);
  expect_sound(store_);
}

}  // namespace
}  // namespace perdure::e2e
