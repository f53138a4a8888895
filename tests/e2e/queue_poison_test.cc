// Handlers that misbehave: what they are given ends as a dead letter or with a clear outcome, and the others go on.
#include <memory>

#include "queue_fixture.h"

namespace perdure::e2e {
namespace {

class QueuePoison : public QueueProcesses {
 protected:
  static constexpr int kInnocents = 40;

  /// Around the event that misbehaves: some before it, the rest behind.
  Uuid emit_among_innocents(const Task& poison, const EmitOptions& options = {}) {
    Uuid id;
    for (int i = 0; i < kInnocents; ++i) {
      if (i == 2) id = emit(poison, options);
      emit({.id = innocent(i), .work_ms = 20});
    }
    return id;
  }
  static std::string innocent(int number) { return "innocent-" + std::to_string(number); }

  void expect_innocents_done() {
    for (int i = 0; i < kInnocents; ++i) EXPECT_EQ(effects(innocent(i)), 1) << innocent(i);
    EXPECT_EQ(info().completed, static_cast<std::uint64_t>(kInnocents));
    EXPECT_TRUE(counts_are_those_of_the_rows());
  }

  /// Workers one after the other, until none of them dies any more; how many have.
  int work_until_finished(std::unique_ptr<QueueWorker>& worker) {
    for (int deaths = 0;; ++deaths) {
      worker = std::make_unique<QueueWorker>();
      worker->say("open " + url_ + kQuick + " concurrency=4");
      EXPECT_TRUE(wait_until(*worker, [&] { return worker->wait(Milliseconds(0)).has_value() || info().total == 0; }));
      if (!worker->wait(Milliseconds(0)) || deaths > 30) return deaths;
    }
  }

  void expect_given_up_after_deaths(const std::string& what) {
    constexpr int kLossesMax = 4;
    must(queue_.configure(kTasks, WorkerSettings{.losses_max = kLossesMax}));
    Uuid id = emit_among_innocents({.id = "poison", .what = what});
    std::unique_ptr<QueueWorker> worker;
    int deaths = work_until_finished(worker);
    EXPECT_EQ(deaths, kLossesMax + 1);
    expect_innocents_done();
    Event dead = must(queue_.get(id));
    EXPECT_EQ(dead.state, EventState::kDead);
    EXPECT_EQ(dead.losses, deaths);
    EXPECT_NE(dead.last_error, "");
    EXPECT_EQ(info().dead, 1u);
    EXPECT_EQ(info().failed, 0u) << "its handler has not failed";
    std::printf("given up after %d deaths: %s\n", deaths, dead.last_error.c_str());
    end(*worker);
  }

  /// One attempt, after which the event must be dead; answers it.
  Event dead_after_one_attempt(const Task& poison, const std::string& options = "") {
    Uuid id = emit_among_innocents(poison, {.retry = RetryPolicy{.max = 0}});
    QueueWorker worker;
    open(worker, " concurrency=4" + options);
    EXPECT_TRUE(wait_until_finished(worker)) << info().total << " are left";
    expect_innocents_done();
    Event dead = must(queue_.get(id));
    EXPECT_EQ(dead.state, EventState::kDead);
    EXPECT_EQ(dead.attempts, 1);
    EXPECT_EQ(dead.losses, 0);
    EXPECT_EQ(info().failed, 1u);
    if (poison.what != "hang") end(worker);  // That one never comes to its end.
    return dead;
  }
};

/// The issue's: an event that kills its process is given up, and takes nobody along.
TEST_F(QueuePoison, AnEventThatKillsItsProcessIsGivenUp) {
  expect_given_up_after_deaths("kill");
}

TEST_F(QueuePoison, AnEventThatEndsItsProcessIsGivenUp) {
  expect_given_up_after_deaths("exit");
}

/// DARK-B13.
TEST_F(QueuePoison, AHandlerThatHangsFailsAtItsTimeout) {
  Event dead = dead_after_one_attempt({.id = "poison", .what = "hang"}, " timeout=300");
  EXPECT_NE(dead.last_error.find("timeout"), std::string::npos) << dead.last_error;
}

/// DARK-8, DARK-B7.
TEST_F(QueuePoison, AHandlerThatThrowsFailsWithItsWords) {
  EXPECT_NE(dead_after_one_attempt({.id = "poison", .what = "throw"}).last_error.find("thrown by poison"),
            std::string::npos);
}

TEST_F(QueuePoison, AHandlerThatThrowsAnythingElseFails) {
  EXPECT_NE(dead_after_one_attempt({.id = "poison", .what = "throw-int"}).last_error, "");
}

TEST_F(QueuePoison, AHandlerThatReturnsAnErrorFailsWithItsWords) {
  EXPECT_NE(dead_after_one_attempt({.id = "poison", .what = "fail"}).last_error.find("refused by poison"),
            std::string::npos);
}

TEST_F(QueuePoison, AnEndlessErrorIsCut) {
  Event dead = dead_after_one_attempt({.id = "poison", .what = "big-error"});
  EXPECT_TRUE(dead.last_error.find("large: eee") != std::string::npos);
  EXPECT_LT(dead.last_error.size(), 100'000u);
}

/// DARK-7: it is completed all the same.
TEST_F(QueuePoison, AResultOfAGigabyteIsLeftOut) {
  Uuid id = emit({.id = "large", .what = "big"});
  Uuid behind = emit({.id = "behind"});
  QueueWorker worker;
  open(worker, " concurrency=1");
  EXPECT_TRUE(wait_until_finished(worker));
  EndedEvent ended = must(queue_.wait(id, Duration::zero()));
  EXPECT_EQ(ended.how, EndedEvent::How::kCompleted);
  EXPECT_TRUE(ended.result.is_null());
  EXPECT_EQ(effects("large"), 1);
  EXPECT_EQ(must(queue_.wait(behind, Duration::zero())).result, Value("behind"));
  EXPECT_EQ(info().failed + info().lost + info().dead, 0u);
  end(worker);
}

}  // namespace
}  // namespace perdure::e2e
