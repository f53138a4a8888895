// Runs: whose they are, how they end, and what becomes of those that fail or whose node dies.
#include <gtest/gtest.h>

#include "debounce/debounce_sim_fixture.h"

namespace perdure::debounce {
namespace {

class DebounceRuns : public DebounceSimFixture {
 protected:
  DebounceRuns() : DebounceSimFixture(2) {}

  void redrive(std::string_view worker) {
    ASSERT_TRUE(transact([&](Transaction& txn) {
      SystemAccess access(txn);
      queue::redrive_some(txn, "default", worker, {}, 0, wall_now(), wall_now());
    }));
  }
  Result<void> fail_run(const Taken& run, std::string error, FailOptions options = {}) {
    return transact(
        [&, &home = queue()](Transaction& txn) { home.fail(txn, run.event.id, *run.event.token, error, options); });
  }
  static Place place(const std::string& key) { return {"default", "save", key}; }
  void damage(const Bytes& row) {
    ASSERT_TRUE(transact([&](Transaction& txn) {
      SystemAccess access(txn);
      ASSERT_TRUE(txn.get(row));
      txn.set(row, "damaged");
    }));
  }
};

TEST_F(DebounceRuns, AHandlerSeesWhatItRunsFor) {
  std::vector<std::string> seen;
  std::vector<WallTime> times;
  on_node([&](Queue& queue, Debouncers&, Node& node) {
    if (node.index() != 0) return;
    ASSERT_TRUE(Debouncers::work(queue, "save", [&](DebounceRun& run) -> Result<Value> {
      seen.push_back(run.debouncer() + " " + run.key() + " " + run.payload().to_json() + " x" +
                     std::to_string(run.count()));
      times = {run.first(), run.latest()};
      EXPECT_EQ(run.attempt(), 1);
      EXPECT_TRUE(run.payloads().empty());
      EXPECT_NE(run.token().stamp, Stamp());
      run.complete([](Transaction& txn) -> Result<void> {
        txn.add("saved", 1);
        return {};
      });
      return Value("saved");
    }));
  });
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  Window first = touch("save", "a", "one");
  sim_.run_for(50ms);
  Window last = touch("save", "a", "two");
  EXPECT_TRUE(sim_.run_until([&] { return info("save").completed == 1; }, 5s));
  EXPECT_LT(first.latest, last.latest);
  auto ms = [](WallTime time) { return WallTime(std::chrono::floor<std::chrono::milliseconds>(time)); };
  EXPECT_EQ(times, (std::vector{ms(first.first), ms(last.latest)})) << "WORK-26";
  EXPECT_EQ(seen, std::vector<std::string>{R"(save a "two" x2)"});
  EXPECT_EQ(sim_.read([](Reader& reader) { return decode_counter(reader.get("saved")); }), 1);
}

// DVU-21: whether something is pending is asked of the application. DVU-B6: a key with nothing pending costs nothing.
TEST_F(DebounceRuns, WithNothingPendingTheHandlerIsNotCalled) {
  int asked = 0, ran = 0;
  bool pending = false;
  on_node([&](Queue& queue, Debouncers&, Node& node) {
    if (node.index() != 0) return;
    RunOptions options;
    options.pending = [&](std::string_view key) -> Result<bool> {
      EXPECT_EQ(key, "a");
      ++asked;
      return pending;
    };
    ASSERT_TRUE(Debouncers::work(
        queue, "update",
        [&](DebounceRun&) {
          ++ran;
          return Value();
        },
        options));
  });
  ASSERT_TRUE(set("update", {.window = 100ms}));
  touch("update", "a");
  EXPECT_TRUE(sim_.run_until([&] { return info("update").completed == 1; }, 5s));
  sim_.run_for(10min);
  EXPECT_EQ(asked, 1) << "and not again until the next touch";
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(rows_of(windows_prefix("default", "update")), 0U);
  pending = true;
  touch("update", "a");
  EXPECT_TRUE(sim_.run_until([&] { return ran == 1; }, 5s));
}

// WORK-B1, WORK-B2: whoever holds the run by a token that is not the present one changes nothing.
TEST_F(DebounceRuns, ARunThatWasTakenOverCanEndNothing) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  touch("save", "a", 1);
  auto events = std::vector<Claimed>();
  while (events.empty()) events = claim("save", {.max = 1, .wait = 1s, .lock = 1s});
  Claimed lost = events[0];
  EXPECT_EQ(state("save", "a").token, lost.token);
  auto again = take_run("save");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->event.id, lost.id);
  EXPECT_GT(again->event.token->stamp, lost.token->stamp) << "tokens only grow";
  auto refused = transact([&, &home = queue()](Transaction& txn) {
    home.complete(txn, lost.id, *lost.token);
    txn.set("result", "of the wrong one");
  });
  EXPECT_EQ(code_of(refused), ErrorCode::kStaleToken);
  EXPECT_EQ(state("save", "a").status, KeyStatus::kRunning);
  end_run(*again);
  sim_.run_for(1s);
  EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
}

