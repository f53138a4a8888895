// The leader and those who wait: times, keep-alives, foreign writes, faults, and the end of following.
#include "debounce/tick_fixture.h"
#include "store/store_test_util.h"

namespace perdure::debounce {
namespace {

class TickLeader : public TickFixture {
 protected:
  std::string refused(TickOptions options, Duration max_age = 5s) {
    Script script;
    Store store = fresh_store();
    auto opened = Tick::open(store, std::make_shared<FakeLeadership>(script, max_age), std::move(options),
                             {.pending = [](const std::string&) { return Pending::kNothing; },
                              .run = [](TickRun&) -> Result<void> { return {}; }});
    return opened ? "" : opened.error().message;
  }
};

// DVU-5, DVU-8, DVU-U1: it watches first, looks at once, and may create a key that never was.
TEST_F(TickLeader, AKeyThatNeverWasIsAcquiredAtOnce) {
  open();
  ASSERT_TRUE(tick().follow(kKey));
  answer_look(false);
  expect("acquire ws.cs", 1ms);
}

// DVU-U1, DVU-U7: the missing-key check comes each 1.5 times max_age, and creates nothing while there is a key.
TEST_F(TickLeader, TheMissingKeyCheckCreatesOnlyWhatIsAbsent) {
  open();
  reach(TickState::kWaiting);
  for (int i = 0; i < 3; ++i) {
    expect_nothing_for(7490ms);
    Asked look = expect("look ws.cs", 20ms);
    look.view(LeadershipView{"other", 4, LeaderStatus::kWaiting, 1s});
  }
  expect_nothing_for(7490ms);
  expect("look ws.cs", 20ms).view(std::nullopt);
  expect("acquire ws.cs", 1ms);
}

// DVU-7: who was not the first watches again, and at once: that is no error.
TEST_F(TickLeader, WhoLosesTheRaceWatchesAgainAtOnce) {
  open();
  reach(TickState::kAttempting);
  open_.fail(ErrorCode::kConflict);
  expect("watch ws.cs", 1ms);
  expect("look ws.cs", 1ms).view(LeadershipView{"other", 4, LeaderStatus::kWaiting, 1s});
  EXPECT_EQ(state(), TickState::kWaiting);
  EXPECT_EQ(tick().info(kKey)->restarted_count, 0u);
}

// DVU-9: ordinary updates cause no attempt.
TEST_F(TickLeader, UpdatesOfOthersCauseNoAttempt) {
  open();
  reach(TickState::kWaiting);
  for (std::uint64_t revision = 4; revision < 20; ++revision) tell(What::kChanged, revision);
  expect_nothing_for(5s);
  EXPECT_EQ(state(), TickState::kWaiting);
}

// DVU-10, DVU-11, C-16: one window before the first check, and another after each that finds nothing.
TEST_F(TickLeader, AnIdleLeaderAsksOnceEachWindow) {
  options_.window = 5s;
  open();
  reach(TickState::kLeaderWaiting);
  for (int i = 0; i < 10; ++i) {
    expect_nothing_for(4990ms);
    expect("pending ws.cs", 20ms).pending(Pending::kNothing);
  }
  EXPECT_EQ(state(), TickState::kLeaderWaiting);
}

// DVU-16, DVU-U1, DVU-U3: keep-alives each half of max_age, on the last known revision.
TEST_F(TickLeader, KeepAlivesAreSentAllTheWhileOnTheLastRevision) {
  options_.window = 60s;
  script_.answers_keepalives = false;
  open();
  reach(TickState::kLeaderWaiting);
  for (std::uint64_t revision = 5; revision < 12; ++revision) {
    expect_nothing_for(2490ms);
    expect("update ws.cs @" + std::to_string(revision) + " waiting", 20ms).number(revision + 1);
  }
}

// DVU-16: also during the run, with the status of it.
TEST_F(TickLeader, KeepAlivesGoOnDuringTheRun) {
  open();
  reach(TickState::kRunning);
  sim_.run_for(26s);
  EXPECT_EQ(script_.keepalives, 10);
  EXPECT_EQ(state(), TickState::kRunning);
}

// DVU-U4: after a failed keep-alive nothing more is written, and it goes back to waiting.
TEST_F(TickLeader, AFailedKeepAliveEndsTheLeadershipWithoutAWrite) {
  options_.window = 60s;
  script_.answers_keepalives = false;
  open();
  reach(TickState::kLeaderWaiting);
  expect("update ws.cs @5 waiting", 2600ms).fail(ErrorCode::kStaleToken);
  answer_look(true);
  expect_nothing_for(7s);
  EXPECT_EQ(state(), TickState::kWaiting);
}

// DVU-B1, DVU-U4: a keep-alive that is not answered within max_age of the last good one has lost the key.
TEST_F(TickLeader, ASlowKeepAliveLosesTheKeyBeforeOthersCanHaveIt) {
  options_.window = 60s;
  script_.answers_keepalives = false;
  open();
  reach(TickState::kLeaderWaiting);
  Asked slow = expect("update ws.cs @5 waiting", 2600ms);
  expect_nothing_for(2450ms);
  EXPECT_EQ(state(), TickState::kLeaderWaiting);
  sim_.run_for(100ms);
  answer_look(true);
  EXPECT_EQ(state(), TickState::kWaiting);
  // What comes of it later is nobody's concern.
  slow.number(6);
  expect_nothing_for(5s);
  EXPECT_EQ(state(), TickState::kWaiting);
}

// DVU-B1: others may have counted from its sending, whenever its answer came.
TEST_F(TickLeader, AKeepAliveCountsFromItsSending) {
  options_.window = 60s;
  script_.answers_keepalives = false;
  open();
  reach(TickState::kLeaderWaiting);
  Asked slow = expect("update ws.cs @5 waiting", 2600ms);
  expect_nothing_for(2s);
  slow.number(6);
  expect("update ws.cs @6 waiting", 510ms);
  expect_nothing_for(2450ms);
  EXPECT_EQ(state(), TickState::kLeaderWaiting);
  sim_.run_for(100ms);
  answer_look(true);
  EXPECT_EQ(state(), TickState::kWaiting);
}

// DVU-B6: a key that is renewed by itself costs neither looks nor keep-alives.
TEST_F(TickLeader, AKeyThatIsRenewedByItselfIsNotPolled) {
  script_.renewal = Renewal::kByItself;
  script_.answers_keepalives = false;
  options_.window = 2h;
  open();
  ASSERT_TRUE(tick().follow(kKey));
  expect("watch ws.cs");
  expect_nothing_for(1h);
  tell(What::kGone);
  expect("acquire ws.cs").number(5);
  expect_nothing_for(1h);
  EXPECT_EQ(state(), TickState::kLeaderWaiting);
}

// DVU-B2: the handler learns during the run that the key is lost; DVU-U4: its result is not written.
TEST_F(TickLeader, ALossDuringARunIsToldToTheHandlerAtOnce) {
  open();
  reach(TickState::kRunning);
  EXPECT_FALSE(open_.run->cancel.signal().cancelled());
  tell(What::kChanged, 7, "other");
  EXPECT_TRUE(open_.run->cancel.signal().cancelled());
  EXPECT_EQ(state(), TickState::kDraining);
  bool written = false;
  open_.run->bodies.push_back([&](Transaction&) -> Result<void> {
    written = true;
    return {};
  });
  open_.nothing({});
  expect("ended ws.cs stale_token");
  answer_look(true);
  EXPECT_FALSE(written);
}

// DVU-20: it does not compete again while its last handler is still running.
TEST_F(TickLeader, ADrainingFollowerDoesNotCompete) {
  open();
  reach(TickState::kDraining);
  tell(What::kGone, 9);
  expect_nothing_for(30s);
  open_.nothing({});
  expect("ended ws.cs stale_token");
  answer_look(false);
  expect("acquire ws.cs");
}

// DVU-4: leaders that fight: each foreign write is a loss, and none of them is answered by a write.
TEST_F(TickLeader, ForeignWritesAreNeverFought) {
  options_.window = 60s;
  open();
  reach(TickState::kLeaderWaiting);
  for (std::uint64_t revision = 6; revision < 30; revision += 4) {
    tell(What::kChanged, revision, "other");
    answer_look(true);
    EXPECT_EQ(state(), TickState::kWaiting);
    tell(What::kGone, revision + 1);
    expect("acquire ws.cs").number(revision + 2);
    EXPECT_EQ(state(), TickState::kLeaderWaiting);
  }
}

// What happened before it had the key, and is told late, is no loss.
TEST_F(TickLeader, LateTellingsOfEarlierOwnersAreNoLoss) {
  open();
  reach(TickState::kLeaderWaiting);
  tell(What::kGone, 4);
  tell(What::kChanged, 3, "other");
  tell(What::kChanged, 5, "me");
  EXPECT_EQ(state(), TickState::kLeaderWaiting);
}

// DVU-U5: no run if the status could not be written.
TEST_F(TickLeader, AFailureToWriteRunningBeginsNoRun) {
  open();
  reach(TickState::kSettingRunning);
  open_.fail(ErrorCode::kUnavailable);
  answer_look(true);
  expect_nothing_for(5s);
}

// DVU-U3: a status waits for the keep-alive that is under way, whose revision it needs.
TEST_F(TickLeader, TheStatusIsWrittenOnTheRevisionOfTheKeepAliveBeforeIt) {
  options_.window = 3s;
  script_.answers_keepalives = false;
  open();
  reach(TickState::kLeaderWaiting);
  Asked alive = expect("update ws.cs @5 waiting", 2600ms);
  expect("pending ws.cs", 600ms).pending(Pending::kWork);
  expect_nothing_for(100ms);
  alive.number(8);
  expect("update ws.cs @8 running");
}

// DVU-U6, DVU-U8: so does the release.
TEST_F(TickLeader, TheReleaseIsOfTheRevisionOfTheKeepAliveBeforeIt) {
  options_.window = 60s;
  script_.answers_keepalives = false;
  open();
  reach(TickState::kLeaderWaiting);
  Asked alive = expect("update ws.cs @5 waiting", 2600ms);
  tick().unfollow(kKey);
  expect_nothing_for(100ms);
  alive.number(9);
  expect("release ws.cs @9").nothing({});
  expect("unwatch ws.cs");
  EXPECT_EQ(state(), TickState::kStopped);
}

// DVU-U9, DVU-B4: errors are counted, and the pauses grow up to their bound; success begins anew.
TEST_F(TickLeader, FaultsAreCountedAndBackOffIsBounded) {
  options_.restart_min = 100ms;
  options_.restart_max = 1s;
  open();
  reach(TickState::kRestarting);
  std::vector<Duration> pauses = {100ms, 200ms, 400ms, 800ms, 1s, 1s, 1s};
  std::uint64_t restarted = 1;
  for (Duration pause : pauses) {
    EXPECT_EQ(tick().info(kKey)->restarted_count, restarted++);
    expect_nothing_for(pause - 5ms);
    expect("watch ws.cs", 10ms);
    expect("look ws.cs").fail(ErrorCode::kUnavailable);
    EXPECT_EQ(state(), TickState::kRestarting);
  }
  // The way back is told: no need to wait any longer.
  tell(What::kUnsure);
  answer_look(true);
  EXPECT_EQ(state(), TickState::kWaiting);
  expect("look ws.cs", 7600ms).fail(ErrorCode::kUnavailable);
  EXPECT_EQ(state(), TickState::kRestarting);
  expect_nothing_for(95ms);
  expect("watch ws.cs", 10ms);
  expect("look ws.cs").view(std::nullopt);
  expect("acquire ws.cs").number(9);
  tell(What::kLost);
  expect("watch ws.cs");
  expect("look ws.cs").fail(ErrorCode::kUnavailable);
  expect_nothing_for(95ms);
  expect("watch ws.cs", 10ms);
  expect("look ws.cs");
  EXPECT_EQ(tick().info(kKey)->restarted_count, restarted + 2);
}

// DVU-U9: the log names the key, and how often it was begun anew.
TEST_F(TickLeader, AFaultIsLoggedWithItsKeyAndCount) {
  std::vector<std::string> lines;
  StoreOptions options;
  options.log = [&](const LogRecord& record) {
    std::string line(record.message);
    for (const LogField& field : record.fields)
      if (field.name != "why") line += " " + std::string(field.name) + "=" + std::string(field.value);
    if (record.component == "tick") lines.push_back(line);
  };
  Script script;
  Store store = fresh_store(options);
  auto opened = Tick::open(store, std::make_shared<FakeLeadership>(script, 5s), {.name = "dvu"},
                           {.pending = [](const std::string&) { return Pending::kNothing; },
                            .run = [](TickRun&) -> Result<void> { return {}; }});
  ASSERT_TRUE(opened && opened->follow(kKey));
  script.asked.back().fail(ErrorCode::kUnavailable);
  EXPECT_EQ(lines,
            std::vector<std::string>{"a key is followed anew after an error tick=dvu key=ws.cs restarted_count=1"});
}

// DVU-U11: a key that is closed is given back, and followed no more.
TEST_F(TickLeader, AClosedKeyIsGivenBackAndForgotten) {
  open();
  reach(TickState::kCheckingPending);
  open_.pending(Pending::kClosed);
  expect("release ws.cs @5").nothing({});
  expect("unwatch ws.cs");
  EXPECT_TRUE(tick().followed().empty());
}

// DVU-1: keys are independent of each other.
TEST_F(TickLeader, KeysAreIndependent) {
  open();
  reach(TickState::kRunning);
  ASSERT_TRUE(tick().follow("ws.other"));
  expect("watch ws.other");
  expect("look ws.other").view(std::nullopt);
  expect("acquire ws.other").number(9);
  expect("pending ws.other", 1100ms).pending(Pending::kWork);
  expect("update ws.other @9 running").number(10);
  Asked other = expect("run ws.other");
  EXPECT_EQ(state(), TickState::kRunning);
  open_.nothing({});
  expect("ended ws.cs ok");
  expect("release ws.cs @6");
  other.nothing({});
  expect("ended ws.other ok");
  expect("release ws.other @10");
}

// DVU-18, DVU-U8: a stop gives idle keys back at once, and waits for runs.
TEST_F(TickLeader, StopGivesTheKeysBack) {
  open();
  reach(TickState::kRunning);
  ASSERT_TRUE(tick().follow("ws.idle"));
  expect("watch ws.idle");
  expect("look ws.idle").view(std::nullopt);
  expect("acquire ws.idle").number(9);
  std::optional<Result<void>> stopped;
  tick().stop_async(30s, [&](Result<void> result) { stopped = std::move(result); });
  expect("release ws.idle @9").nothing({});
  expect("unwatch ws.idle");
  expect_nothing_for(5s);
  EXPECT_FALSE(stopped);
  EXPECT_FALSE(open_.run->cancel.signal().cancelled());
  open_.nothing({});
  expect("ended ws.cs ok");
  expect("release ws.cs @6").nothing({});
  expect("unwatch ws.cs");
  ASSERT_TRUE(sim_.run_until([&] { return stopped.has_value(); }, 1s));
  EXPECT_TRUE(*stopped);
  EXPECT_EQ(tick().follow("ws.late").error().code, ErrorCode::kClosed);
}

// Past the grace the handler is told, and the key is left to age out.
TEST_F(TickLeader, AStopPastItsGraceTellsTheHandlerAndLeavesTheKey) {
  open();
  reach(TickState::kRunning);
  std::optional<Result<void>> stopped;
  tick().stop_async(2s, [&](Result<void> result) { stopped = std::move(result); });
  ASSERT_TRUE(sim_.run_until([&] { return stopped.has_value(); }, 3s));
  EXPECT_EQ(stopped->error().code, ErrorCode::kDeadline);
  EXPECT_TRUE(open_.run->cancel.signal().cancelled());
  expect("unwatch ws.cs");
  open_.nothing({});
  expect_nothing_for(10s);
}

TEST_F(TickLeader, AKeyCanBeFollowedAgainWhileItIsLeaving) {
  open();
  reach(TickState::kDeleting);
  bool left_once = false;
  tick().unfollow(kKey, [&] { left_once = true; });
  ASSERT_TRUE(tick().follow(kKey));
  open_.nothing({});
  expect("unwatch ws.cs");
  answer_look(true);
  EXPECT_TRUE(left_once);
  EXPECT_EQ(state(), TickState::kWaiting);
}

// DVU-B8: what is known of a key.
TEST_F(TickLeader, InspectionShowsStateOwnerRevisionStatusAndAge) {
  open();
  reach(TickState::kWaiting);
  std::optional<Result<TickInfo>> info;
  tick().inspect_async(kKey, [&](Result<TickInfo> result) { info = std::move(result); });
  expect("look ws.cs").view(LeadershipView{"other", 17, LeaderStatus::kRunning, 3s});
  ASSERT_TRUE(info && *info);
  EXPECT_EQ((*info)->state, TickState::kWaiting);
  ASSERT_TRUE((*info)->leader);
  EXPECT_EQ((*info)->leader->owner, "other");
  EXPECT_EQ((*info)->leader->revision, 17u);
  EXPECT_EQ((*info)->leader->status, LeaderStatus::kRunning);
  EXPECT_EQ((*info)->leader->age, Duration(3s));
  tick().inspect_async("ws.unknown", [&](Result<TickInfo> result) { info = std::move(result); });
  EXPECT_EQ(info->error().code, ErrorCode::kNotFound);
}

// DVU-U1.
TEST_F(TickLeader, TheWindowIsFiveSecondsByDefault) {
  EXPECT_EQ(TickOptions().window, 5s);
}

// DVU-B9: settings that cannot work are refused by name.
TEST_F(TickLeader, SettingsThatCannotWorkAreRefusedByName) {
  EXPECT_EQ(refused({}), "");
  EXPECT_NE(refused({.keepalive = 5s}).find("keepalive"), std::string::npos);
  EXPECT_NE(refused({.keepalive = 5s}).find("max_age"), std::string::npos);
  EXPECT_EQ(refused({.keepalive = 4999ms}), "");
  EXPECT_NE(refused({.keepalive = 0s}).find("keepalive"), std::string::npos);
  EXPECT_NE(refused({.window = 0s}).find("window"), std::string::npos);
  EXPECT_NE(refused({.missing_check = -1s}).find("missing_check"), std::string::npos);
  EXPECT_NE(refused({.run_timeout = 0s}).find("run_timeout"), std::string::npos);
  EXPECT_NE(refused({.restart_min = 2s, .restart_max = 1s}).find("restart_max"), std::string::npos);
  EXPECT_NE(refused({.concurrency = 0}).find("concurrency"), std::string::npos);
  EXPECT_NE(refused({.name = "a b"}).find("name"), std::string::npos);
}

}  // namespace
}  // namespace perdure::debounce
