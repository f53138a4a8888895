// What becomes of sessions by themselves, as time goes by.
#include "debounce/rows.h"
#include "node/transcript_test_util.h"
#include "transcript/tend.h"

namespace perdure::transcript {
namespace {

using std::chrono::hours;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr hours kDay(24);

class TranscriptTend : public TranscriptNode {
 protected:
  /// A session that has said something, with a message of now.
  void talk(const std::string& id = "s", const std::string& text = "hello") {
    hook("UserPromptSubmit", {{"session_id", id}, {"prompt", text}});
    append(path(id), user(id + std::to_string(++said_), text, node->now() - kStart));
  }
  /// All that there is of transcripts, but for projects and counters.
  std::size_t row_count() {
    std::size_t count = rows(timetable()).size() + rows(gone_sessions()).size();
    for (std::string part : {"session", "started", "uuid", "seen", "data"})
      count += rows(tuple::pack_onto(root("default"), part)).size();
    return count;
  }

  int said_ = 0;
};

TEST_F(TranscriptTend, AnIdleSessionHasEndedAfterTenMinutes) {  // WORK-U14
  talk();
  advance(10min - 1ms);
  EXPECT_EQ(status(), "active");
  advance(1ms);
  EXPECT_EQ(status(), "ended");
  EXPECT_THAT(changes(), ElementsAre("active s shop at 03-01T00:00:00", "updated s shop +1 to 1 at 03-01T00:00:02",
                                     "ended s shop at 03-01T00:10:00"));
}

TEST_F(TranscriptTend, WhatIsHeardOfASessionPutsItsEndOff) {  // WORK-U14
  talk();
  advance(9min);
  hook("PreToolUse");
  advance(10min - 1ms);
  EXPECT_EQ(status(), "active");
  advance(1ms);
  EXPECT_EQ(status(), "ended");
}

TEST_F(TranscriptTend, ASessionThatGoesOnEndsAgain) {  // WORK-U14
  talk();
  advance(1h);
  EXPECT_EQ(status(), "ended");
  hook("PreToolUse");
  EXPECT_EQ(status(), "active");
  advance(10min);
  EXPECT_EQ(status(), "ended");
  favourite("s", true);
  advance(1h);
  hook("PreToolUse");
  advance(10min);
  EXPECT_EQ(status(), "ended");
}

TEST_F(TranscriptTend, ASessionThatSaidNothingGoesWhenItIsIdle) {  // WORK-U14
  hook("SessionStart", {{"session_id", "empty"}});
  hook("SessionStart", {{"session_id", "asked"}, {"cwd", "/a"}});
  hook("UserPromptSubmit", {{"session_id", "asked"}, {"cwd", "/a"}, {"prompt", "x"}});
  hook("SessionStart", {{"session_id", "written"}, {"cwd", "/b"}});
  append(path("written"), assistant("a1", "x"));
  hook("SessionStart", {{"session_id", "liked"}, {"cwd", "/c"}});
  favourite("liked", true);
  advance(10min - 1ms);
  EXPECT_THAT(session_ids(), ElementsAre("asked", "empty", "liked", "written"));
  advance(1ms);
  EXPECT_THAT(session_ids(), ElementsAre("asked", "liked", "written"));
  EXPECT_THAT(changes(), Contains("removed empty shop at 03-01T00:10:00"));
}

TEST_F(TranscriptTend, ASessionThatEndedIsNotEmptyBeforeItsTranscriptWasRead) {  // WORK-U14
  hook("SessionStart");
  advance(9min + 59s);
  append(path(), user("u1", "hello"));
  hook("SessionEnd");
  advance(10min);
  EXPECT_THAT(bodies(), ElementsAre("hello"));
  EXPECT_THAT(prompts(), ElementsAre("hello"));
}

TEST_F(TranscriptTend, MessagesGoAfterThreeDays) {  // WORK-U14
  talk("s", "one");
  // Of its two calls one is answered in the same batch, and one in another.
  append(path(), line("assistant", "a1",
                      R"([{"type":"tool_use","id":"t1","name":"Bash","input":{}},)"
                      R"({"type":"tool_use","id":"t2","name":"Bash","input":{}}])",
                      1s) +
                     line("user", "r1", R"([{"type":"tool_result","tool_use_id":"t1","content":"x"}])", 1s));
  advance(kDay);
  append(path(), line("user", "r2", R"([{"type":"tool_result","tool_use_id":"t2","content":"y"}])", 2s));
  talk("s", "two");
  advance(2 * kDay - 1ms);
  EXPECT_THAT(bodies(), ElementsAre("one", "", "two"));
  const Bytes data = data_key("default", session()->row.number);
  EXPECT_EQ(rows(tuple::pack_onto(data, "v")).size(), 2U);
  EXPECT_EQ(rows(tuple::pack_onto(data, "r")).size(), 1U);
  advance(1ms);
  EXPECT_THAT(bodies(), ElementsAre("", "two"));
  advance(1s);
  EXPECT_THAT(bodies(), ElementsAre("two"));
  EXPECT_EQ(rows(tuple::pack_onto(root("default"), "uuid")).size(), 1U);
  EXPECT_THAT(rows(tuple::pack_onto(data, "v")), IsEmpty());
  EXPECT_THAT(rows(tuple::pack_onto(data, "r")), IsEmpty());
  advance(kDay);
  EXPECT_THAT(bodies(), IsEmpty());
  EXPECT_THAT(prompts(), ElementsAre("one", "two"));
}

TEST_F(TranscriptTend, AnOldTranscriptIsAsNewAsItsSession) {  // WORK-U14
  hook("UserPromptSubmit", {{"prompt", "x"}});
  append(path(), user("u1", "long ago", -30 * kDay));
  advance(3 * kDay - 1ms);
  EXPECT_THAT(bodies(), ElementsAre("long ago"));
  advance(1ms);
  EXPECT_THAT(bodies(), IsEmpty());
}

TEST_F(TranscriptTend, SessionsGoAfterSevenDaysWithAllThatIsTheirs) {  // WORK-U14
  talk();
  hook("PreToolUse", {{"timestamp", "2026-03-01T00:00:00Z"}});
  ASSERT_EQ(send(hook_text("Stop"), "an id"), Taken::kNew);
  advance(7 * kDay - 1ms);
  EXPECT_EQ(status(), "ended");
  advance(1ms);
  EXPECT_EQ(status(), "gone");
  EXPECT_EQ(row_count(), 0U);
  EXPECT_EQ(changes().back(), "removed s shop at 03-08T00:00:00");
}

TEST_F(TranscriptTend, HooksGoAfterSevenDaysAlsoOfASessionThatGoesOn) {  // WORK-U14
  ASSERT_EQ(send(hook_text("UserPromptSubmit", {{"prompt", std::string(1'200'000, 'x')}}), "old"), Taken::kNew);
  ASSERT_EQ(send(hook_text("PreToolUse", {{"timestamp", "2026-03-01T00:00:00Z"}})), Taken::kNew);
  advance(kDay);
  hook("PostToolUse");
  advance(6 * kDay - 1ms);
  EXPECT_EQ(hooks().size(), 3U);
  advance(1ms);
  EXPECT_THAT(hooks(), ElementsAre(hook_text("PostToolUse")));
  EXPECT_THAT(rows(tuple::pack_onto(root("default"), "seen")), IsEmpty());
  EXPECT_THAT(rows(tuple::pack_onto(data_key("default", session()->row.number), "o")), IsEmpty());
  EXPECT_EQ(status(), "ended");
}

TEST_F(TranscriptTend, AFavouriteStaysWithItsMessagesUntilItIsNone) {  // WORK-U14
  talk();
  favourite("s", true);
  EXPECT_TRUE(session()->row.favourite);
  advance(30 * kDay);
  EXPECT_EQ(status(), "ended");
  EXPECT_THAT(bodies(), ElementsAre("hello"));
  EXPECT_THAT(hooks(), IsEmpty());
  EXPECT_EQ(session()->row.due, 0) << "nothing is to be done";
  favourite("s", false);
  advance(0s);
  EXPECT_EQ(status(), "gone");
  EXPECT_EQ(row_count(), 0U);
}

TEST_F(TranscriptTend, ManyRowsGoInSeveralTurns) {  // WORK-U14
  hook("UserPromptSubmit", {{"prompt", "x"}});
  std::string lines;
  for (int i = 0; i < 1'300; ++i) lines += user("u" + std::to_string(i), "x", 1s);
  write(path(), lines);
  std::vector<Hook> many;
  for (int i = 0; i < 1'300; ++i) many.push_back(transcripts().read(hook_text("PreToolUse"), std::to_string(i)));
  ASSERT_TRUE(transcripts().take("default", many));
  advance(3 * kDay + 2s);
  EXPECT_THAT(bodies(), IsEmpty());
  EXPECT_EQ(hooks().size(), 1'301U);
  advance(4 * kDay);
  EXPECT_EQ(row_count(), 0U);
}

TEST_F(TranscriptTend, MessagesThatStayKeepNoOldHooksFromGoing) {  // WORK-U14
  talk();
  advance(4 * kDay);
  hook("PreToolUse");
  std::string lines;
  for (int i = 0; i < 1'300; ++i) lines += user("u" + std::to_string(i), "x", 4 * kDay + i * 1min);
  write(path(), lines);
  advance(1h);
  // Held, it is tended by hand: who tends it in vain would do so every millisecond.
  node->hold();
  advance(3 * kDay);
  for (int turns = 0; turns < 3; ++turns) change([&](Transaction& txn) { tend(txn, node->now()); });
  EXPECT_THAT(hooks(), ElementsAre(hook_text("PreToolUse")));
  EXPECT_EQ(bodies().size(), 1'300U - 61) << "one for each minute of the hour, and the first";
  EXPECT_EQ(session()->row.due, to_ms(kStart + 7 * kDay + 61min)) << "when the next message goes";
}

TEST_F(TranscriptTend, OneTurnSeesToSoManyRowsOfAllSessions) {  // WORK-U14
  constexpr std::size_t kEach = 400;
  for (std::string id : {"a", "b", "c", "d", "e"}) {
    hook("UserPromptSubmit", {{"session_id", id}, {"prompt", "x"}});
    for (std::size_t i = 0; i < kEach; ++i) append(path(id), user(id + std::to_string(i), "x", 1s));
  }
  advance(1h);
  node->hold();
  advance(3 * kDay);
  auto count = [&] { return rows(tuple::pack_onto(root("default"), "uuid")).size(); };
  ASSERT_EQ(count(), 5 * kEach);
  change([&](Transaction& txn) { EXPECT_TRUE(tend(txn, node->now()).more); });
  EXPECT_GE(count(), 5 * kEach - 1'000);
  EXPECT_LT(count(), 5 * kEach);
  node->release();
  advance(1s);
  EXPECT_EQ(count(), 0U);
}

TEST_F(TranscriptTend, RowsThatCannotBeReadKeepNothingElse) {  // WORK-U14
  auto damage = [&](const Bytes& key) { change([&](Transaction& txn) { txn.set(key, Bytes("damaged")); }); };
  for (std::string id : {"hook", "message", "progress", "session", "sound"}) talk(id);
  advance(1min);
  auto data = [&](const std::string& id) { return data_key("default", session(id)->row.number); };
  damage(rows(messages_key(data("message"))).at(0).key);
  damage(rows(hooks_key(data("hook"))).at(0).key);
  damage(progress_key(data("progress")));
  damage(session_key("default", "session"));
  advance(3 * kDay);
  for (std::string id : {"hook", "message", "sound"}) EXPECT_THAT(rows(messages_key(data(id))), IsEmpty()) << id;
  advance(4 * kDay);
  EXPECT_EQ(rows(sessions_key("default")).size(), 1U) << "only what nobody can tell the age of is left";
  EXPECT_EQ(rows(tuple::pack_onto(root("default"), "data")).size(), rows(data_key("default", 4)).size());
  EXPECT_THAT(log.entries(), Each(HasSubstr("a row that cannot be read")));
  EXPECT_EQ(log.entries().size(), 3U);
}

TEST_F(TranscriptTend, AMarkerThatCannotBeReadKeepsNothingElse) {  // WORK-U11, WORK-U14
  talk("broken");
  const Bytes marker = debounce::window_key(debounce::Place{"default", std::string(kDebouncer), "broken"}.prefix());
  change([&](Transaction& txn) { txn.set(marker, "damaged"); });
  for (std::string id : {"a", "b"}) talk(id);
  // Held, it is tended by hand: who cannot would try for ever.
  node->hold();
  advance(10min);
  change([&](Transaction& txn) { tend(txn, node->now()); });
  if (HasFatalFailure()) return;
  EXPECT_THAT(session_ids({.status = "ended"}), ElementsAre("a", "b", "broken"));
  node->release();
  advance(7 * kDay);
  EXPECT_THAT(log.entries(), IsEmpty());
  EXPECT_EQ(row_count(), 0U);
}

TEST_F(TranscriptTend, ManySessionsAreSeenTo) {  // WORK-U14
  for (int i = 0; i < 65; ++i) talk("s" + std::to_string(i));
  advance(10min);
  EXPECT_EQ(session_ids({.status = "ended"}).size(), 65U);
  advance(7 * kDay);
  EXPECT_EQ(row_count(), 0U);
}

TEST_F(TranscriptTend, ATurnThatMovedASessionIsFollowedByAnother) {  // WORK-U14
  talk("a");
  advance(5min);
  talk("b");
  hook("PreToolUse", {{"session_id", "a"}});
  node->hold();
  advance(0s);
  change([&](Transaction& txn) {
    DueTurn turn = tend(txn, kStart + 10min);
    EXPECT_TRUE(turn.acted);
    EXPECT_TRUE(turn.more) << "the next of those that were seen to may be the first";
    DueTurn second = tend(txn, kStart + 10min);
    EXPECT_FALSE(second.more);
    EXPECT_EQ(second.next, kStart + 15min);
  });
}

TEST_F(TranscriptTend, AHeldNodeRemovesNothing) {  // WORK-U14
  talk();
  advance(1h);
  node->hold();
  advance(30 * kDay);
  EXPECT_EQ(status(), "ended");
  node->release();
  advance(0s);
  EXPECT_EQ(status(), "gone");
}

TEST_F(TranscriptTend, WhatIsNotThereCannotBeRemovedNorLiked) {  // WORK-U14
  auto removed =
      node->store().transact([&](Transaction& txn) { return transcripts().remove(txn, "default", "nobody"); });
  EXPECT_EQ(code_of(removed), ErrorCode::kNotFound);
  auto liked = node->store().transact(
      [&](Transaction& txn) { return transcripts().set_favourite(txn, "default", "nobody", true); });
  EXPECT_EQ(code_of(liked), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace perdure::transcript
