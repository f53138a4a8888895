// Watches across processes: a commit of one wakes the others, and so does its death.
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "scratch.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

constexpr auto kWait = std::chrono::seconds(10);

Watch watch(Store& store, BytesView key) {
  return must(store.transact([&](Transaction& txn) { return txn.watch(key); }));
}

class WatchProcesses : public ::testing::Test {
 protected:
  void SetUp() override { store_.emplace(must(Store::open(url_))); }

  Scratch scratch_;
  std::string url_ = fresh_store_url(lmdb_url(scratch_ / "store"));
  std::optional<Store> store_;
};

TEST_F(WatchProcesses, ACommitInAnotherProcessFiresIt) {
  Worker other;
  ASSERT_EQ(other.ask("open " + url_), "ok");
  std::vector<double> wake_ms;
  for (int turn = 0; turn < 100; ++turn) {
    Watch watched = watch(*store_, "key");
    other.say("set key " + std::to_string(turn));
    ASSERT_TRUE(watched.wait(kWait));
    std::int64_t fired_ns = steady_ns();
    std::string answer = other.answer().value_or("(no answer)");
    ASSERT_TRUE(answer.starts_with("ok ")) << answer;
    wake_ms.push_back(static_cast<double>(fired_ns - std::stoll(answer.substr(3))) / 1e6);
    EXPECT_EQ(get(*store_, "key"), std::to_string(turn));
  }
  std::ranges::sort(wake_ms);
  std::printf("wake-up after the other's acknowledgement: p50 %.3f ms, p99 %.3f ms\n", wake_ms[wake_ms.size() / 2],
              wake_ms[wake_ms.size() * 99 / 100]);
}

TEST_F(WatchProcesses, ACommitOnAnotherKeyDoesNotFireIt) {
  Worker other;
  ASSERT_EQ(other.ask("open " + url_), "ok");
  Watch quiet = watch(*store_, "quiet"), marker = watch(*store_, "marker");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(other.ask("set other " + std::to_string(i)).starts_with("ok"));
  ASSERT_TRUE(other.ask("set marker x").starts_with("ok"));
  ASSERT_TRUE(marker.wait(kWait));
  EXPECT_FALSE(quiet.wait(Duration::zero()));
}

TEST_F(WatchProcesses, TheDeathOfAnotherProcessFiresIt) {
  auto other = std::make_unique<Worker>();
  ASSERT_EQ(other->ask("open " + url_), "ok");
  ASSERT_EQ(other->ask("log 0 8"), "ok");
  ASSERT_TRUE(other->event());  // It is in the middle of its work.
  Watch watched = watch(*store_, "nothing it writes");
  other->kill();
  EXPECT_TRUE(watched.wait(kWait)) << "it may have died between its commit and its announcement";
}

TEST_F(WatchProcesses, ACommitWhoseProcessDiedBeforeTellingFiresIt) {
  Worker other("lazy-meta");
  ASSERT_EQ(other.ask("open " + url_), "ok");
  Watch watched = watch(*store_, "key");
  ASSERT_EQ(other.ask("arm die-after-meta 0"), "ok");
  other.say("set key new");
  ASSERT_EQ(other.wait(), -SIGKILL);
  // Its last commit shows once its lock is taken over; whoever looked before that is woken again.
  ASSERT_TRUE(watched.wait(kWait));
  while (get(*store_, "key") != "new") {
    Watch again = watch(*store_, "key");
    if (get(*store_, "key") == "new") break;
    ASSERT_TRUE(again.wait(kWait));
  }
}

TEST_F(WatchProcesses, MoreChangesThanTheBulletinHoldsFireIt) {
  Worker other;
  ASSERT_EQ(other.ask("open " + url_), "ok");
  Watch watched = watch(*store_, "last");
  ASSERT_EQ(other.ask("fill many/ 70000 1"), "ok");
  ASSERT_TRUE(other.ask("set last x").starts_with("ok"));
  EXPECT_TRUE(watched.wait(kWait));
}

}  // namespace
}  // namespace perdure::e2e
