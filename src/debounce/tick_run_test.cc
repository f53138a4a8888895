// Runs: their tokens, their one fenced end, failures and timeouts.
#include "debounce/tick_fixture.h"

namespace perdure::debounce {
namespace {

class TickRuns : public TickFixture {
 protected:
  /// What a handler leaves to be committed with the end.
  static std::function<Result<void>(Transaction&)> add_one() {
    return [](Transaction& txn) -> Result<void> {
      txn.add("done", 1);
      return {};
    };
  }
  std::int64_t done() {
    return sim_.read([](Reader& reader) { return decode_counter(reader.get("done")); }).value();
  }
  /// Another leader begins a run of the same key.
  void another_begins() {
    sim_.node(0)->store().transact_async(
        [](Transaction& txn) {
          SystemAccess access(txn);
          begin_run(txn, run_key("default", kKey), "other");
        },
        [](Result<void> begun) { EXPECT_TRUE(begun); });
    sim_.run_for(100ms);
  }
  bool run_row() {
    return sim_
        .read([](Reader& reader) {
          SystemAccess access(reader);
          return read_run(reader, run_key("default", kKey)).has_value();
        })
        .value();
  }
};

// DVU-12, DVU-13, DVU-14, DVU-15: status, run, one commit, and the key is given back; then it waits.
TEST_F(TickRuns, ARunCommitsOnceAndGivesTheKeyBack) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  EXPECT_EQ(done(), 0);
  open_.nothing({});
  expect("ended ws.cs ok");
  EXPECT_EQ(done(), 1);
  expect("release ws.cs @6").nothing({});
  answer_look(true);
  expect_nothing_for(1s);
  EXPECT_EQ(done(), 1);
  EXPECT_EQ(tick().info(kKey)->runs, 1u);
  EXPECT_FALSE(run_row()) << "nothing is left of it";
}

// DVU-B1: the result of a leader that was replaced is refused, and it writes nothing more.
TEST_F(TickRuns, TheResultOfAStaleLeaderIsRefused) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  another_begins();
  open_.nothing({});
  expect("ended ws.cs stale_token");
  answer_look(true);
  EXPECT_EQ(done(), 0);
  EXPECT_EQ(tick().info(kKey)->failed_runs, 1u);
}

// DVU-B1: neither the token nor the end of a run is written by one who owns the key no more, as far as the store knows.
TEST_F(TickRuns, WhoOwnsTheKeyNoMoreBeginsNoRun) {
  open();
  reach(TickState::kSettingRunning);
  script_.fenced_off = true;
  open_.number(6);
  answer_look(true);
  EXPECT_EQ(state(), TickState::kWaiting);
  EXPECT_FALSE(run_row());
}

TEST_F(TickRuns, WhoOwnsTheKeyNoMoreEndsNoRun) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  script_.fenced_off = true;
  open_.nothing({});
  expect("ended ws.cs stale_token");
  answer_look(true);
  EXPECT_EQ(done(), 0);
}

// Who loses the key while the outcome of its end is unknown must not say that nothing was committed.
TEST_F(TickRuns, AnEndThatNobodyKnowsIsNotDenied) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(
      [](Transaction&) -> Result<void> { return fail(ErrorCode::kCommitUnknown, "the answer was lost"); });
  open_.nothing({});
  sim_.run_for(40ms);
  tell(What::kLost);
  expect("ended ws.cs commit_unknown");
  answer_look(true);
}

// DVU-B7: an end that has taken effect, and whose answer was lost, is not made again.
TEST_F(TickRuns, AnEndThatTookEffectUnnoticedCountsOnce) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(
      [](Transaction&) -> Result<void> { return fail(ErrorCode::kCommitUnknown, "the answer was lost"); });
  open_.nothing({});
  sim_.run_for(40ms);
  // What it would have told of.
  sim_.node(0)->store().transact_async(
      [stamp = open_.run->token.stamp](Transaction& txn) {
        txn.add("done", 1);
        SystemAccess access(txn);
        end_run(txn, run_key("default", kKey), stamp);
      },
      [](Result<void> ended) { EXPECT_TRUE(ended); });
  expect("ended ws.cs ok");
  expect("release ws.cs @6");
  EXPECT_EQ(done(), 1);
}

