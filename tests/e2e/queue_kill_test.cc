// Workers that are killed while they work: no event is lost, none takes effect twice, and none waits for long.
#include <array>
#include <memory>
#include <random>
#include <semaphore>

#include "queue_fixture.h"

namespace perdure::e2e {
namespace {

/// A server has a round trip for each batch, and three more processes to share two cores with.
const int kPerSecond = by_engine(450, 150);
/// An event takes as long, so that several are under way in every process that is killed.
constexpr std::int64_t kWorkMs = 15;
const Milliseconds kBetweenKills{by_engine(500, 1000)};

class QueueKill : public QueueProcesses {
 protected:
  using Workers = std::array<std::unique_ptr<QueueWorker>, 3>;

  void start(std::unique_ptr<QueueWorker>& worker) {
    worker = std::make_unique<QueueWorker>();
    worker->say("open " + url_ + kQuick + " concurrency=8");
  }

  /// Emits `total` tasks from now on, evenly spread; `meanwhile` is called all the time. One in ten spawns another.
  template <class Meanwhile>
  void emit_evenly(int total, Child& idle, Meanwhile meanwhile) {
    std::counting_semaphore<> acknowledged(0);
    std::int64_t began_ns = steady_ns();
    for (int i = 0; i < total;) {
      for (; i < total && steady_ns() - began_ns > std::int64_t{i} * 1'000'000'000 / kPerSecond; ++i) {
        Task task{.id = id(i), .what = i % 10 == 0 ? "spawn" : "work", .work_ms = kWorkMs, .emitted_ns = steady_ns()};
        queue_.emit_async(kTasks, to_value(task), {}, [&](Result<Emitted> emitted) {
          must(std::move(emitted));
          acknowledged.release();
        });
      }
      meanwhile();
      idle.gather(Milliseconds(5));
    }
    for (int i = 0; i < total; ++i) acknowledged.acquire();
  }

  static std::string id(int number) { return "task-" + std::to_string(number); }

  /// Runs `total` tasks on three workers, one of which is killed and replaced every now and then if so; the longest
  /// wait of a task beyond what the deaths that it met account for, in milliseconds. Looks that each has taken effect
  /// once.
  enum class Kill { kNo, kYes };
  double longest_wait_ms(int total, Kill kill) {
    before_ = info();
    Workers workers;
    for (auto& worker : workers) start(worker);
    for (auto& worker : workers) EXPECT_EQ(worker->answer(), "ok working");
    QueueWorker idle;  // Told nothing; to wait on.
    std::mt19937 chance(17);
    std::int64_t began_ns = steady_ns(), last_ns = began_ns;
    int kills = 0;
    auto meanwhile = [&] {
      if (steady_ns() - last_ns < std::chrono::nanoseconds(kBetweenKills).count()) return;
      last_ns = steady_ns();
      EXPECT_TRUE(counts_are_those_of_the_rows());
      if (kill == Kill::kNo) return;
      auto& victim = workers[chance() % workers.size()];
      victim->kill();
      start(victim);
      ++kills;
    };
    emit_evenly(total, idle, meanwhile);
    EXPECT_TRUE(wait_until(idle, [&] { return info().total == 0; })) << info().total << " events are left";
    double seconds = ms_between(began_ns, steady_ns()) / 1000;
    EXPECT_TRUE(counts_are_those_of_the_rows());
    for (auto& worker : workers) end(*worker);
    return check(total, kills, seconds);
  }

  double check(int total, int kills, double seconds) {
    int spawned = (total + 9) / 10;
    auto done = effects();
    std::vector<std::string> wrong;
    auto expect_once = [&](const std::string& task) {
      if (done[task] != 1) wrong.push_back(task + " has taken effect " + std::to_string(done[task]) + " times");
    };
    for (int i = 0; i < total; ++i) {
      expect_once(id(i));
      if (i % 10 == 0) expect_once(id(i) + "-child");
    }
    EXPECT_TRUE(wrong.empty()) << wrong.size() << " wrong, the first: " << wrong.front();
    EXPECT_EQ(done.size(), static_cast<std::size_t>(total + spawned));
    WorkerInfo now = info();
    EXPECT_EQ(now.completed - before_.completed, static_cast<std::uint64_t>(total + spawned));
    EXPECT_EQ(now.total + now.ready + now.scheduled + now.running + now.dead + now.failed, 0u);
    EXPECT_EQ(must(queue_.list({.worker = std::string(kTasks)})).events.size(), 0u);
    std::uint64_t lost = now.lost - before_.lost;
    EXPECT_EQ(lost > 0, kills > 0) << lost;
    auto attempts = counters("attempt/");
    std::vector<double> waited;
    std::map<std::int64_t, double> longest_by_attempt;
    for (auto& [task, ns] : counters("waited/")) {
      waited.push_back(static_cast<double>(ns) / 1e6);
      double& longest = longest_by_attempt[attempts[task]];
      longest = std::max(longest, waited.back());
    }
    std::printf("%d events in %.1f s, %d kills, %llu attempts lost\n", total + spawned, seconds, kills,
                static_cast<unsigned long long>(lost));
    report_ms("from an emit to its effect", waited);
    for (auto& [attempt, longest] : longest_by_attempt)
      std::printf("  with attempt %d: %.1f ms at most\n", static_cast<int>(attempt), longest);
    // Each death is noticed in its own time, and an event may meet several.
    double beyond_deaths = 0;
    for (auto& [attempt, longest] : longest_by_attempt)
      beyond_deaths = std::max(beyond_deaths, longest - kNoticedMs * static_cast<double>(attempt - 1));
    return beyond_deaths;
  }

  /// What the next run would take for its own.
  void forget() {
    for (std::string prefix : {"effect/", "waited/", "attempt/"})
      (void)must(store_.clear_in_batches({prefix, prefix + "\xfe"}));
  }

  WorkerInfo before_;
};

/// DARK-6, DARK-7, DARK-35, DARK-B1, DARK-B3, DARK-B10.
TEST_F(QueueKill, EveryEventTakesEffectOnceAndSoonWhileWorkersAreKilled) {
  double calm_ms = longest_wait_ms(by_engine(3'000, 450), Kill::kNo);
  forget();
  double longest_ms = longest_wait_ms(by_engine(20'000, 1'500), Kill::kYes);
  // Also those who were not lost themselves may wait behind others that were.
  EXPECT_LE(longest_ms, calm_ms + 2000 + kNoticedMs);
  expect_sound(store_);
}

}  // namespace
}  // namespace perdure::e2e
