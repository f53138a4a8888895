// Windows: when they fire, and with what.
#include <gtest/gtest.h>

#include "debounce/debounce_sim_fixture.h"
#include "debounce/settings.h"

namespace perdure::debounce {
namespace {

class DebounceWindow : public DebounceSimFixture {
 protected:
  /// Since the window was opened, and a little for commits.
  static void expect_soon_after(Duration at, Duration due) {
    EXPECT_GE(at, due);
    EXPECT_LT(at, due + 100ms);
  }
  Duration begin() {
    queue();
    return sim_.elapsed();
  }
};

TEST_F(DebounceWindow, FiresWhenItHasBeenQuietForLongEnough) {
  ASSERT_TRUE(set("save", {.quiet = 500ms}));
  Window opened = touch("save", "a", 1);
  EXPECT_EQ(opened.count, 1U);
  EXPECT_EQ(opened.first, opened.latest);
  EXPECT_EQ(opened.fires_at, opened.first + 500ms);
  sim_.run_for(300ms);
  touch("save", "a", 2);
  sim_.run_for(300ms);
  Duration last = begin();
  Window window = touch("save", "a", 3);
  EXPECT_EQ(window.count, 3U);
  EXPECT_EQ(window.first, opened.first);
  EXPECT_EQ(window.fires_at, window.latest + 500ms);
  sim_.run_for(450ms);
  EXPECT_EQ(fired("save"), 0U) << "touched 450 ms ago";
  auto run = take_run("save");
  ASSERT_TRUE(run);
  expect_soon_after(run->at - last, 500ms);
  EXPECT_EQ(count_of(*run), 3U);
  EXPECT_EQ(payload_of(*run), Value(3));
  end_run(*run);
  sim_.run_for(5s);
  EXPECT_EQ(info("save").total, 0U) << "one run for all of them";
  EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
}

TEST_F(DebounceWindow, FiresNoLaterThanMaxWaitHoweverOftenItIsTouched) {
  ASSERT_TRUE(set("save", {.quiet = 500ms, .max_wait = 2s}));
  Duration start = begin();
  touch("save", "a");
  while (sim_.elapsed() - start < 1900ms) {
    sim_.run_for(100ms);
    touch("save", "a");
  }
  auto run = take_run("save");
  ASSERT_TRUE(run);
  expect_soon_after(run->at - start, 2s);
  EXPECT_GT(count_of(*run), 15U);
  end_run(*run);
}

// WORK-1, WORK-2, WORK-3, WORK-4, WORK-5, WORK-6, WORK-7, WORK-8, WORK-9, WORK-24: the timeline of the seed; a touch is
// answered long before the run. WORK-10: who comes while it runs waits. WORK-25, WORK-22, WORK-23: one more for an
// event during the run; the marker of that event stays when the run ends, which frees the key in the same transaction.
TEST_F(DebounceWindow, AMarkerGivesOneRunAtItsEndAndOneMoreForWhatComesDuringTheRun) {
  ASSERT_TRUE(set("transcript", marker_preset("2")->settings));
  Duration start = begin();
  Window first = touch("transcript", "session", "T1");
  sim_.run_for(100ms);
  touch("transcript", "session", "T2");
  sim_.run_for(100ms);
  Window last = touch("transcript", "session", "T3");
  EXPECT_EQ(last.first, first.first);
  EXPECT_GT(last.latest, first.latest);
  EXPECT_EQ(last.fires_at, first.fires_at) << "later events do not move it";
  EXPECT_EQ(rows_of(timetable()), 1U) << "one entry for all events of the session: WORK-B9";
  sim_.run_for(1700ms);
  EXPECT_EQ(fired("transcript"), 0U);
  auto run = take_run("transcript");
  ASSERT_TRUE(run);
  expect_soon_after(run->at - start, 2s);
  EXPECT_EQ(count_of(*run), 3U);
  EXPECT_EQ(state("transcript", "session").status, KeyStatus::kRunning);
  touch("transcript", "session", "T4");
  EXPECT_TRUE(state("transcript", "session").window);
  sim_.run_for(10s);
  EXPECT_EQ(fired("transcript"), 0U) << "one at a time: WORK-13";
  Duration ended = sim_.elapsed();
  end_run(*run);
  auto second = take_run("transcript");
  ASSERT_TRUE(second);
  EXPECT_LT(second->at - ended, 200ms) << "its window has long been over";
  EXPECT_EQ(count_of(*second), 1U);
  EXPECT_EQ(payload_of(*second), Value("T4"));
  end_run(*second);
  sim_.run_for(10s);
  EXPECT_EQ(info("transcript").total, 0U);
  EXPECT_EQ(info("transcript").completed, 2U);
}

// WORK-13: sessions run in parallel.
TEST_F(DebounceWindow, KeysAreIndependentOfEachOther) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  touch("save", "a");
  auto one = take_run("save");
  touch("save", "b");
  auto other = take_run("save");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(*other->event.value.find("key"), Value("b"));
  end_run(*one);
  end_run(*other);
}

TEST_F(DebounceWindow, FiresAtOnceWhenItHasItsCount) {
  ASSERT_TRUE(set("save", {.quiet = 1h, .max_count = 3}));
  touch("save", "a");
  touch("save", "a");
  sim_.run_for(1s);
  EXPECT_EQ(fired("save"), 0U);
  Duration last = sim_.elapsed();
  touch("save", "a");
  auto run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_LT(run->at - last, 100ms);
  // Full, and behind a run: it waits for the end of that.
  for (int i = 0; i < 5; ++i) touch("save", "a");
  sim_.run_for(5s);
  EXPECT_EQ(fired("save"), 0U);
  end_run(*run);
  auto next = take_run("save");
  ASSERT_TRUE(next);
  EXPECT_EQ(count_of(*next), 5U);
  end_run(*next);
}

TEST_F(DebounceWindow, TheLeadingEdgeRunsTheFirstTouchOnly) {
  ASSERT_TRUE(set("save", {.quiet = 1s, .edge = Edge::kLeading}));
  Duration start = begin();
  touch("save", "a", 1);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_LT(run->at - start, 100ms);
  EXPECT_EQ(payload_of(*run), Value(1));
  end_run(*run);
  sim_.run_for(500ms);
  touch("save", "a", 2);
  sim_.run_for(900ms);
  EXPECT_EQ(touch("save", "a", 3).count, 2U) << "counted";
  sim_.run_for(5s);
  EXPECT_EQ(info("save").total, 0U) << "and no run";
  EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
  touch("save", "a", 4);
  run = take_run("save");
  ASSERT_TRUE(run) << "the next burst";
  EXPECT_EQ(payload_of(*run), Value(4));
  end_run(*run);
}

TEST_F(DebounceWindow, BothEdgesRunTheFirstTouchAndThenTheOthers) {
  ASSERT_TRUE(set("save", {.quiet = 1s, .edge = Edge::kBoth}));
  touch("save", "a", 1);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(count_of(*run), 1U);
  touch("save", "a", 2);
  touch("save", "a", 3);
  sim_.run_for(5s);
  EXPECT_EQ(fired("save"), 0U) << "the first is still running";
  end_run(*run);
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(count_of(*run), 2U);
  EXPECT_EQ(payload_of(*run), Value(3));
  end_run(*run);
  sim_.run_for(5s);
  EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
  touch("save", "a", 4);
  run = take_run("save");
  ASSERT_TRUE(run);
  end_run(*run);
  sim_.run_for(5s);
  EXPECT_EQ(info("save").total, 0U) << "nothing came behind the first";
  EXPECT_EQ(info("save").completed, 3U);
}

TEST_F(DebounceWindow, ABurstThatBeginsDuringARunIsLedWhenThatEnds) {
  ASSERT_TRUE(set("save", {.quiet = 100ms, .edge = Edge::kLeading}));
  touch("save", "a", 1);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  sim_.run_for(1s);
  touch("save", "a", 2);
  touch("save", "a", 3);
  sim_.run_for(5s);
  Duration ended = sim_.elapsed();
  end_run(*run);
  run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_LT(run->at - ended, 200ms);
  EXPECT_EQ(count_of(*run), 2U);
  end_run(*run);
}

TEST_F(DebounceWindow, PayloadsAreKeptAsThePolicySays) {
  auto payload_with = [&](Payload policy) {
    EXPECT_TRUE(set("save", {.quiet = 100ms, .payload = policy}));
    touch("save", "a", Value::Map{{"x", 1}, {"y", Value::Map{{"z", 1}}}});
    touch("save", "a", Value::Map{{"x", 2}});
    touch("save", "a", Value::Map{{"x", nullptr}, {"y", Value::Map{{"w", 3}}}});
    auto run = take_run("save");
    EXPECT_TRUE(run);
    if (!run) return Value();
    end_run(*run);
    if (policy != Payload::kAll) return payload_of(*run);
    EXPECT_EQ(run->event.value.find("payload"), nullptr);
    return *run->event.value.find("payloads");
  };
  EXPECT_EQ(payload_with(Payload::kFirst).to_json(), R"({"x":1,"y":{"z":1}})");
  EXPECT_EQ(payload_with(Payload::kLast).to_json(), R"({"x":null,"y":{"w":3}})");
  EXPECT_EQ(payload_with(Payload::kAll).to_json(), R"([{"x":1,"y":{"z":1}},{"x":2},{"x":null,"y":{"w":3}}])");
  EXPECT_EQ(payload_with(Payload::kMerge).to_json(), R"({"y":{"w":3,"z":1}})");
  on().merge_by("save", [](Value so_far, Value next) {
    return Value(so_far.find("x")->to_json() + "+" + next.find("x")->to_json());
  });
  ASSERT_TRUE(set("save", {.quiet = 100ms, .payload = Payload::kMerge}));
  touch("save", "b", Value::Map{{"x", 1}});
  touch("save", "b", Value::Map{{"x", 2}});
  auto run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(payload_of(*run), Value("1+2"));
  end_run(*run);
}

TEST_F(DebounceWindow, AWindowThatCanTakeNoMorePayloadsFiresAndThenRefuses) {
  ASSERT_TRUE(set("log", {.quiet = 1h, .payload = Payload::kAll}));
  std::string large(200'000, 'x');
  for (int i = 0; i < 3; ++i) touch("log", "a", large);
  auto run = take_run("log");
  ASSERT_TRUE(run) << "600,000 bytes are enough";
  EXPECT_EQ(run->event.value.find("payloads")->as_list()->size(), 3U);
  for (int i = 0; i < 4; ++i) touch("log", "a", large);
  auto refused = try_touch("log", "a", large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(state("log", "a").window->count, 4U) << "and nothing was changed";
  end_run(*run);
  run = take_run("log");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->event.value.find("payloads")->as_list()->size(), 4U);
  end_run(*run);
}

TEST_F(DebounceWindow, TouchesCommitWithTheTransactionThatTheyArePartOf) {
  ASSERT_TRUE(set("save", {.quiet = 100ms, .payload = Payload::kAll}));
  auto& home = on();
  auto failed = transact([&](Transaction& txn) {
    home.touch(txn, "save", "a", 1);
    SystemAccess(txn).refuse({ErrorCode::kConflict, "as the test wants it"});
  });
  EXPECT_FALSE(failed);
  sim_.run_for(1s);
  EXPECT_EQ(state("save", "a").status, KeyStatus::kIdle);
  ASSERT_TRUE(transact([&](Transaction& txn) {
    EXPECT_EQ(home.touch(txn, "save", "a", 1).count, 1U);
    EXPECT_EQ(home.touch(txn, "save", "a", 2).count, 2U);
    home.touch(txn, "save", "b", 3);
  }));
  auto one = take_run("save"), other = take_run("save");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->event.value.find("payloads")->to_json(), "[1,2]");
  end_run(*one);
  end_run(*other);
}

TEST_F(DebounceWindow, TouchesOfOneKeyThatComeAtOnceAreCombined) {
  ASSERT_TRUE(set("save", {.quiet = 1s, .payload = Payload::kAll}));
  auto& home = on();
  int answered = 0;
  std::uint64_t most = 0;
  for (int i = 0; i < 300; ++i)
    home.touch_async("save", "hot", i, [&](Result<Window> window) {
      ASSERT_TRUE(window);
      most = std::max(most, window->count);
      ++answered;
    });
  ASSERT_TRUE(sim_.run_until([&] { return answered == 300; }, 10s));
  EXPECT_EQ(most, 300U);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  const auto& payloads = *run->event.value.find("payloads")->as_list();
  ASSERT_EQ(payloads.size(), 300U);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(payloads[static_cast<std::size_t>(i)], Value(i)) << "in their order";
  end_run(*run);
}

TEST_F(DebounceWindow, AWindowThatIsFilledByTwoTransactionsFires) {
  ASSERT_TRUE(set("save", {.quiet = 1h, .max_count = 3}));
  touch("save", "a");
  auto& home = on();
  int done = 0;
  for (int i = 0; i < 2; ++i)
    sim_.node(0)->store().transact_async([&](Transaction& txn) { home.touch(txn, "save", "a"); },
                                         [&](Result<void> result) {
                                           EXPECT_TRUE(result);
                                           ++done;
                                         });
  EXPECT_TRUE(sim_.run_until([&] { return done == 2 && fired("save") == 1; }, 5s));
}

TEST_F(DebounceWindow, AnIdleKeyTakesAnyPayloadThatIsAllowed) {
  ASSERT_TRUE(set("log", {.quiet = 1h, .payload = Payload::kAll}));
  touch("log", "a", std::string(440'000, 'x'));
  touch("log", "a", std::string(440'000, 'x'));
  auto run = take_run("log");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->event.value.find("payloads")->as_list()->size(), 2U);
  end_run(*run);
  auto refused = try_touch("log", "a", std::string(460'000, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  auto& home = on();
  int answered = 0;
  for (int i = 0; i < 3; ++i)
    home.touch_async("log", "b", std::string(290'000, 'x'), [&](Result<Window> window) {
      EXPECT_TRUE(window);
      ++answered;
    });
  EXPECT_TRUE(sim_.run_until([&] { return answered == 3 && fired("log") == 1; }, 5s));
}

TEST_F(DebounceWindow, APayloadThatNoRunCouldHaveIsRefused) {
  Value deep = 1;
  for (std::size_t i = 0; i < Value::kMaxDepth - 2; ++i) deep = Value::List{deep};
  for (Payload policy : {Payload::kLast, Payload::kAll}) {
    ASSERT_TRUE(set("save", {.quiet = 0ms, .payload = policy}));
    touch("save", "a", deep);
    auto run = take_run("save");
    ASSERT_TRUE(run);
    end_run(*run);
  }
  auto refused = try_touch("save", "a", Value::List{deep});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  on().merge_by("merged", [](Value so_far, Value) { return Value(Value::List{std::move(so_far)}); });
  ASSERT_TRUE(set("merged", {.quiet = 1h, .payload = Payload::kMerge}));
  touch("merged", "a", deep);
  EXPECT_FALSE(try_touch("merged", "a", 1)) << "what it would be merged to";
  on().merge_by("merged", [](Value, Value) -> Value { throw std::runtime_error("no"); });
  EXPECT_FALSE(try_touch("merged", "a", 1));
}

TEST_F(DebounceWindow, ATouchAfterTheEndOfALedBurstLeadsTheNextThoughNobodyHasSeenThatEnd) {
  for (Edge edge : {Edge::kLeading, Edge::kBoth}) {
    ASSERT_TRUE(set("save", {.window = 1s, .edge = edge}));
    touch("save", "a", 1);
    auto run = take_run("save");
    ASSERT_TRUE(run);
    end_run(*run);
    sim_.run_for(500ms);
    on().hold();
    sim_.run_for(1s);
    touch("save", "a", 2);
    on().release();
    run = take_run("save");
    ASSERT_TRUE(run) << name_of(edge);
    EXPECT_EQ(payload_of(*run), Value(2));
    end_run(*run);
    sim_.run_for(5s);
  }
}

TEST_F(DebounceWindow, ABurstThatWasLedTakesAnyNumberOfTouches) {
  ASSERT_TRUE(set("save", {.quiet = 10s, .edge = Edge::kLeading, .payload = Payload::kAll}));
  for (int i = 0; i < 10; ++i) touch("save", "a", std::string(200'000, 'x'));
  auto run = take_run("save");
  ASSERT_TRUE(run);
  for (int i = 0; i < 10; ++i) touch("save", "a", std::string(200'000, 'x'));
  end_run(*run);
}

TEST_F(DebounceWindow, PayloadsOutliveAChangeOfThePolicy) {
  auto touched_with = [&](Payload before, Payload after) {
    EXPECT_TRUE(set("save", {.quiet = 1s, .payload = before}));
    touch("save", "a", 1);
    touch("save", "a", 2);
    EXPECT_TRUE(set("save", {.quiet = 1s, .payload = after}));
    auto run = take_run("save");
    EXPECT_TRUE(run);
    if (!run) return std::string();
    end_run(*run);
    return (after == Payload::kAll ? *run->event.value.find("payloads") : payload_of(*run)).to_json();
  };
  EXPECT_EQ(touched_with(Payload::kFirst, Payload::kLast), "1");
  EXPECT_EQ(touched_with(Payload::kAll, Payload::kLast), "2");
  EXPECT_EQ(touched_with(Payload::kAll, Payload::kFirst), "1");
  EXPECT_EQ(touched_with(Payload::kLast, Payload::kAll), "[2]");
  EXPECT_EQ(touched_with(Payload::kLast, Payload::kMerge), "2");
}

TEST_F(DebounceWindow, WhatWasHeldOfARemovedDebouncerIsGoneOrComesBackWithItsName) {
  auto& home = on();
  ASSERT_TRUE(set("save", {.quiet = 10ms}));
  ASSERT_TRUE(transact([&](Transaction& txn) { home.pause(txn, "save"); }));
  for (int i = 0; i < 100; ++i) touch("save", "k" + std::to_string(i), i);
  sim_.run_for(1s);
  // As a process leaves it that dies in the middle.
  ASSERT_TRUE(transact([](Transaction& txn) {
    SystemAccess access(txn);
    ASSERT_TRUE(remove_some(txn, "default", "save", std::nullopt, {}));
  }));
  sim_.run_for(5s);
  EXPECT_EQ(rows_of(held_prefix("default", "save")), 0U);
  EXPECT_EQ(rows_of(windows_prefix("default", "save")), 0U);
  ASSERT_TRUE(set("save", {.quiet = 10ms}));
  touch("save", "k50", "new");
  auto run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(count_of(*run), 1U);
  end_run(*run);
}

// WORK-6, WORK-12: no marker, no run.
TEST_F(DebounceWindow, CancellingClosesTheWindowAndNoRun) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  auto& home = on();
  bool there = false;
  auto cancel = [&] { ASSERT_TRUE(transact([&](Transaction& txn) { there = home.cancel(txn, "save", "a"); })); };
  cancel();
  EXPECT_FALSE(there);
  touch("save", "a", 1);
  cancel();
  EXPECT_TRUE(there);
  sim_.run_for(5s);
  EXPECT_EQ(info("save").total, 0U);
  touch("save", "a", 2);
  auto run = take_run("save");
  ASSERT_TRUE(run);
  EXPECT_EQ(payload_of(*run), Value(2));
  touch("save", "a", 3);
  cancel();
  EXPECT_TRUE(there) << "the one behind the run";
  end_run(*run);
  sim_.run_for(5s);
  EXPECT_EQ(info("save").total, 0U);
}

TEST_F(DebounceWindow, APauseHoldsTheFiring) {
  ASSERT_TRUE(set("save", {.quiet = 100ms}));
  auto& home = on();
  ASSERT_TRUE(transact([&](Transaction& txn) { home.pause(txn, "save", {.by = "me", .reason = "because"}); }));
  for (int i = 0; i < 300; ++i) touch("save", "k" + std::to_string(i), i);
  sim_.run_for(10s);
  EXPECT_EQ(info("save").total, 0U);
  auto info_of = sim_.read([&](Reader& reader) { return home.get(reader, "save"); });
  EXPECT_EQ(info_of->paused->by, "me");
  EXPECT_EQ(touch("save", "k7", "newer").count, 2U);
  ASSERT_TRUE(transact([&](Transaction& txn) { home.unpause(txn, "save"); }));
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 300; }, 10s));
}

TEST_F(DebounceWindow, NewSettingsHoldForWindowsThatAreOpen) {
  ASSERT_TRUE(set("save", {.quiet = 1s}));
  touch("save", "a");
  ASSERT_TRUE(set("save", {.quiet = 10s}));
  sim_.run_for(5s);
  EXPECT_EQ(fired("save"), 0U);
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 1; }, 6s));
}

TEST_F(DebounceWindow, WallClocksThatJumpMoveNothingBack) {
  ASSERT_TRUE(set("save", {.quiet = 2s}));
  touch("save", "a");
  sim_.run_for(1s);
  sim_.jump_wall_clock(0, -1h);  // WORK-B8
  Window window = touch("save", "a");
  EXPECT_GE(window.latest, window.first);
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 1; }, 3s));
}