// DVU-B1: tokens only grow, and in the middle of a run they fence as well.
TEST_F(TickRuns, TokensGrowAndFenceInTheMiddle) {
  open();
  reach(TickState::kRunning);
  auto run = open_.run;
  std::vector<std::string> results;
  auto write = [&] {
    sim_.node(0)->store().transact_async(
        [run](Transaction& txn) {
          run->run().fence(txn);
          txn.add("middle", 1);
        },
        [&](Result<void> written) { results.emplace_back(written ? "ok" : written.error().name()); });
    sim_.run_for(100ms);
  };
  write();
  open_.nothing({});
  expect("ended ws.cs ok");
  Asked release = expect("release ws.cs @6");
  write();
  release.nothing({});
  answer_look(false);
  expect("acquire ws.cs").number(9);
  expect("pending ws.cs", 1100ms).pending(Pending::kWork);
  expect("update ws.cs @9 running").number(10);
  Asked second = expect("run ws.cs");
  write();
  EXPECT_EQ(results, (std::vector<std::string>{"ok", "stale_token", "stale_token"}));
  EXPECT_GT(second.run->token.to_string(), run->token.to_string());
}

// DVU-U10, DVU-U12, C-22: an errored run gives the key back, is told, and leaves what was pending.
TEST_F(TickRuns, AnErroredRunCommitsNothingAndIsTriedAgain) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  open_.fail(ErrorCode::kHandlerFailed);
  expect("ended ws.cs handler_failed");
  expect("release ws.cs @6").nothing({});
  EXPECT_EQ(done(), 0);
  EXPECT_FALSE(run_row());
  answer_look(false);
  expect("acquire ws.cs").number(9);
  expect("pending ws.cs", 1100ms).pending(Pending::kWork);
  expect("update ws.cs @9 running").number(10);
  Asked again = expect("run ws.cs");
  again.run->bodies.push_back(add_one());
  again.nothing({});
  expect("ended ws.cs ok");
  expect("release ws.cs @10");
  EXPECT_EQ(done(), 1);
}

TEST_F(TickRuns, ABodyThatRefusesFailsTheRun) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  open_.run->bodies.push_back([](Transaction&) -> Result<void> { return fail(ErrorCode::kWrongState, "no"); });
  open_.nothing({});
  expect("ended ws.cs wrong_state");
  expect("release ws.cs @6");
  EXPECT_EQ(done(), 0);
}

// DVU-B5: a run that takes too long is told, given up and refused; the key is given back.
TEST_F(TickRuns, ARunPastItsTimeoutIsGivenUp) {
  options_.run_timeout = 10s;
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  expect_nothing_for(9900ms);
  expect("ended ws.cs deadline", 300ms);
  EXPECT_TRUE(open_.run->cancel.signal().cancelled());
  expect("release ws.cs @6").nothing({});
  answer_look(true);
  open_.nothing({});
  expect_nothing_for(2s);
  EXPECT_EQ(done(), 0);
  EXPECT_FALSE(run_row()) << "its token is worth nothing any more";
}

// A handler that hangs after the key was lost does not keep the follower from competing for ever.
TEST_F(TickRuns, TheTimeoutEndsDrainingAsWell) {
  options_.run_timeout = 10s;
  open();
  reach(TickState::kDraining);
  expect_nothing_for(9s);
  expect("ended ws.cs stale_token", 2s);
  answer_look(true);
}

// DVU-19, DVU-U13: what comes during a run is seen by the next leadership's check, a window later.
TEST_F(TickRuns, AChangeDuringARunIsServedByTheNext) {
  open();
  reach(TickState::kDeleting);
  open_.nothing({});
  answer_look(false);
  expect("acquire ws.cs").number(9);
  expect_nothing_for(990ms);
  expect("pending ws.cs", 20ms).pending(Pending::kWork);
  expect("update ws.cs @9 running").number(10);
  expect("run ws.cs");
}

// DVU-U6: the key of a new leader is left alone.
TEST_F(TickRuns, ARefusedReleaseIsLeftAtThat) {
  open();
  reach(TickState::kDeleting);
  open_.fail(ErrorCode::kStaleToken);
  answer_look(true);
  expect_nothing_for(7s);
}

// A commit whose answer was lost is asked for again, and counted once.
TEST_F(TickRuns, AStoreThatIsAwayForAMomentLosesNoResult) {
  open();
  reach(TickState::kRunning);
  open_.run->bodies.push_back(add_one());
  sim_.cut_off(0, 2s);
  open_.nothing({});
  expect("ended ws.cs ok", 30s);
  expect("release ws.cs @6");
  EXPECT_EQ(done(), 1);
}

}  // namespace
}  // namespace perdure::debounce
