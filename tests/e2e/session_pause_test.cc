// Holders that are paused for longer than their TTL: replaced, told of it, and without effect.
#include <algorithm>

#include "session_fixture.h"

namespace perdure::e2e {
namespace {

class SessionPause : public SessionProcesses {
 protected:
  struct Times {
    std::string options;
    double ttl_ms;
  };

  /// One holder is stopped, another takes over, and the first wakes up.
  void expect_replaced_and_fenced(const Times& times) {
    SessionWorker paused, other;
    open(paused, times.options);
    open(other, times.options);
    paused.want("leader");
    std::string old_token = acquired(paused).token;
    ASSERT_EQ(paused.ask("write leader key from-the-first"), "ok");
    other.want("leader");
    std::int64_t stopped_ns = steady_ns();
    stop_outside_of_a_commit(paused);
    Acquired now = acquired(other);
    waited_ms_.push_back(ms_between(stopped_ns, now.at_ns));
    EXPECT_GT(now.token, old_token);
    ASSERT_EQ(other.ask("write leader key from-the-second"), "ok");

    paused.signal(SIGCONT);
    EXPECT_EQ(code_of(paused.ask("write-by-token leader key late")), "stale_token");
    EXPECT_EQ(code_of(paused.ask("write leader key late")), "stale_token");
    EXPECT_EQ(code_of(paused.ask("release leader")), "stale_token");
    // Both are told on threads of the store, in no order.
    std::vector<std::string> told = {paused.event().value_or("(no event)"), paused.event().value_or("(no event)")};
    std::ranges::sort(told);
    EXPECT_EQ(told[0], "cancelled leader");
    EXPECT_TRUE(told[1].starts_with("lost stale_token")) << told[1];
    EXPECT_EQ(paused.ask("alive"), "ok no");
    EXPECT_EQ(paused.ask("held leader"), "ok no");
    EXPECT_EQ(get(store_, "key"), "from-the-second");

    EXPECT_EQ(other.ask("held leader"), "ok yes");
    EXPECT_EQ(other.ask("write leader key still-the-second"), "ok");
    EXPECT_EQ(get(store_, "key"), "still-the-second");
    EXPECT_EQ(other.ask("release leader"), "ok");
    EXPECT_TRUE(other.take_events().empty());
  }

  static std::string code_of(const std::string& answer) {
    std::istringstream words(answer);
    std::string error, code;
    words >> error >> code;
    return error == "error" ? code.substr(0, code.find(':')) : answer;
  }

  void expect_in_time(double ttl_ms) {
    double median = report_ms("from the pause to the next holder", waited_ms_);
    EXPECT_LE(median, ttl_ms + 1000);
    EXPECT_LE(std::ranges::max(waited_ms_), ttl_ms + 3000);
    // Not before its last renewal, which was up to one period ago, is a TTL old.
    EXPECT_GE(std::ranges::min(waited_ms_), ttl_ms * 0.75 - 50);
  }

  std::vector<double> waited_ms_;
};

TEST_F(SessionPause, AHolderThatIsPausedForLongIsReplacedAndFenced) {
  for (int i = 0; i < by_engine(5, 2); ++i) expect_replaced_and_fenced({kQuick, 1000});
  expect_in_time(1000);
}

TEST_F(SessionPause, TheSameWithTheDefaultTimes) {
  expect_replaced_and_fenced({"", 5000});
  expect_in_time(5000);
}

TEST_F(SessionPause, AShortPauseCostsNothing) {
  SessionWorker paused, other;
  open(paused);
  open(other);
  paused.want("leader");
  acquired(paused);
  other.want("leader");
  stop_outside_of_a_commit(paused);
  other.gather(Milliseconds(1500));
  paused.signal(SIGCONT);
  EXPECT_EQ(paused.ask("write leader key value"), "ok");
  EXPECT_EQ(paused.ask("alive"), "ok yes");
  EXPECT_TRUE(paused.take_events().empty());
  EXPECT_TRUE(other.take_events().empty());
  EXPECT_EQ(paused.ask("release leader"), "ok");
  acquired(other);
}

/// Nobody is judged by time in which the observer itself was away.
TEST_F(SessionPause, AnObserverThatWasPausedHasLearnedNothing) {
  SessionWorker holder, observer;
  open(holder, " ttl=2000 renew=500");
  open(observer, " ttl=60000 renew=250");
  holder.want("leader");
  acquired(holder);
  observer.want("leader");
  stop_outside_of_a_commit(observer);
  stop_outside_of_a_commit(holder);
  holder.gather(Milliseconds(3000));
  EXPECT_EQ(sessions(), 2u);
  std::int64_t continued_ns = steady_ns();
  observer.signal(SIGCONT);
  // For three seconds nothing has come from the holder, but the observer saw only the last moments of that.
  observer.gather(Milliseconds(500));
  EXPECT_TRUE(observer.take_events().empty());
  EXPECT_EQ(sessions(), 2u);
  double waited_ms = ms_between(continued_ns, acquired(observer).at_ns);
  EXPECT_GE(waited_ms, 1000) << "what it saw before its pause counts, and no more";
  EXPECT_LE(waited_ms, 3000);
}

}  // namespace
}  // namespace perdure::e2e
