// Stopping in good order: what runs is let finish, what does not in time is run elsewhere, and its end there counts.
#include "queue_fixture.h"

namespace perdure::e2e {
namespace {

class QueueStop : public QueueProcesses {
 protected:
  /// Waits for an event of `worker` that begins like this; others are dropped.
  static std::string heard(Child& worker, const std::string& beginning) {
    for (;;) {
      std::string event = worker.event().value_or("(no event)");
      if (event.starts_with(beginning) || event == "(no event)") return event;
    }
  }
};

/// DARK-9, DARK-10, DARK-U9.
TEST_F(QueueStop, LetsHandlersFinishAndLeavesTheRest) {
  constexpr int kEvents = 40, kAtOnce = 4;
  for (int i = 0; i < kEvents; ++i) emit({.id = std::to_string(i), .work_ms = 1000});
  QueueWorker worker;
  open(worker, " tell=1 concurrency=" + std::to_string(kAtOnce));
  for (int i = 0; i < kAtOnce; ++i) EXPECT_TRUE(heard(worker, "began ").starts_with("began "));

  std::int64_t began_ns = steady_ns();
  EXPECT_EQ(worker.ask("close 28000"), "ok closed");
  double took_ms = ms_between(began_ns, steady_ns());
  std::printf("closed after %.0f ms\n", took_ms);
  EXPECT_LT(took_ms, 5000);
  EXPECT_EQ(info().completed, static_cast<std::uint64_t>(kAtOnce));
  EXPECT_EQ(info().ready, static_cast<std::uint64_t>(kEvents - kAtOnce));
  EXPECT_EQ(info().running + info().lost + info().failed, 0u);
  EXPECT_EQ(info().served_by, 0u);
  EXPECT_TRUE(counts_are_those_of_the_rows());
  auto left = must(queue_.list({.worker = std::string(kTasks), .state = EventState::kReady})).events;
  for (const Event& event : left) EXPECT_EQ(event.attempts, 0) << to_string(event.id) << " was given back";
  for (const std::string& event : worker.take_events()) EXPECT_FALSE(event.starts_with("cancelled")) << event;
  end(worker);
}

/// DARK-10, DARK-B4.
TEST_F(QueueStop, WhatIsOverTheGraceRunsElsewhereAndItsLateEndIsIgnored) {
  Uuid id = emit({.id = "slow", .work_ms = 2500});
  QueueWorker first, second;
  open(first, " tell=1 concurrency=1");
  ASSERT_EQ(heard(first, "began"), "began slow");
  open(second, " tell=1 concurrency=1");

  std::string answer = first.ask("close 300");
  EXPECT_TRUE(answer.starts_with("error deadline")) << answer;
  EXPECT_EQ(heard(first, "cancelled"), "cancelled slow");
  EXPECT_EQ(heard(second, "began"), "began slow");
  EXPECT_EQ(heard(first, "ended"), "ended slow");
  EXPECT_TRUE(first.ask("activity").starts_with("ok ")) << "it is still there";
  EXPECT_EQ(effects("slow"), 0) << "the first claim can change nothing any more";
  EXPECT_EQ(info().running, 1u);

  EXPECT_EQ(heard(second, "ended"), "ended slow");
  EXPECT_TRUE(wait_until_finished(second));
  EXPECT_EQ(effects("slow"), 1);
  EndedEvent ended = must(queue_.wait(id, Duration::zero()));
  EXPECT_EQ(ended.how, EndedEvent::How::kCompleted);
  EXPECT_EQ(info().completed, 1u);
  EXPECT_EQ(info().failed, 0u);
  end(first);
  end(second);
}

}  // namespace
}  // namespace perdure::e2e