// WORK-B5, WORK-U10: nothing is lost by a failure.
TEST_F(DebounceRuns, ARunThatFailsIsTriedAgainAndWhatCameMeanwhileWaits) {
  ASSERT_TRUE(set("save", {.quiet = 100ms, .back_off = {.delay = 2s, .factor = 2, .max_delay = 1min, .max = 10}}));
  touch("save", "a", "first");
  auto run = take_run("save");
  ASSERT_TRUE(run);
  touch("save", "a", "second");
  ASSERT_TRUE(fail_run(*run, "no"));
  Duration failed = sim_.elapsed();
  EXPECT_EQ(state("save", "a").status, KeyStatus::kWaiting);
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_GE(run->at - failed, 1900ms);
  EXPECT_EQ(payload_of(*run), Value("first"));
  ASSERT_TRUE(fail_run(*run, "no"));
  failed = sim_.elapsed();
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_GE(run->at - failed, 3900ms);
  end_run(*run);
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(payload_of(*run), Value("second"));
  end_run(*run);
}

TEST_F(DebounceRuns, ADeadRunLetsTheNextOneThroughAndARedriveWaitsForItsTurn) {
  ASSERT_TRUE(set("save", {.quiet = 100ms, .payload = Payload::kAll, .back_off = {.delay = 0s, .max = 0}}));
  touch("save", "a", "first");
  touch("save", "a", "other");
  auto run = take_run("save");
  ASSERT_TRUE(run);
  ASSERT_TRUE(fail_run(*run, "no"));
  EXPECT_EQ(info("save").dead, 1U);
  EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
  touch("save", "a", "second");
  run = take_run("save");
  ASSERT_TRUE(run);
  touch("save", "a", "third");
  redrive("save");
  sim_.run_for(1s);
  EXPECT_EQ(info("save").dead, 0U);
  EXPECT_EQ(info("save").ready, 0U) << "not beside the run that is under way";
  end_run(*run);
  run = take_run("save");
  ASSERT_TRUE(run) << "the older one first";
  EXPECT_EQ(run->event.value.find("payloads")->to_json(), R"(["first","other"])");
  EXPECT_EQ(count_of(*run), 2U);
  end_run(*run);
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->event.value.find("payloads")->to_json(), R"(["third"])");
  end_run(*run);
}

TEST_F(DebounceRuns, ADeadRunThatIsRedrivenBeforeItsEndIsSeenToRunsAgain) {
  ASSERT_TRUE(set("save", {.quiet = 100ms, .back_off = {.delay = 0s, .max = 0}}));
  touch("save", "a", "first");
  auto run = take_run("save");
  ASSERT_TRUE(run);
  touch("save", "a", "behind");
  sim_.run_for(1s);
  for (int node = 0; node < 2; ++node) on(node).hold();
  ASSERT_TRUE(fail_run(*run, "no"));
  redrive("save");
  for (int node = 0; node < 2; ++node) on(node).release();
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(payload_of(*run), Value("first"));
  end_run(*run);
  run = take_run("save");
  ASSERT_TRUE(run) << "the window behind it is not forgotten";
  EXPECT_EQ(payload_of(*run), Value("behind"));
  end_run(*run);
}

TEST_F(DebounceRuns, CancellingTheEventEndsTheRun) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  touch("save", "a", 1);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  touch("save", "a", 2);
  auto& home = queue();
  ASSERT_TRUE(transact([&](Transaction& txn) { home.cancel(txn, run->event.id, Queue::Force::kYes); }));
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(payload_of(*run), Value(2));
  end_run(*run);
}

// DVU-20 and WORK-B1, with real handlers: a node that dies in a run is replaced, and its run has no second effect.
TEST_F(DebounceRuns, ANodeThatDiesInARunIsReplaced) {
  std::vector<int> ran_on;
  on_node([&](Queue& queue, Debouncers&, Node& node) {
    ASSERT_TRUE(Debouncers::work(queue, "save", [&, index = node.index()](DebounceRun& run) -> Result<Value> {
      ran_on.push_back(index);
      if (ran_on.size() == 1) sim_.crash(index, Crash::kBeforeApply, 1h);
      run.complete([](Transaction& txn) -> Result<void> {
        txn.add("saved", 1);
        return {};
      });
      return Value();
    }));
  });
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  touch("save", "a");
  EXPECT_TRUE(sim_.run_until([&] { return ran_on.size() == 2; }, 20s));
  EXPECT_NE(ran_on[0], ran_on[1]);
  sim_.run_for(5s);
  EXPECT_EQ(sim_.read([](Reader& reader) { return decode_counter(reader.get("saved")); }), 1);
}

TEST_F(DebounceRuns, AnEventThatIsNoRunIsRefusedForGood) {
  on_node([&](Queue& queue, Debouncers&, Node&) {
    ASSERT_TRUE(Debouncers::work(queue, "save", [](DebounceRun&) { return Value(); }));
  });
  emit("save", Value::Map{{"key", "a"}});
  EXPECT_TRUE(sim_.run_until([&] { return info("save").dead == 1; }, 5s));
}

