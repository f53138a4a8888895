// Hooks of coding sessions: what each of them makes of its session, and what is kept of it.
#include "debounce/rows.h"
#include "node/transcript_test_util.h"
#include "transcript/file.h"

namespace perdure::transcript {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TranscriptHook : public TranscriptNode {
 protected:
  std::optional<Window> window(const std::string& id = "s") {
    auto key = node->debouncers().key(kDebouncer, id);
    return key ? key->window : std::nullopt;
  }
  std::vector<ProjectRow> projects() {
    auto found = node->store().read([&](Reader& reader) { return transcripts().projects(reader, "default", "", 100); });
    return *found;
  }
};

TEST_F(TranscriptHook, OpensAWindowWithItsFirstAndLatestMoment) {  // WORK-1, WORK-2, WORK-3
  advance(5s);
  hook("SessionStart");
  ASSERT_TRUE(window());
  EXPECT_EQ(window()->first, kStart + 5s);
  EXPECT_EQ(window()->latest, kStart + 5s);
  EXPECT_EQ(window()->fires_at, kStart + 7s);
  advance(300ms);
  hook("PreToolUse");
  EXPECT_EQ(window()->first, kStart + 5s);
  EXPECT_EQ(window()->latest, kStart + 5300ms);
  EXPECT_EQ(window()->fires_at, kStart + 7s);
  EXPECT_EQ(window()->count, 2U);
}

TEST_F(TranscriptHook, TheStatusFollowsTheHooks) {  // WORK-U1
  hook("SessionStart");
  EXPECT_EQ(status(), "started");
  hook("UserPromptSubmit", {{"prompt", "hello"}});
  EXPECT_EQ(status(), "active");
  hook("Stop");
  EXPECT_EQ(status(), "done");
  hook("PreToolUse");
  EXPECT_EQ(status(), "active");
  hook("Notification", {{"notification_type", "permission_prompt"}});
  EXPECT_EQ(status(), "permission_needed");
  hook("PostToolUse");
  EXPECT_EQ(status(), "active");
  hook("Notification", {{"notification_type", "auth_success"}});
  EXPECT_EQ(status(), "active");
  hook("Notification", {{"notification_type", "idle_prompt"}});
  EXPECT_EQ(status(), "idle");
  hook("SubagentStop");
  hook("PreCompact");
  EXPECT_EQ(status(), "idle");
  hook("SessionEnd");
  EXPECT_EQ(status(), "ended");
}

TEST_F(TranscriptHook, IsKeptAsItCame) {  // WORK-U2
  std::string long_one = hook_text("PostToolUse", {{"tool_response", std::string(1'200'000, 'x')}});
  std::string odd = "  " + hook_text("Stop", {{"unknown", "field"}}) + "\n";
  EXPECT_EQ(send(long_one), Taken::kNew);
  EXPECT_EQ(send(odd), Taken::kNew);
  EXPECT_THAT(hooks(), ElementsAre(long_one, odd));
  auto found = rows(hooks_key(data_key("default", session()->row.number)));
  HookRow first = *decode<HookRow>(found.at(0).value);
  EXPECT_EQ(first.type, "PostToolUse");
  EXPECT_EQ(first.at, to_ns(kStart));
}

TEST_F(TranscriptHook, WhatCannotBeUnderstoodIsKeptAndChangesNothing) {  // WORK-U2
  const Texts wrong = {"",
                       "{",
                       "not json",
                       "[1]",
                       "\"x\"",
                       std::string("\xff\0", 2),
                       "{}",
                       "null",
                       R"({"a":1}{"b"})",
                       R"({"session_id":"s","hook_event_name":"Stop")",
                       R"({"session_id":"s","hook_event_name":"Stop","tool_input":{"a":[1,)",
                       R"({"session_id":"s","hook_event_name":"Stop","prompt":"cut)",
                       R"({"session_id":"s" "hook_event_name":"Stop"})",
                       R"({"session_id":"s","prompt":"\x"})",
                       R"({"session_id":7})"};
  for (const std::string& text : wrong) EXPECT_EQ(send(text), Taken::kNew) << text;
  EXPECT_EQ(hooks_of(0), wrong);
  EXPECT_THAT(session_ids(), IsEmpty());
  EXPECT_THAT(log.entries().at(6), HasSubstr("a hook was refused: it has no session_id"));
  EXPECT_EQ(log.entries().size(), wrong.size());
  EXPECT_THAT(node->debouncers().keys(kDebouncer).value(), IsEmpty());
}

