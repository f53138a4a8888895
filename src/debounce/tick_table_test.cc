// Every edge of the state diagram, each from a follower that was brought into its first state.
#include "debounce/tick_table.h"

#include "debounce/tick_fixture.h"

namespace perdure::debounce {
namespace {

class TickTable : public TickFixture {
 protected:
  /// Makes `event` happen to a follower in `from`.
  void inject(TickState from, TickEvent event) {
    using E = TickEvent;
    if (event == E::kGone) tell(What::kGone);
    if (event == E::kAbsent) expect("look ws.cs", 7600ms).view(std::nullopt);
    if (event == E::kFault && from == TickState::kWaiting)
      expect("look ws.cs", 7600ms).fail(ErrorCode::kUnavailable);
    else if (event == E::kFault)
      open_.fail(ErrorCode::kUnavailable);
    if (event == E::kWon) open_.number(5);
    if (event == E::kLostRace) open_.fail(ErrorCode::kConflict);
    if (event == E::kWindowOver) sim_.run_for(options_.window + 50ms);
    if (event == E::kNothing) open_.pending(Pending::kNothing);
    if (event == E::kWork) open_.pending(Pending::kWork);
    if (event == E::kClosed) open_.pending(Pending::kClosed);
    if (event == E::kCheckFailed) open_.fail(ErrorCode::kHandlerFailed);
    if (event == E::kRunningSet) open_.number(6);
    if (event == E::kSetFailed) open_.fail(ErrorCode::kStaleToken);
    if (event == E::kNoToken) {
      // The key can be written, and the store not.
      sim_.cut_off(0, 20s);
      open_.number(6);
      sim_.run_until([&] { return !script_.asked.empty(); }, 15s);
    }
    if (event == E::kRunEnded) open_.nothing({});
    if (event == E::kRunFailed) open_.fail(ErrorCode::kHandlerFailed);
    if (event == E::kReleased) open_.nothing({});
    if (event == E::kNotReleased) open_.fail(ErrorCode::kStaleToken);
    if (event == E::kLost) tell(What::kLost);
    if (event == E::kBackOffOver) sim_.run_for(options_.restart_min + 10ms);
    if (event == E::kCancel) tick().unfollow(kKey);
    // The end of a run is told, and takes a transaction unless the key was lost.
    if (event == E::kRunEnded || event == E::kRunFailed) {
      std::string how = from == TickState::kDraining ? "stale_token" : event == E::kRunEnded ? "ok" : "handler_failed";
      expect("ended ws.cs " + how);
    }
  }

  /// What is seen of an action from outside.
  void expect_action(TickState from, TickAction action) {
    using A = TickAction;
    bool running = from == TickState::kRunning || from == TickState::kSettingRunning;
    if (action == A::kWatch || action == A::kForget) {
      expect("watch ws.cs");
      expect("look ws.cs");
    }
    if (action == A::kAcquire) expect("acquire ws.cs");
    if (action == A::kAskPending) expect("pending ws.cs");
    if (action == A::kSetRunning) expect("update ws.cs @5 running");
    if (action == A::kRun) {
      EXPECT_NE(expect("run ws.cs").run, nullptr);
    }
    if (action == A::kRelease || action == A::kLeave) expect(running ? "release ws.cs @6" : "release ws.cs @5");
    if (action == A::kStop) expect("unwatch ws.cs");
    if (action == A::kForgetRun) {
      EXPECT_TRUE(open_.run->cancel.signal().cancelled());
    }
  }

  /// Nothing was asked beside what the action asks.
  void expect_quiet() {
    sim_.run_for(20ms);
    EXPECT_EQ(left(), "");
  }

  void take(const TickEdge& edge) {
    open();
    reach(edge.from);
    inject(edge.from, edge.on);
    expect_action(edge.from, edge.action);
    EXPECT_EQ(name_of(state()), name_of(edge.to));
    expect_quiet();
  }
  void take_leaving(const TickEdge& edge) {
    open();
    reach(edge.from);
    tick().unfollow(kKey);
    ASSERT_EQ(name_of(state()), name_of(edge.from));
    inject(edge.from, edge.on);
    expect_action(edge.from, edge.leaving_action);
    EXPECT_EQ(name_of(state()), name_of(edge.leaving_to));
    expect_quiet();
  }
};

class TickEdges : public TickTable, public ::testing::WithParamInterface<std::size_t> {};

// DVU-4, DVU-5, DVU-6, DVU-7, DVU-8, DVU-9, DVU-10, DVU-11, DVU-12, DVU-13, DVU-14, DVU-15, DVU-U3, DVU-U4, DVU-U5,
// DVU-U6, DVU-U7, DVU-U8, DVU-U9, DVU-U10, DVU-U11, DVU-U12: the diagram of the seed, edge by edge.
TEST_P(TickEdges, IsTaken) {
  take(kTickTable[GetParam()]);
}

// DVU-U8: cancellation beats every other event.
TEST_P(TickEdges, IsTakenWhenCancelled) {
  const TickEdge& edge = kTickTable[GetParam()];
  // A follower in such a state leaves it by the cancel itself, so that there is no second half to take.
  if (tick_edge(edge.from, TickEvent::kCancel)->to != edge.from) return;
  take_leaving(edge);
}

INSTANTIATE_TEST_SUITE_P(Table, TickEdges, ::testing::Range<std::size_t>(0, kTickTable.size()),
                         [](const ::testing::TestParamInfo<std::size_t>& row) {
                           const TickEdge& edge = kTickTable[row.param];
                           std::string name(name_of(edge.from));
                           return name + "_" + std::to_string(static_cast<int>(edge.on)) + "_to_" +
                                  std::string(name_of(edge.to));
                         });

TEST_F(TickTable, EventsWithoutAnEdgeChangeNothing) {
  // Of the hundreds of pairs, those that can happen: what is told late to one who does not care.
  open();
  reach(TickState::kRunning);
  tell(What::kUnsure);
  tell(What::kChanged, 6, "me");
  tell(What::kChanged, 4, "other");
  tell(What::kGone, 4);
  expect_quiet();
  EXPECT_EQ(state(), TickState::kRunning);
}

}  // namespace
}  // namespace perdure::debounce