// WORK-26, DVU-B8: what the marker and the lock said, and whose it is.
TEST_F(DebounceRuns, TheStateOfAKeySaysWhoRunsIt) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  EXPECT_EQ(state("save", "never touched").status, KeyStatus::kIdle);
  touch("save", "a", 1);
  sim_.run_for(50ms);
  Window last = touch("save", "a", 1);
  DebounceKey waiting = state("save", "a");
  EXPECT_EQ(waiting.status, KeyStatus::kWaiting);
  EXPECT_EQ(waiting.window->count, 2U);
  EXPECT_EQ(waiting.window->first, last.first);
  EXPECT_EQ(waiting.window->latest, last.latest);
  EXPECT_LT(last.first, last.latest);
  EXPECT_FALSE(waiting.event);
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 1; }, 5s));
  DebounceKey fired_key = state("save", "a");
  EXPECT_EQ(fired_key.status, KeyStatus::kWaiting) << "until somebody takes it";
  EXPECT_TRUE(fired_key.event);
  EXPECT_FALSE(fired_key.window);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  touch("save", "a", 2);
  touch("save", "b", 2);
  DebounceKey running = state("save", "a");
  EXPECT_EQ(running.status, KeyStatus::kRunning);
  EXPECT_EQ(running.event, run->event.id);
  EXPECT_EQ(running.token, run->event.token);
  EXPECT_TRUE(running.since);
  EXPECT_FALSE(running.owner) << "claimed by hand";
  EXPECT_TRUE(running.window);
  auto keys = [&](const PageOptions& page) {
    auto list = sim_.read([&, &home = on()](Reader& reader) { return home.keys(reader, "save", page); });
    std::string names;
    for (const DebounceKey& key : *list) names += key.key + ":" + std::string(name_of(key.status)) + " ";
    return names;
  };
  EXPECT_EQ(keys({}), "a:running b:waiting ");
  EXPECT_EQ(keys({.limit = 1}), "a:running ");
  EXPECT_EQ(keys({.limit = 1, .after = "a"}), "b:waiting ");
  EXPECT_EQ(keys({.after = "b"}), "");
  end_run(*run);
}

// One row that cannot be read must not keep all other windows of the store from firing.
TEST_F(DebounceRuns, AWindowThatCannotBeRunIsLeftAndTheOthersFire) {
  ASSERT_TRUE(set("save", {.quiet = 100ms, .payload = Payload::kFirst}));
  touch("save", "broken", 1);
  damage(payload_key(content_key(place("broken").prefix())));
  for (int i = 0; i < 10; ++i) touch("save", "k" + std::to_string(i), i);
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 10; }, 30s));
  ASSERT_TRUE(transact([&, &home = on()](Transaction& txn) { home.cancel(txn, "save", "broken"); }));
}

// WORK-U11: it does not fire, and the next touch opens another. WORK-B5: what was touched in it is run for then.
TEST_F(DebounceRuns, AWindowThatCannotBeReadIsOpenedAnewByTheNextTouch) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  for (bool is_late : {false, true})
    for (const Bytes& part : {window_key(place("a").prefix()), latest_key(content_key(place("a").prefix()))}) {
      touch("save", "a", 1);
      damage(part);
      if (is_late) {
        sim_.run_for(5s);
        EXPECT_EQ(fired("save"), 0U);
        EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
      }
      touch("save", "a", 2);
      touch("save", "a", 3);
      auto run = take_run("save");
      ASSERT_TRUE(run);
      EXPECT_EQ(payload_of(*run), Value(3));
      end_run(*run);
      sim_.run_for(1s);
      EXPECT_EQ(fired("save"), 0U) << "once for all of them";
    }
}

// WORK-U11, WORK-25.
TEST_F(DebounceRuns, AWindowBehindARunThatCannotBeReadDoesNotKeepTheKey) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  touch("save", "a", 1);
  auto first = take_run("save");
  ASSERT_TRUE(first);
  touch("save", "a", 2);
  sim_.run_for(1s);
  damage(window_key(place("a").prefix()));
  end_run(*first);
  sim_.run_for(1s);
  EXPECT_EQ(fired("save"), 0U);
  touch("save", "a", 3);
  auto second = take_run("save");
  ASSERT_TRUE(second);
  EXPECT_EQ(payload_of(*second), Value(3));
  end_run(*second);
}

// WORK-U11: nor does it keep its debouncer from being removed, and the other keys from being listed.
TEST_F(DebounceRuns, AWindowThatCannotBeReadIsCancelled) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  touch("save", "a", 1);
  touch("save", "b", 1);
  damage(window_key(place("a").prefix()));
  auto keys = sim_.read([&, &home = on()](Reader& reader) { return home.keys(reader, "save"); });
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->size(), 1U);
  bool cancelled = false;
  ASSERT_TRUE(transact([&, &home = on()](Transaction& txn) { cancelled = home.cancel(txn, "save", "a"); }));
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 1; }, 5s));
}

}  // namespace
}  // namespace perdure::debounce