TEST_F(TranscriptHook, WhatNobodyAsksForMayHoldAnyJson) {  // WORK-U1, WORK-U2
  write(path(), "");
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& any :
       {std::string("123456789012345678901234567890"), std::string("1e309"), deep, std::string(R"({"a":1,"a":2})"),
        std::string(R"({"$bytes":7})"), std::string(R"("\ud83d")"), std::string(R"([{"session_id":"no"}])")}) {
    hook("UserPromptSubmit", {{"prompt", "x"}});
    advance(2s);
    std::string text = hook_text("Stop", {{"transcript_path", path()}});
    text.insert(1, R"("tool_input":)" + any + R"(,"tool_response":{"in":)" + any + "},");
    ASSERT_EQ(send(text), Taken::kNew);
    EXPECT_EQ(status(), "done") << any.substr(0, 100);
    EXPECT_TRUE(window()) << any.substr(0, 100);
    EXPECT_EQ(hooks().back(), text);
  }
  EXPECT_THAT(log.entries(), IsEmpty());
  EXPECT_THAT(hooks_of(0), IsEmpty());
}

TEST_F(TranscriptHook, OfAFieldThatIsThereTwiceTheLastCounts) {  // WORK-U2
  ASSERT_EQ(send(R"({"session_id":"a","hook_event_name":"Stop","session_id":"b","hook_event_name":"SessionEnd"})"),
            Taken::kNew);
  EXPECT_THAT(session_ids(), ElementsAre("b"));
  EXPECT_EQ(status("b"), "ended");
}

