// Several processes after the same leases, while they are killed and paused at random moments.
#include <random>

#include "session_fixture.h"

namespace perdure::e2e {
namespace {

constexpr int kProcesses = 3, kLeases = 8, kChains = 6;
const Milliseconds kDuration{by_engine(10'000, 6'000)};

class SessionMixed : public SessionProcesses {
 protected:
  void start(std::size_t index) {
    workers_[index] = std::make_unique<SessionWorker>();
    open(*workers_[index], " ttl=400 renew=100");
    std::string process = std::to_string(lives_++);
    ASSERT_EQ(
        workers_[index]->ask("churn " + process + " m " + std::to_string(kLeases) + " " + std::to_string(kChains)),
        "ok");
  }
  void stop_for(Child& worker, Milliseconds pause) {
    worker.signal(SIGSTOP);
    ASSERT_TRUE(worker.wait_until_stopped());
    worker.gather(pause);
    worker.signal(SIGCONT);
  }

  std::array<std::unique_ptr<SessionWorker>, kProcesses> workers_;
  int lives_ = 0;
};

TEST_F(SessionMixed, TokensNeverGoBackUnderKillsAndPauses) {
  std::random_device seed;
  std::mt19937 random(seed());
  for (std::size_t i = 0; i < kProcesses; ++i) start(i);
  int kills = 0, pauses = 0;
  std::int64_t until = steady_ns() + std::chrono::nanoseconds(kDuration).count();
  while (steady_ns() < until) {
    std::size_t victim = random() % kProcesses;
    workers_[victim]->gather(Milliseconds(random() % 200));
    if (random() % 3 == 0) {
      workers_[victim]->kill();
      start(victim);
      ++kills;
    } else {
      // Shorter and longer than the TTL; perhaps in the middle of a commit, which then holds up everybody.
      stop_for(*workers_[victim], Milliseconds(100 + random() % 700));
      ++pauses;
    }
  }
  for (auto& worker : workers_) worker->kill();
  SessionWorker last;
  open(last);
  EXPECT_TRUE(last.ask("acquire-many m " + std::to_string(kLeases) + " 10000").starts_with("ok "));
  LeaseLogs logs = check_lease_logs(store_, "m", kLeases);
  EXPECT_EQ(logs.problems, std::vector<std::string>());
  EXPECT_GT(logs.tokens, 100u) << "too little happened to show anything";
  std::printf("%d kills, %d pauses, %zu fenced writes under %zu tokens\n", kills, pauses, logs.entries, logs.tokens);
  expect_sound(store_);
}

}  // namespace
}  // namespace perdure::e2e
