// Processes that die at any moment, while others share their store.
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include "kill_records.h"
#include "scratch.h"
#include "sim/list_append.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

constexpr int kProcesses = 4;
const int kSeconds = by_engine(20, 6);  // PERDURE_KILL_SECONDS overrides it.
constexpr double kStallMax_s = 2;

int seconds() {
  const char* wanted = getenv("PERDURE_KILL_SECONDS");
  return wanted ? atoi(wanted) : kSeconds;
}

/// One of the processes, through all its lives.
struct Member {
  std::unique_ptr<Worker> worker;
  int life = 0;
  std::uint64_t completed = 0;
  std::int64_t longest_stall_ns = 0;
};

class KillTest : public ::testing::Test {
 protected:
  void start(int process) {
    Member& member = members_[static_cast<std::size_t>(process)];
    member.worker = std::make_unique<Worker>();
    ASSERT_EQ(member.worker->ask("open " + url_), "ok");
    ASSERT_EQ(member.worker->ask("mixed " + std::to_string(process) + " " + std::to_string(++member.life) + " " +
                                 records_.path().string()),
              "ok");
  }

  void take_records(int process, std::int64_t end_ns) {
    Member& member = members_[static_cast<std::size_t>(process)];
    auto life = read_.add(records_.path().string(), process, member.life, end_ns);
    ASSERT_TRUE(life) << to_string(life.error());
    EXPECT_GT(life->completed, 0u) << "process " << process << " did nothing in its life " << member.life;
    member.completed += life->completed;
    member.longest_stall_ns = std::max(member.longest_stall_ns, life->longest_stall_ns);
  }

  Scratch scratch_, records_;
  std::string url_ = fresh_store_url(lmdb_url(scratch_ / "store"));
  std::array<Member, kProcesses> members_;
  KillRecords read_;
};

TEST_F(KillTest, NothingAcknowledgedIsLostAndSurvivorsGoOn) {
  for (int process = 0; process < kProcesses; ++process) ASSERT_NO_FATAL_FAILURE(start(process));
  int kills = 0;
  for (std::int64_t next_kill = steady_ns(); kills < seconds(); ++kills) {
    next_kill += 1'000'000'000;
    int process = kills % kProcesses;
    Member& victim = members_[static_cast<std::size_t>(process)];
    // Nobody speaks meanwhile: this waits for the time, or for the end of a process that should not end.
    victim.worker->gather(std::chrono::ceil<Milliseconds>(std::chrono::nanoseconds(next_kill - steady_ns())));
    std::int64_t end_ns = steady_ns();
    victim.worker->kill();
    ASSERT_NO_FATAL_FAILURE(take_records(process, end_ns));
    ASSERT_NO_FATAL_FAILURE(start(process));
  }
  for (int process = 0; process < kProcesses; ++process) {
    Member& member = members_[static_cast<std::size_t>(process)];
    std::int64_t end_ns = steady_ns();
    member.worker->end_input();
    ASSERT_EQ(member.worker->wait(), 0);
    ASSERT_NO_FATAL_FAILURE(take_records(process, end_ns));
  }

  Store store = must(Store::open(url_));
  expect_sound(store);
  std::uint64_t completed = 0;
  double longest_stall_s = 0;
  for (const Member& member : members_) {
    completed += member.completed;
    longest_stall_s = std::max(longest_stall_s, static_cast<double>(member.longest_stall_ns) / 1e9);
  }
  EXPECT_LT(longest_stall_s, kStallMax_s);
  for (BytesView counter : {kAddCounter, kReadCounter}) {
    const auto& counted = read_.counters[std::string(counter)];
    std::int64_t value = decode_counter(get(store, counter));
    EXPECT_GT(counted.acknowledged, 0) << counter;
    EXPECT_GE(value, counted.acknowledged) << counter << ": acknowledged increments are lost";
    EXPECT_LE(value, counted.acknowledged + counted.unknown) << counter << ": it grew by itself";
  }
  ASSERT_TRUE(read_.add_final_lists(store));
  sim::Verdict verdict = sim::check_list_append(read_.history);
  EXPECT_TRUE(verdict.ok) << to_string(verdict);
  EXPECT_GT(verdict.ok_txns, 100u);
  std::printf("%d kills, %llu transactions, longest stall %.3f s\n%s\n", kills,
              static_cast<unsigned long long>(completed), longest_stall_s, to_string(verdict).c_str());
}

}  // namespace
}  // namespace perdure::e2e