TEST_F(TranscriptHook, OfNobodyTheLastThousandAreKept) {  // WORK-U2
  std::vector<Hook> many;
  for (int i = 0; i < 1'005; ++i) many.push_back(transcripts().read(std::to_string(i), "id" + std::to_string(i)));
  ASSERT_TRUE(transcripts().take("default", many));
  Texts kept = hooks_of(0);
  EXPECT_EQ(kept.size(), 1'000U);
  EXPECT_EQ(kept.front(), "5");
  EXPECT_EQ(kept.back(), "1004");
  EXPECT_EQ(rows(tuple::pack_onto(root("default"), "seen")).size(), 1'000U) << "the ids go with them";
}

TEST_F(TranscriptHook, OfNobodyFewerAreKeptIfTheyAreLong) {  // WORK-U2
  std::vector<Hook> many;
  for (int i = 0; i < 30; ++i) many.push_back(transcripts().read(std::to_string(i), "id" + std::to_string(i)));
  ASSERT_TRUE(transcripts().take("default", many));
  // Each counts as 16 more.
  for (int i = 0; i < 62; ++i) ASSERT_EQ(send(std::string(1 << 20, static_cast<char>('0' + i))), Taken::kNew);
  Texts kept = hooks_of(0);
  EXPECT_EQ(kept.size(), 59U);
  EXPECT_EQ(kept.front()[0], '3');
  EXPECT_EQ(kept.back()[0], '0' + 61);
  EXPECT_EQ(rows(hooks_key(data_key("default", 0))).size(), 59U * 3) << "all of their rows";
  EXPECT_THAT(rows(tuple::pack_onto(root("default"), "seen")), IsEmpty());
}

TEST_F(TranscriptHook, OfNobodyIsKeptForSevenDays) {  // WORK-U14
  ASSERT_EQ(send("first", "an id"), Taken::kNew);
  advance(std::chrono::hours(24));
  ASSERT_EQ(send("second"), Taken::kNew);
  advance(std::chrono::hours(6 * 24) - 1ms);
  EXPECT_THAT(hooks_of(0), ElementsAre("first", "second"));
  advance(1ms);
  EXPECT_THAT(hooks_of(0), ElementsAre("second"));
  EXPECT_THAT(rows(tuple::pack_onto(root("default"), "seen")), IsEmpty());
  advance(std::chrono::hours(24));
  EXPECT_THAT(hooks_of(0), IsEmpty());
  EXPECT_THAT(rows(timetable()), IsEmpty());
  ASSERT_EQ(send("third"), Taken::kNew);
  advance(std::chrono::hours(7 * 24));
  EXPECT_THAT(hooks_of(0), IsEmpty());
}

TEST_F(TranscriptHook, TheLastThousandPromptsAreShown) {  // WORK-U4
  std::vector<Hook> many;
  for (int i = 1; i <= 1'005; ++i)
    many.push_back(transcripts().read(hook_text("UserPromptSubmit", {{"prompt", std::to_string(i)}}), ""));
  ASSERT_TRUE(transcripts().take("default", many));
  Texts shown = prompts();
  ASSERT_EQ(shown.size(), 1'000U);
  EXPECT_EQ(shown.front(), "6");
  EXPECT_EQ(shown.back(), "1005");
  EXPECT_EQ(session()->prompts.back().first, 1'005U);
}

TEST_F(TranscriptHook, ADebouncerThatSomebodyRemovedIsMadeAgain) {  // WORK-1
  hook("SessionStart");
  advance(2s);
  ASSERT_TRUE(node->debouncers().remove(kDebouncer));
  hook("PreToolUse");
  EXPECT_TRUE(window());
}

TEST_F(TranscriptHook, WritesAMarkerAnewThatCannotBeRead) {  // WORK-U11
  const Bytes prefix = debounce::Place{"default", std::string(kDebouncer), "s"}.prefix();
  hook("UserPromptSubmit", {{"prompt", "x"}});
  advance(2s);
  Texts said;
  for (const Bytes& part : {debounce::window_key(prefix), debounce::latest_key(debounce::content_key(prefix))}) {
    auto say = [&] {
      said.push_back(std::to_string(said.size()));
      append(path(), user(said.back(), said.back(), 1s * said.size()));
      hook("PreToolUse");
      change([&](Transaction& txn) { txn.set(part, "damaged"); });
    };
    say();
    advance(1s);
    hook("PostToolUse");
    if (HasFatalFailure()) return;
    advance(2s);
    EXPECT_EQ(bodies(), said) << "written anew before anybody came to it";
    say();
    advance(5s);
    EXPECT_EQ(bodies().size(), said.size() - 1) << "passed over";
    hook("PostToolUse");
    EXPECT_EQ(window()->first, node->now());
    advance(2s);
    EXPECT_EQ(bodies(), said);
  }
}

TEST_F(TranscriptHook, OfAnySizeIsTaken) {  // WORK-U2
  const std::string huge(std::size_t{3} << 20, 'p');
  // Some engines hold less than that in a transaction: then it is cut, and counts all the same.
  const std::size_t kept = std::min(huge.size(), node->store().limits().transaction_bytes_max / 2);
  for (std::string field : {"prompt", "hook_event_name", "cwd", "timestamp", "source", "transcript_path"}) {
    auto taken = send(hook_text("UserPromptSubmit", {{"session_id", field}, {field, huge}}));
    EXPECT_TRUE(taken) << field << ": " << to_string(taken.error());
    EXPECT_THAT(hooks(field).at(0), HasSubstr(huge.substr(0, kept))) << field;
    EXPECT_EQ(status(field), field == "hook_event_name" ? "started" : "active") << field;
  }
  EXPECT_EQ(prompts("prompt").at(0), huge.substr(0, 500'000));
  EXPECT_EQ(session("cwd")->row.project, "");
}

TEST_F(TranscriptHook, OfAProjectWithAnyNameIsTaken) {  // WORK-U3
  const std::string id(200, 's'), space(64, 'p'), nuls = "/" + std::string(119, '\0');
  auto taken = send(hook_text("SessionStart", {{"session_id", id}, {"cwd", nuls}}), "", space);
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_EQ(session(id, space)->row.project, nuls);
}

TEST_F(TranscriptHook, AnyIdIsTakenOnce) {  // WORK-U15
  for (const std::string& id :
       {std::string("\xff\0\x01", 3), std::string(std::size_t{3} << 20, 'i'), std::string("ü")}) {
    EXPECT_EQ(send(hook_text("UserPromptSubmit", {{"prompt", "x"}}), id), Taken::kNew);
    EXPECT_EQ(send(hook_text("UserPromptSubmit", {{"prompt", "x"}}), id), Taken::kDuplicate);
  }
  advance(std::chrono::hours(24 * 8));
  EXPECT_THAT(rows(tuple::pack_onto(root("default"), "seen")), IsEmpty());
}

TEST_F(TranscriptHook, ASessionStaysInItsProject) {  // WORK-U3
  hook("SessionStart");
  advance(1min);
  std::string other = directory + "/other.jsonl";
  hook("PreToolUse", {{"cwd", "/users/me/shop/deep"}, {"transcript_path", other}});
  EXPECT_EQ(session()->row.project, "/users/me/shop");
  EXPECT_EQ(session()->row.transcript_path, other);
  EXPECT_EQ(session()->row.created, to_ns(kStart));
  EXPECT_EQ(session()->row.updated, to_ns(kStart + 1min));
  ASSERT_EQ(projects().size(), 1U);
  EXPECT_EQ(projects()[0].path, "/users/me/shop");
  EXPECT_EQ(projects()[0].created, to_ns(kStart));
  EXPECT_EQ(projects()[0].updated, to_ns(kStart + 1min));
}

TEST_F(TranscriptHook, WhatIsLeftOutErasesNothing) {  // WORK-U4
  hook("UserPromptSubmit", {{"prompt", "hello"}});
  ASSERT_EQ(send(R"({"hook_event_name":"Stop","session_id":"s","cwd":null,"transcript_path":null,"prompt":null})"),
            Taken::kNew);
  EXPECT_EQ(session()->row.project, "/users/me/shop");
  EXPECT_EQ(session()->row.transcript_path, path());
  EXPECT_EQ(session()->row.name, "hello");
}

TEST_F(TranscriptHook, PromptsComeWithAStartAndWithWhatIsAsked) {  // WORK-U4
  hook("SessionStart", {{"source", "startup"}});
  EXPECT_THAT(prompts(), ElementsAre(""));
  hook("UserPromptSubmit", {{"prompt", "first"}});
  hook("SessionStart", {{"source", "resume"}});
  hook("UserPromptSubmit", {{"prompt", "second"}});
  hook("Stop", {{"prompt", "no prompt of its own"}});
  EXPECT_THAT(prompts(), ElementsAre("", "first", "second"));
  EXPECT_EQ(session()->prompts[1].second.at, to_ns(kStart));
}

TEST_F(TranscriptHook, TheFirstPromptNamesTheSessionInTwoHundredCharacters) {  // WORK-U4
  std::string long_one;
  for (int i = 0; i < 250; ++i) long_one += "ü";
  hook("SessionStart");
  EXPECT_EQ(session()->row.name, "");
  hook("UserPromptSubmit", {{"prompt", long_one}});
  hook("UserPromptSubmit", {{"prompt", "another"}});
  EXPECT_EQ(session()->row.name, long_one.substr(0, 400));
}

TEST_F(TranscriptHook, AStartRemovesOthersOfTheProjectThatOnlyStarted) {  // WORK-U5
  hook("SessionStart", {{"session_id", "first"}});
  hook("SessionStart", {{"session_id", "busy"}, {"cwd", "/tmp/x"}});
  hook("UserPromptSubmit", {{"session_id", "busy"}, {"prompt", "work"}});
  EXPECT_THAT(rows(started_key("default", "/tmp/x")), IsEmpty());
  hook("SessionStart", {{"session_id", "elsewhere"}, {"cwd", "/users/me/other"}});
  std::uint64_t number = session("first")->row.number;
  hook("SessionStart", {{"session_id", "second"}});
  hook("SessionStart", {{"session_id", "third"}, {"cwd", "/tmp/x"}});
  hook("SessionStart", {{"session_id", "third"}, {"cwd", "/tmp/x"}, {"source", "clear"}});
  append(path("third"), user("u1", "it goes on"));
  advance(2s);
  EXPECT_THAT(session_ids(), ElementsAre("busy", "elsewhere", "second", "third"));
  EXPECT_THAT(rows(data_key("default", number)), IsEmpty());
  EXPECT_THAT(bodies("third"), ElementsAre("it goes on"));
}

TEST_F(TranscriptHook, AStartLeavesASessionThatHasSaidSomething) {  // WORK-U5
  for (std::string source : {"resume", "compact", "clear"}) {
    hook("SessionStart", {{"session_id", source}});
    hook("UserPromptSubmit", {{"session_id", source}, {"prompt", "work"}});
    hook("SessionStart", {{"session_id", source}, {"source", source}});
  }
  hook("SessionStart", {{"session_id", "written"}});
  append(path("written"), assistant("a1", "nobody asked"));
  advance(2s);
  EXPECT_EQ(status("written"), "started");
  hook("SessionStart", {{"session_id", "another"}});
  EXPECT_THAT(session_ids(), ElementsAre("another", "clear", "compact", "resume", "written"));
  EXPECT_THAT(bodies("written"), ElementsAre("nobody asked"));
}

TEST_F(TranscriptHook, ThatWasSpooledHasTheTimeAtWhichItCame) {  // WORK-B11
  advance(1h);
  late_hook("UserPromptSubmit", kStart + 10s, {{"prompt", "first"}});
  late_hook("UserPromptSubmit", kStart + 20s, {{"prompt", "second"}});
  EXPECT_EQ(session()->row.created, to_ns(kStart + 10s));
  EXPECT_EQ(session()->row.updated, to_ns(kStart + 20s));
  EXPECT_EQ(session()->prompts.at(0).second.at, to_ns(kStart + 10s));
  EXPECT_EQ(session()->prompts.at(1).second.at, to_ns(kStart + 20s));
  EXPECT_EQ(decode<HookRow>(rows(hooks_key(data_key("default", session()->row.number))).at(0).value)->at,
            to_ns(kStart + 10s));
  EXPECT_EQ(projects()[0].created, to_ns(kStart + 10s));
  append(path(), user("u1", "first", 9s) + assistant("a1", "yes", 12s) + assistant("a2", "and yes", 25s));
  advance(2s);
  ASSERT_EQ(messages().size(), 3U);
  EXPECT_EQ(messages()[0].prompt, 1U);
  EXPECT_EQ(messages()[1].prompt, 1U);
  EXPECT_EQ(messages()[2].prompt, 2U);
  late_hook("UserPromptSubmit", kStart + 2h, {{"session_id", "ahead"}, {"prompt", "x"}});
  EXPECT_EQ(session("ahead")->row.updated, to_ns(kStart + 1h + 2s)) << "a clock that is ahead";
}

TEST_F(TranscriptHook, ThatWasSpooledUndoesNothingThatIsNewer) {  // WORK-U1
  hook("SessionStart");
  advance(1min);
  hook("Stop", {{"transcript_path", path("new")}});
  late_hook("PreToolUse", kStart + 30s, {{"transcript_path", path("old")}});
  EXPECT_EQ(status(), "done");
  EXPECT_EQ(session()->row.transcript_path, path("new"));
  EXPECT_EQ(session()->row.updated, to_ns(kStart + 1min));
  EXPECT_EQ(projects()[0].updated, to_ns(kStart + 1min));
  advance(1min);
  hook("SubagentStop");
  late_hook("Notification", kStart + 90s, {{"notification_type", "idle_prompt"}});
  EXPECT_EQ(status(), "idle") << "of what came since, nothing had a status";
  EXPECT_EQ(session()->row.updated, to_ns(kStart + 2min));
  hook("SessionStart", {{"session_id", "newer"}});
  late_hook("SessionStart", kStart + 1min, {{"session_id", "older"}});
  EXPECT_EQ(status("newer"), "started") << "it started later";
}

TEST_F(TranscriptHook, TheTimeThatASenderGivesIsTakenIfItCanBe) {  // WORK-U1
  const WallTime now = kStart + 1h;
  auto came = [&](WallTime sent) { return came_at(sent, {now, now}, kSendingTime); };
  EXPECT_EQ(came(now - 750ms), now - 750ms);
  EXPECT_EQ(came(now - 1min), now - 1min);
  EXPECT_EQ(came(now - 61s), now) << "more than a minute ago";
  EXPECT_EQ(came(*parse_rfc3339("1700-01-01T00:00:00Z")), now);
  EXPECT_EQ(came(now + 1ms), now) << "not yet";
  EXPECT_EQ(came_at(now - 2h, {now, now}), now - 2h) << "in the spool";
}

TEST_F(TranscriptHook, AClockThatGoesBackMakesNoneAnOlderOne) {  // WORK-B8, WORK-U1, WORK-U6
  advance(1min);
  // Their clock, which is this one's, goes back by half a minute between the first and the second.
  auto take = [&](const std::string& type, WallTime sent, const Clocks& now) {
    Hook hook = transcripts().read(hook_text(type), "");
    hook.sent = sent;
    hook.came = came_at(sent, now, kSendingTime);
    ASSERT_TRUE(transcripts().take("default", {hook}));
  };
  const WallTime begun = kStart + 10s;
  take("UserPromptSubmit", begun, {begun, begun});
  take("Stop", begun - 25s, {begun - 25s, begun + 5s});
  EXPECT_EQ(status(), "done");
  EXPECT_EQ(session()->row.updated, to_ns(begun + 5s));
  take("PostToolUse", begun - 26s, {begun - 24s, begun + 6s});
  EXPECT_EQ(status(), "done") << "it was overtaken";
  EXPECT_EQ(came_at(begun - 5min, {begun, begun + 30s}), begun - 5min + 30s) << "in the spool";
  EXPECT_EQ(session()->prompts.at(0).second.at, to_ns(begun)) << "as the transcript has it";
}

TEST_F(TranscriptHook, PromptsHaveTheTimeOfTheClockThatTheTranscriptHas) {  // WORK-15, WORK-B11
  // That of the store is five minutes ahead: some other machine has been.
  advance(5min);
  for (auto [prompt, at] : {std::pair("first", 10s), std::pair("second", 60s)}) {
    Hook asked = transcripts().read(hook_text("UserPromptSubmit", {{"prompt", prompt}}), "");
    asked.sent = kStart + at;
    asked.came = came_at(*asked.sent, {kStart + 5min, kStart + 5min}, kSendingTime);
    ASSERT_TRUE(transcripts().take("default", {asked}));
  }
  EXPECT_EQ(session()->row.updated, to_ns(kStart + 5min)) << "all else is by the clock of the store";
  append(path(), assistant("a1", "to the first", 20s) + assistant("a2", "to the second", 70s));
  advance(2s);
  ASSERT_EQ(messages().size(), 2U);
  EXPECT_EQ(messages()[0].prompt, 1U);
  EXPECT_EQ(messages()[1].prompt, 2U);
}

TEST_F(TranscriptHook, ThatWasOvertakenUndoesNothingThatIsNewer) {  // WORK-U1, WORK-U4
  advance(1s);
  late_hook("UserPromptSubmit", kStart + 20ms, {{"prompt", "asked"}});
  late_hook("SessionStart", kStart + 10ms);
  EXPECT_EQ(status(), "active");
  late_hook("Stop", kStart + 40ms);
  late_hook("PostToolUse", kStart + 30ms);
  EXPECT_EQ(status(), "done");
  append(path(), user("u1", "asked", 20ms) + assistant("a1", "yes", 25ms));
  advance(2s);
  for (const Message& message : messages())
    EXPECT_EQ(message.prompt, 1U) << "the prompt without a text is an earlier one, though it came later";
}

TEST_F(TranscriptHook, SessionsWithoutAProjectAreNotOneProject) {  // WORK-U5
  hook("SessionStart", {{"session_id", "first"}, {"cwd", ""}});
  hook("SessionStart", {{"session_id", "second"}, {"cwd", ""}});
  EXPECT_THAT(session_ids(), ElementsAre("first", "second"));
}

TEST_F(TranscriptHook, TheFeedTellsEachStatusWithTheNameOfTheProject) {  // WORK-U6, WORK-U12
  hook("SessionStart", {{"cwd", "/users/me/shop/"}});
  advance(1s);
  hook("Notification", {{"notification_type", "permission_prompt"}});
  hook("SessionStart", {{"session_id", "root"}, {"cwd", "/"}});
  EXPECT_THAT(changes(), ElementsAre("started s shop at 03-01T00:00:00", "permission_needed s shop at 03-01T00:00:01",
                                     "started root / at 03-01T00:00:01"));
}

TEST_F(TranscriptHook, TheFeedTellsOnlyWhatChanges) {  // WORK-U12
  hook("UserPromptSubmit", {{"prompt", "x"}});
  for (std::string type : {"PreToolUse", "PostToolUse", "SubagentStop"}) hook(type);
  hook("UserPromptSubmit", {{"prompt", "another"}});
  hook("Stop");
  hook("Stop");
  EXPECT_THAT(changes(), ElementsAre("active s shop at 03-01T00:00:00", "active s shop at 03-01T00:00:00",
                                     "done s shop at 03-01T00:00:00"));
}

TEST_F(TranscriptHook, WithAnIdIsTakenOnce) {  // WORK-U15
  std::string text = hook_text("UserPromptSubmit", {{"prompt", "hello"}});
  EXPECT_EQ(send(text, "one"), Taken::kNew);
  EXPECT_EQ(send(text, "one"), Taken::kDuplicate);
  EXPECT_EQ(send(text, "two"), Taken::kNew);
  EXPECT_EQ(send(text, "one", "other"), Taken::kNew) << "another space";
  EXPECT_EQ(send("nonsense", "bad"), Taken::kNew);
  EXPECT_EQ(send("nonsense", "bad"), Taken::kDuplicate);
  EXPECT_THAT(prompts(), ElementsAre("hello", "hello"));
  EXPECT_EQ(hooks_of(0).size(), 1U);
}

TEST_F(TranscriptHook, WithTheSameTimeSessionAndTypeIsTakenOnce) {  // WORK-U15
  const std::string time = "2026-03-01T00:00:00.123Z";
  std::string text = hook_text("PreToolUse", {{"timestamp", time}});
  EXPECT_EQ(send(text, "one"), Taken::kNew);
  auto before = window();
  EXPECT_EQ(send(text, "two"), Taken::kDuplicate);
  EXPECT_EQ(window()->count, before->count);
  EXPECT_EQ(send(hook_text("PostToolUse", {{"timestamp", time}})), Taken::kNew);
  EXPECT_EQ(send(hook_text("PreToolUse", {{"timestamp", time}, {"session_id", "t"}})), Taken::kNew);
  EXPECT_EQ(send(hook_text("PreToolUse", {{"timestamp", "2026-03-01T00:00:00.124Z"}})), Taken::kNew);
  EXPECT_EQ(send(R"({"session_id":"s","hook_event_name":"Stop","timestamp":12})"), Taken::kNew);
  EXPECT_EQ(send(R"({"session_id":"s","hook_event_name":"Stop","timestamp":12})"), Taken::kDuplicate);
  EXPECT_EQ(send(hook_text("Stop")), Taken::kNew);
  EXPECT_EQ(send(hook_text("Stop")), Taken::kNew) << "without a time nothing tells them apart";
  EXPECT_EQ(hooks().size(), 6U);
  EXPECT_EQ(rows(tuple::pack_onto(root("default"), "seen")).size(), 1U) << "what was not kept leaves nothing";
}

TEST_F(TranscriptHook, ABadPathIsRefusedAndTheRestIsTaken) {  // WORK-14
  fs::create_directories(directory + "/folder");
  fs::create_symlink(directory + "/loop", directory + "/loop");
  fs::create_symlink("/etc", directory + "/out");
  write(path(), "");
  hook("SessionStart");
  advance(2s);
  for (const std::string& bad :
       {std::string("/dev/null"), directory + "/folder", directory + "/loop", std::string("/etc/passwd"),
        directory + "/out/passwd", directory + "/../../../etc/passwd", std::string("relative.jsonl")}) {
    std::size_t said = log.entries().size();
    hook("PreToolUse", {{"transcript_path", bad}});
    ASSERT_EQ(log.entries().size(), said + 1) << bad;
    EXPECT_THAT(log.entries().back(), HasSubstr("a hook was refused: the ")) << bad;
    EXPECT_TRUE(window()) << "the transcript that is known may have grown: " << bad;
    advance(2s);
    hook("PreToolUse", {{"session_id", "none"}, {"transcript_path", bad}});
    EXPECT_FALSE(window("none")) << bad;
  }
  EXPECT_EQ(session()->row.transcript_path, path());
  EXPECT_EQ(status(), "active");
  EXPECT_EQ(hooks().size(), 8U);
  EXPECT_EQ(hooks("none").size(), 7U);
}

TEST_F(TranscriptHook, WhatCanBeNoPathIsRefusedWithoutALook) {  // WORK-14
  for (const std::string& bad : {std::string("relative.jsonl"), "/" + std::string(kPathBytesMax, 'x')}) {
    Hook read = transcripts().read(R"({"session_id": "s", "transcript_path": ")" + bad + "\"}", "");
    EXPECT_FALSE(read.transcript_path) << "no file system needs to be asked, or may be: it can be away";
    EXPECT_THAT(read.problem, HasSubstr("the path of a transcript"));
  }
}

TEST_F(TranscriptHook, ASessionIdIsDataAndNeverAPath) {  // WORK-B12
  hook("UserPromptSubmit", {{"session_id", "../../x"}, {"transcript_path", path()}, {"prompt", "hello"}});
  append(path(), user("u1", "hello"));
  advance(2s);
  EXPECT_THAT(bodies("../../x"), ElementsAre("hello"));
  EXPECT_THAT(session_ids(), ElementsAre("../../x"));
  for (const std::string& bad : {std::string("a\nb"), std::string("\x7f"), std::string(201, 'x')}) {
    ASSERT_EQ(send(hook_text("SessionStart", {{"session_id", bad}, {"transcript_path", path()}})), Taken::kNew);
    EXPECT_THAT(log.entries().back(), HasSubstr("a hook was refused: the session has")) << bad;
  }
  EXPECT_THAT(session_ids(), ElementsAre("../../x"));
  EXPECT_EQ(hooks_of(0).size(), 3U);
}

TEST_F(TranscriptHook, SpacesHaveSessionsOfTheirOwn) {  // WORK-13
  // Another comes first in one of them, so that each is counted there by itself.
  append(path("t"), user("t1", "first"));
  ASSERT_EQ(send(hook_text("UserPromptSubmit", {{"session_id", "t"}}), "", "other"), Taken::kNew);
  advance(2s);
  append(path(), user("u1", "hello"));
  std::string text = hook_text("UserPromptSubmit", {{"prompt", "hello"}});
  ASSERT_EQ(send(text), Taken::kNew);
  ASSERT_EQ(send(text, "", "other"), Taken::kNew);
  advance(2s);
  EXPECT_THAT(bodies("s"), ElementsAre("hello"));
  EXPECT_THAT(bodies("s", "other"), ElementsAre("hello"));
  remove("s");
  advance(0s);
  EXPECT_FALSE(session("s"));
  EXPECT_THAT(bodies("s", "other"), ElementsAre("hello"));
}

TEST_F(TranscriptHook, SessionsAreListedByIdProjectAndStatus) {  // WORK-U3
  for (std::string id : {"c", "a", "b", "d"})
    hook("UserPromptSubmit", {{"session_id", id}, {"cwd", id == "b" ? "/b" : "/other"}, {"prompt", "x"}});
  hook("Stop", {{"session_id", "d"}});
  EXPECT_THAT(session_ids(), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(session_ids({.project = "/b"}), ElementsAre("b"));
  EXPECT_THAT(session_ids({.status = "done"}), ElementsAre("d"));
  EXPECT_THAT(session_ids({.project = "/other", .after = "a", .limit = 1}), ElementsAre("c"));
}

}  // namespace
}  // namespace perdure::transcript