class TwoNodes : public DebounceSimFixture {
 protected:
  TwoNodes() : DebounceSimFixture(2) {}
};

TEST_F(TwoNodes, FireAWindowOnceBetweenThem) {
  ASSERT_TRUE(set("save", {.quiet = 50ms}));
  for (int i = 0; i < 50; ++i) {
    touch("save", "k" + std::to_string(i), i, i % 2);
    sim_.run_for(10ms);
  }
  sim_.run_for(2s);
  EXPECT_EQ(fired("save"), 50U);
}

// WORK-B5, WORK-27: a crash costs the window nothing.
TEST_F(TwoNodes, AWindowOutlivesTheNodeThatItWasTouchedOn) {
  ASSERT_TRUE(set("save", {.quiet = 1s}, 1));
  touch("save", "a", 1, 1);
  sim_.crash(1, Crash::kAtOnce, 1h);
  EXPECT_TRUE(sim_.run_until([&] { return fired("save") == 1; }, 3s));
}

// WORK-B5: nobody needs to touch it once more.
TEST_F(DebounceWindow, AWindowFiresAfterTheRestartOfTheOnlyNode) {
  ASSERT_TRUE(set("save", {.quiet = 1s}));
  touch("save", "a", 1);
  sim_.crash(0, Crash::kAtOnce, 500ms);
  sim_.run_for(1s);
  auto run = take_run("save", 3s);
  ASSERT_TRUE(run);
  end_run(*run);
}

}  // namespace
}  // namespace perdure::debounce
