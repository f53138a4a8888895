// Five processes and one key, elected by the store itself.
#include "tick_fixture.h"

namespace perdure::e2e {
namespace {

class StoreElection : public TickProcesses {};

// DVU-4, DVU-7, DVU-20, DVU-U14.
TEST_F(StoreElection, FiveProcessesHaveOneLeader) {
  start_all("store", {});
  expect_one_leader_who_works();
  // Between a run and the next leadership nobody has the key.
  std::string seen;
  for (int i = 0; i < 100 && seen.find(" owner=") == seen.npos; ++i) {
    if (i > 0) let_pass(Milliseconds(20));
    seen = workers_[0]->ask(std::string("inspect ") + kKey);
  }
  EXPECT_NE(seen.find(" owner="), seen.npos) << seen;
}

// DVU-6, DVU-B3: the death of a process is known at once, or on a server within its TTL and a second.
TEST_F(StoreElection, AKilledLeaderIsReplacedWhenItsDeathIsKnown) {
  start_all("store", {});
  std::vector<double> measured;
  for (int i = 0; i < by_engine(10, 3); ++i) {
    touch();
    measured.push_back(kill_leader("store", {}));
  }
  EXPECT_LE(report_ms("from the kill of the leader to the next, by the store", measured),
            by_engine(100, Times{}.max_age_ms + 1000));
  EXPECT_LE(std::ranges::max(measured), by_engine(1000, Times{}.max_age_ms + 2000));
  EXPECT_TRUE(wait_until_done()) << "what was pending is not lost";
  expect_tokens_grow();
  expect_sound(store_);
}

// DVU-18: a stop leaves no key behind.
TEST_F(StoreElection, AStoppedLeaderIsReplacedAtOnce) {
  start_all("store", {});
  std::size_t first = leader();
  EXPECT_EQ(workers_[first]->ask("stop"), "ok");
  std::int64_t from = steady_ns();
  leader();
  EXPECT_LE(ms_between(from, steady_ns()), 1000);
}

}  // namespace
}  // namespace perdure::e2e
