// Power cuts on a real file system: whatever was acknowledged, or shown to a reader, is there afterwards.
//
// kill -9 alone proves nothing about syncs, because the kernel still has what the process wrote. Here ext4 itself is
// shut down under the running processes, and everything that was not synced is gone.
#include <cstdio>
#include <functional>
#include <memory>

#include "log_check.h"
#include "loop_disk.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

constexpr std::uint64_t kDiskBytes = std::uint64_t{512} << 20;
constexpr int kCuts = 50;
/// How long the workers are left alone before a cut: some cuts come early, some late.
Milliseconds load_time(int cut) {
  return Milliseconds(20 + cut * 37 % 150);
}

class PowerCut : public ::testing::Test {
 protected:
  using Workers = std::vector<std::unique_ptr<Worker>>;

  void SetUp() override {
    auto made = LoopDisk::make(kDiskBytes);
    if (!made) GTEST_SKIP() << made.error().message;
    disk_ = std::move(*made);
    store_ = disk_->path() + "/store";
    must(Store::open(lmdb_url(store_))).close();
  }

  void start(Workers& workers, int process, int chains, const std::string& fault = "armed") {
    workers.push_back(std::make_unique<Worker>(fault));
    ASSERT_EQ(workers.back()->ask("open " + lmdb_url(store_)), "ok");
    if (chains == 0) return;
    ASSERT_EQ(workers.back()->ask("log " + std::to_string(process) + " " + std::to_string(chains)), "ok");
  }

  /// Takes in what the worker was told until now.
  void hear(Worker& worker) {
    for (const std::string& event : worker.take_events()) acknowledged_.hear(event);
  }

  /// Cuts the power under all workers and brings the disk back.
  void cut(Workers& workers) {
    must(disk_->cut_power());
    for (auto& worker : workers) {
      worker->kill();
      worker->gather(kPatience);  // To the end of what it said before it died.
      hear(*worker);
    }
    workers.clear();
    must(disk_->restart());
    ++cuts_;
  }

  /// What is wrong with the store as it came back; empty if nothing is.
  std::vector<std::string> problems() {
    auto store = Store::open(lmdb_url(store_));
    if (!store) return {"cannot open: " + to_string(store.error())};
    auto report = store->verify();
    if (!report) return {"cannot verify: " + to_string(report.error())};
    if (!report->ok()) return report->problems;
    return check_log(*store, acknowledged_);
  }

  void expect_no_loss() { EXPECT_EQ(problems(), std::vector<std::string>()) << "after cut " << cuts_; }

  void report(const char* what) {
    std::printf("%s: %d cuts, %zu acknowledged transactions\n", what, cuts_, acknowledged_.entries.size());
  }

  std::unique_ptr<LoopDisk> disk_;
  std::string store_;
  Acknowledged acknowledged_;
  int cuts_ = 0;
};

TEST_F(PowerCut, NothingAcknowledgedIsLost) {
  for (int cut_number = 0; cut_number < kCuts && !HasFailure(); ++cut_number) {
    Workers workers;
    // In turn: 1 in flight, 64 in flight, two processes, killed before the cut, killed and read by another.
    int kind = cut_number % 5;
    ASSERT_NO_FATAL_FAILURE(start(workers, 0, kind == 0 ? 1 : 64));
    if (kind == 2) {
      ASSERT_NO_FATAL_FAILURE(start(workers, 1, 8));
    }
    workers[0]->gather(load_time(cut_number));
    if (kind >= 3) workers[0]->kill();
    if (kind == 4) {
      ASSERT_NO_FATAL_FAILURE(start(workers, 0, 0));
      ASSERT_EQ(workers[1]->ask("read-log"), "ok");
    }
    cut(workers);
    expect_no_loss();
  }
  report("power cuts");
  EXPECT_GT(acknowledged_.entries.size(), static_cast<std::size_t>(kCuts));
}

TEST_F(PowerCut, WithSyncsSwitchedOffTheLossIsFound) {
  int lossy_cuts = 0;
  std::string example;
  for (int cut_number = 0; cut_number < kCuts; ++cut_number) {
    // A new store each time, made with syncs, so that each cut is judged by itself.
    store_ = disk_->path() + "/store" + std::to_string(cut_number);
    must(Store::open(lmdb_url(store_))).close();
    acknowledged_ = {};
    Workers workers;
    ASSERT_NO_FATAL_FAILURE(start(workers, 0, 8, "no-sync"));
    workers[0]->gather(load_time(cut_number));
    cut(workers);
    auto found = problems();
    if (found.empty()) continue;
    ++lossy_cuts;
    example = found.front();
  }
  EXPECT_GT(lossy_cuts, 0) << "a test that cannot fail proves nothing";
  std::printf("without syncs: %d of %d cuts lost something, such as: %s\n", lossy_cuts, cuts_, example.c_str());
}

/// One process commits and dies when others can see its commit but the disk does not have it. Another, which had the
/// store open all the time, answers a read from it; then the power goes.
class ShownThenCut : public PowerCut {
 protected:
  void run(const std::string& readers_fault) {
    Workers workers;
    ASSERT_NO_FATAL_FAILURE(start(workers, 1, 0, readers_fault));
    ASSERT_NO_FATAL_FAILURE(start(workers, 0, 0, "lazy-meta"));
    ASSERT_EQ(workers[1]->ask("arm die-after-meta 0"), "ok");
    ASSERT_EQ(workers[1]->ask("log 0 1"), "ok");
    ASSERT_EQ(workers[1]->wait(), -SIGKILL);
    // LMDB shows the commit once somebody has taken the writer lock over from the dead process, which the reader's own
    // process does as soon as it learns of the death.
    std::int64_t before = acknowledged_.end_seen;
    for (int reads = 0; reads < 10'000 && acknowledged_.end_seen == before; ++reads) {
      ASSERT_EQ(workers[0]->ask("read-log"), "ok");
      hear(*workers[0]);
    }
    cut(workers);
  }
};

TEST_F(ShownThenCut, AnAnsweredReadIsNotTakenBack) {
  for (int turn = 1; turn <= 5 && !HasFailure(); ++turn) {
    ASSERT_NO_FATAL_FAILURE(run("armed"));
    EXPECT_EQ(acknowledged_.end_seen, turn) << "the reader should have seen the commit of the dead process";
    expect_no_loss();
  }
}

TEST_F(ShownThenCut, WithSyncsSwitchedOffItIsTakenBack) {
  ASSERT_NO_FATAL_FAILURE(run("no-sync"));
  EXPECT_EQ(acknowledged_.end_seen, 1);
  EXPECT_FALSE(problems().empty()) << "a test that cannot fail proves nothing";
}

TEST_F(PowerCut, AnInterruptedFirstOpeningIsCompletedByTheNext) {
  for (int i = 0; i < 10; ++i) {
    std::string directory = disk_->path() + "/new" + std::to_string(i);
    Worker worker("armed");
    worker.say("open " + lmdb_url(directory));
    worker.gather(Milliseconds(i * 2));
    must(disk_->cut_power());
    worker.kill();
    must(disk_->restart());
    auto store = Store::open(lmdb_url(directory));
    ASSERT_TRUE(store) << to_string(store.error());
    EXPECT_TRUE(set(*store, "a", "b"));
    expect_sound(*store);
  }
}

}  // namespace
}  // namespace perdure::e2e
