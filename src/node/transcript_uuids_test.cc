// Uuids that are booked ahead, and answers that are stored with their calls: what long transcripts are read fast by
// must change nothing of what is stored.
#include <random>

#include "node/transcript_test_util.h"
#include "transcript/hook.h"
#include "transcript/ingest.h"
#include "transcript/uuids.h"

namespace perdure::transcript {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class TranscriptUuids : public TranscriptNode {
 protected:
  void ask(const std::string& id = "s") { hook("UserPromptSubmit", {{"session_id", id}}); }
  void run_again() {
    hook("PostToolUse");
    advance(2s);
  }
  /// The file with other bytes, so that it is read from its beginning.
  void replace_file(const std::string& bytes) {
    write(path() + ".new", bytes);
    fs::rename(path() + ".new", path());
    run_again();
  }
  std::uint64_t number(const std::string& id = "s") { return session(id)->row.number; }
  Bytes data(const std::string& id = "s") { return data_key("default", number(id)); }

  static Entry said(const std::string& uuid, std::optional<WallTime> at = {}) {
    return {.kind = Entry::Kind::kMessage, .uuid = uuid, .at = at, .is_user = true, .body = uuid};
  }
  void store(const std::string& id, const std::vector<Entry>& entries, std::shared_ptr<const Stretch> ahead = nullptr,
             WallTime now = kStart) {
    Batch batch;
    for (const Entry& entry : entries) batch.add(entry);
    batch.ahead = std::move(ahead);
    std::uint64_t of = number(id);
    change([&](Transaction& txn) { store_batch(txn, "default", id, of, batch, now); });
  }
  /// As a run would that goes on behind what was read of the session.
  std::shared_ptr<const Stretch> book_for(const std::string& id, std::vector<std::string> uuids) {
    auto ahead = std::make_shared<const Stretch>(Stretch{session(id)->progress.entries, std::move(uuids), 0});
    std::uint64_t of = number(id);
    change([&](Transaction& txn) { book(txn, "default", of, *ahead, ahead->sorted(), 0); });
    return ahead;
  }
  /// "uuid: session entry", for all rows of uuids.
  Texts owners() {
    Texts all;
    Bytes prefix = tuple::pack_onto(root("default"), "uuid");
    for (const Row& row : rows(prefix)) {
      auto owner = tuple::unpack_as<std::uint64_t, std::uint64_t>(row.value).value();
      all.push_back(std::get<0>(*tuple::unpack_after<std::string>(prefix, row.key)) + ": " +
                    std::to_string(std::get<0>(owner)) + " " + std::to_string(std::get<1>(owner)));
    }
    return all;
  }
  std::vector<Row> booked(const std::string& id = "s") { return rows(booked_key(data(id))); }
  std::vector<Row> answers() { return rows(tuple::pack_onto(data(), "v")); }
  std::vector<Row> answers_by_id() { return rows(tuple::pack_onto(data(), "r")); }

  static std::string call(const std::string& uuid, const std::string& id, Duration at,
                          const std::string& tool = "Bash") {
    return line("assistant", uuid, R"([{"type":"tool_use","id":")" + id + R"(","name":")" + tool + R"(","input":{}}])",
                at);
  }
  static std::string answer(const std::string& uuid, const std::string& id, const std::string& text, Duration at) {
    return line("user", uuid,
                R"([{"type":"tool_result","tool_use_id":")" + id + R"(","content":)" + quoted(text) + "}]", at);
  }
  /// What the tools have answered, in the order of their calls; "-" for nothing.
  Texts outputs() {
    Texts all;
    for (const Message& message : messages())
      for (const auto& result : message.results) all.push_back(result ? result->output : "-");
    return all;
  }
};

TEST_F(TranscriptUuids, OfALongTranscriptAreBookedAndEachIsStoredOnce) {  // WORK-17, WORK-20, WORK-29
  append(path("other"), user("u7", "of another") + user("u70000", "of another"));
  ask("other");
  advance(2s);
  ask();
  std::mt19937 random(7);
  std::vector<int> uuids(40'000);
  std::ranges::generate(uuids, [n = 0]() mutable { return n++; });
  std::ranges::shuffle(uuids, random);
  std::string lines;
  for (int i = 0; i < 40'000; ++i) {
    lines += user("u" + std::to_string(uuids[i]), std::to_string(i) + std::string(100, 'x'), i * 1s);
    if (i % 1'000 == 999) lines += user("u" + std::to_string(uuids[i / 2]), "again") + answer("r", "t", "x", 1s);
  }
  ASSERT_GT(lines.size(), std::size_t{8} << 20) << "from there on it is long";
  write(path(), lines);
  advance(2s);
  auto found = messages();
  ASSERT_EQ(found.size(), 39'999U) << ::testing::PrintToString(log.entries());
  int i = 0;
  for (const Message& message : found) {
    if (uuids[i] == 7) ++i;
    ASSERT_EQ(message.row.uuid, "u" + std::to_string(uuids[i]));
    ASSERT_TRUE(message.row.body.starts_with(std::to_string(i++) + "x"));
  }
  EXPECT_EQ(session()->progress.messages, 39'999U);
  EXPECT_EQ(session()->progress.entries, 40'080U) << "also those that are known, or have no message";
  EXPECT_EQ(session()->progress.bytes_read, 2 * lines.size()) << "read ahead, and then read";
  EXPECT_EQ(owners().size(), 40'001U);
  EXPECT_THAT(booked(), IsEmpty());
  EXPECT_THAT(bodies("other"), ElementsAre("of another", "of another"));
  replace_file(lines + user("new", "new", 50'000s));
  EXPECT_EQ(messages().size(), 40'000U) << "all but the last is known";
  EXPECT_EQ(owners().size(), 40'002U);
  EXPECT_THAT(booked(), IsEmpty());
}

TEST_F(TranscriptUuids, ThatAreBookedKeepNobodyFromStoringThemFirst) {  // WORK-17, WORK-U9
  ask("a");
  ask("b");
  auto ahead = book_for("a", {"u1", "u2"});
  EXPECT_THAT(owners(), ElementsAre("u1: 1 1", "u2: 1 2"));
  EXPECT_THAT(booked("a"), SizeIs(1));
  store("b", {said("u1")});
  EXPECT_THAT(bodies("b"), ElementsAre("u1"));
  store("a", {said("u1"), said("u2")}, ahead);
  EXPECT_THAT(bodies("a"), ElementsAre("u2"));
  EXPECT_THAT(owners(), ElementsAre("u1: 2 1", "u2: 1 2"));
  EXPECT_THAT(booked("a"), IsEmpty());
  store("b", {said("u2")});
  EXPECT_THAT(bodies("b"), ElementsAre("u1")) << "now it is known";
}

TEST_F(TranscriptUuids, ThatAreKnownAreNotBooked) {  // WORK-17
  ask("a");
  ask("b");
  store("a", {said("u1")});
  store("b", {said("u2")});
  const std::uint64_t session_entries = session("a")->progress.entries;
  book_for("a", {"u1", "u2", "u3", "u3"});
  EXPECT_THAT(owners(), ElementsAre("u1: 1 1", "u2: 2 1", "u3: 1 4"));
  // The same in another transaction: of two alike the first still has it.
  const std::uint64_t a = number("a");
  change([&](Transaction& txn) {
    Stretch again{session_entries, {"u1", "u2", "u3", "u3"}, 0};
    book(txn, "default", a, again, std::vector<std::uint32_t>{3}, 3);
  });
  EXPECT_THAT(owners(), ElementsAre("u1: 1 1", "u2: 2 1", "u3: 1 4"));
  // What another has booked and not stored is nobody's.
  book_for("b", {"u3"});
  EXPECT_THAT(owners(), ElementsAre("u1: 1 1", "u2: 2 1", "u3: 2 2"));
}

TEST_F(TranscriptUuids, ThatADeadRunHasBookedAreNobodys) {  // WORK-27, WORK-B5
  ask();
  auto ahead = book_for("s", {"u1", "gone", "u3"});
  store("s", {said("u1", kStart)}, ahead);
  EXPECT_THAT(booked(), SizeIs(1)) << "its stretch goes on";
  // The file is another one by now, so two entries more are not those that were booked.
  append(path(), user("x1", "x1") + user("x2", "x2") + user("u3", "u3"));
  advance(2s);
  EXPECT_THAT(bodies(), UnorderedElementsAre("u1", "x1", "x2", "u3"));
  EXPECT_THAT(owners(), ElementsAre("u1: 1 1", "u3: 1 4", "x1: 1 2", "x2: 1 3"));
  EXPECT_THAT(booked(), IsEmpty());
}

TEST_F(TranscriptUuids, OfAFileThatHasChangedSinceItWasReadAheadAreGivenBack) {  // WORK-B10, WORK-17
  ask();
  auto ahead = book_for("s", {"u1", "u2", "u3"});
  store("s", {said("u1"), said("other"), said("u2")}, ahead);
  EXPECT_THAT(bodies(), ElementsAre("u1", "other", "u2"));
  EXPECT_THAT(owners(), ElementsAre("other: 1 2", "u1: 1 1", "u2: 1 3"));
  EXPECT_THAT(booked(), IsEmpty());
}

TEST_F(TranscriptUuids, OfALongTranscriptThatIsRewrittenBehindThePlaceAreNotTakenForStored) {  // WORK-17, WORK-B10
  ASSERT_TRUE(node->debouncers().in("x").set(kDebouncer, {.window = 2s}));
  Hook asked = transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), "");
  change([&](Transaction& txn) { take_hook(txn, "x", asked, node->debouncers(), kStart); });
  auto said = [](const std::string& name, int count, std::size_t size) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += user(name + std::to_string(i), std::string(size, 'x'));
    return lines;
  };
  const std::string begin = said("begin", 4'000, 1'000), old = said("old", 5'000, 1'000);
  // Where the first stretch ends there are fewer entries by then, and so much more that there is a second one. An entry
  // of the first comes in that, behind the number that it was booked for.
  const std::string changed = said("long", 100, 60'000) + said("new", 5'500, 1'600) + user("old4000", "moved");
  ASSERT_GT(said("long", 100, 60'000).size(), old.size());
  write(path(), begin + old);
  int asked_for_time = 0;
  ASSERT_TRUE(node->queue().in("x").work(kDebouncer, [&](Job& job) {
    auto now = [&] {
      // First for the stretch, and then for each batch.
      if (++asked_for_time == 2) {
        std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(begin.size())) << changed;
      }
      return kStart;
    };
    return run_at(job, now);
  }));
  advance(2s);
  auto found = messages("s", "x");
  EXPECT_EQ(found.size(), 9'601U);
  EXPECT_TRUE(std::ranges::any_of(found, [](const Message& message) { return message.row.body == "moved"; }));
  const Bytes of = data_key("x", session("s", "x")->row.number);
  EXPECT_THAT(rows(booked_key(of)), IsEmpty());
  EXPECT_EQ(rows(tuple::pack_onto(root("x"), "uuid")).size(), 9'601U) << "the others belong to nobody";
}

TEST_F(TranscriptUuids, OfALongTranscriptThatIsRewrittenAsAWholeAreBookedAnew) {  // WORK-17, WORK-B10
  ASSERT_TRUE(node->debouncers().in("x").set(kDebouncer, {.window = 2s}));
  Hook asked = transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), "");
  change([&](Transaction& txn) { take_hook(txn, "x", asked, node->debouncers(), kStart); });
  auto said = [](const std::string& name, char what) {
    std::string lines;
    for (int i = 0; i < 9'000; ++i) lines += user(name + std::to_string(i), std::string(1'000, what));
    return lines;
  };
  const std::string old = said("old", 'x');
  write(path(), old);
  // What was booked of the first file comes last in the second.
  const std::string changed = said("new", 'y') + said("old", 'z');
  int asked_for_time = 0;
  ASSERT_TRUE(node->queue().in("x").work(kDebouncer, [&](Job& job) {
    auto now = [&] {
      if (++asked_for_time == 2) write(path(), changed);
      return kStart;
    };
    return run_at(job, now);
  }));
  advance(2s);
  EXPECT_EQ(messages("s", "x").size(), 18'000U);
  EXPECT_GE(session("s", "x")->progress.bytes_read, old.size() + 2 * changed.size()) << "both were read ahead";
  const Bytes of = data_key("x", session("s", "x")->row.number);
  EXPECT_THAT(rows(booked_key(of)), IsEmpty());
  EXPECT_EQ(rows(tuple::pack_onto(root("x"), "uuid")).size(), 18'000U);
}

TEST_F(TranscriptUuids, OfWhatIsTooOldByNowAreGivenBack) {  // WORK-U14
  ask();
  auto ahead = book_for("s", {"old", "new"});
  store("s", {said("old", kStart), said("new", kStart + 2h)}, ahead, kStart + 73h);
  EXPECT_THAT(bodies(), ElementsAre("new"));
  EXPECT_THAT(owners(), ElementsAre("new: 1 2"));
}

TEST_F(TranscriptUuids, OfWhatIsTooOldAreNotBooked) {  // WORK-U14, WORK-B10
  ask();
  std::string lines;
  for (int i = 0; i < 9'000; ++i) lines += user("u" + std::to_string(i), std::string(1'000, 'x'));
  write(path(), lines);
  advance(2s);
  EXPECT_EQ(owners().size(), 9'000U);
  // A session that goes on for three days, whose messages have gone meanwhile, and then its file is another one.
  for (int hour = 0; hour < 73; ++hour) {
    hook("PostToolUse");
    advance(1h);
  }
  EXPECT_EQ(owners().size(), 0U);
  auto before = session()->progress.bytes_read;
  replace_file(lines + user("new", "new", 73h));
  EXPECT_GT(session()->progress.bytes_read - before, lines.size() * 2) << "it was read ahead";
  EXPECT_EQ(messages().size(), 1U);
  EXPECT_EQ(owners().size(), 1U);
  EXPECT_THAT(booked(), IsEmpty());
}

TEST_F(TranscriptUuids, ARunThatCountsOtherEntriesIsRefused) {  // WORK-13, WORK-20
  ask();
  store("s", {said("u1")});
  const std::uint64_t of = number();
  Batch batch;
  batch.before = 0;
  batch.add(said("u2"));
  auto stored = node->store().transact([&](Transaction& txn) { store_batch(txn, "default", "s", of, batch, kStart); });
  EXPECT_EQ(code_of(stored), ErrorCode::kStaleToken);
  auto ahead = node->store().transact([&](Transaction& txn) {
    SystemAccess access(txn);
    Stretch stretch{0, {"u2"}, 0};
    book(txn, "default", of, stretch, stretch.sorted(), 0);
  });
  EXPECT_EQ(code_of(ahead), ErrorCode::kStaleToken);
  EXPECT_THAT(owners(), ElementsAre("u1: 1 1"));
}

TEST_F(TranscriptUuids, RunsOfOtherDebouncersAreRefused) {  // WORK-13
  ask();
  append(path(), user("u1", "one"));
  advance(2s);
  auto debouncers = node->debouncers();
  ASSERT_TRUE(debouncers.set("other", {.window = 1s, .worker = std::string(kDebouncer)}));
  append(path(), user("u2", "two"));
  ASSERT_TRUE(debouncers.touch("other", "s"));
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("one"));
  EXPECT_THAT(log.entries(), SizeIs(1));
}

TEST_F(TranscriptUuids, OfASessionThatIsRemovedGoWithIt) {  // WORK-U5, WORK-17
  ask();
  std::vector<std::string> uuids;
  for (int i = 0; i < 3'000; ++i) uuids.push_back("u" + std::to_string(i));
  book_for("s", uuids);
  EXPECT_THAT(booked(), SizeIs(6));
  std::uint64_t gone = number();
  remove("s");
  advance(0s);
  EXPECT_THAT(owners(), IsEmpty());
  EXPECT_THAT(rows(data_key("default", gone)), IsEmpty());
  auto late = node->store().transact([&](Transaction& txn) {
    SystemAccess access(txn);
    Stretch ahead{0, {"u1"}, 0};
    book(txn, "default", gone, ahead, ahead.sorted(), 0);
  });
  EXPECT_EQ(code_of(late), ErrorCode::kNotFound);
}

TEST_F(TranscriptUuids, ARowOfTheListThatCannotBeReadKeepsNothingElse) {  // WORK-U14
  ask();
  book_for("s", {"u1"});
  std::uint64_t gone = number();
  change([&, row = booked()[0]](Transaction& txn) { txn.set(row.key, "damaged"); });
  remove("s");
  advance(0s);
  EXPECT_THAT(rows(data_key("default", gone)), IsEmpty());
  EXPECT_THAT(log.entries(), SizeIs(1));
}

TEST_F(TranscriptUuids, AnAnswerThatComesWithItsCallStandsWithIt) {  // WORK-U13, WORK-29
  ask();
  std::string lines = call("a1", "t1", 1s) + answer("r1", "t1", "one", 2s) + call("a2", "t2", 3s);
  append(path(), lines);
  advance(2s);
  EXPECT_THAT(outputs(), ElementsAre("one", "-"));
  EXPECT_THAT(answers_by_id(), IsEmpty());
  append(path(), answer("r2", "t2", "two", 4s));
  run_again();
  EXPECT_THAT(outputs(), ElementsAre("one", "two"));
  EXPECT_THAT(answers_by_id(), SizeIs(1)) << "its message was stored before it came";
  // Read again, all of it is known.
  auto told = changes().size();
  replace_file(lines + answer("r2", "t2", "two", 4s));
  EXPECT_THAT(outputs(), ElementsAre("one", "two"));
  EXPECT_THAT(answers(), SizeIs(2));
  EXPECT_EQ(changes().size(), told);
  // One that is another by now is replaced.
  replace_file(lines + answer("r2", "t2", "two", 4s) + answer("r3", "t1", "uno", 5s) + answer("r4", "t2", "due", 5s));
  EXPECT_THAT(outputs(), ElementsAre("uno", "due"));
  EXPECT_THAT(answers(), SizeIs(2));
  EXPECT_EQ(changes().size(), told + 1);
}

TEST_F(TranscriptUuids, ALaterAnswerIsTheBetterOne) {  // WORK-U13, WORK-29
  ask();
  std::string lines = call("a1", "t1", 1s) + answer("r1", "t1", "one", 2s);
  append(path(), lines);
  advance(2s);
  append(path(), answer("r2", "t1", "uno", 3s));
  run_again();
  EXPECT_THAT(outputs(), ElementsAre("uno"));
  auto told = changes().size();
  replace_file(lines + answer("r2", "t1", "uno", 3s));
  EXPECT_THAT(outputs(), ElementsAre("uno"));
  EXPECT_EQ(changes().size(), told);
  advance(73h);
  EXPECT_THAT(answers(), IsEmpty());
  EXPECT_THAT(answers_by_id(), IsEmpty());
}

TEST_F(TranscriptUuids, MessagesWithTheSameCallHaveTheSameAnswer) {  // WORK-U13, WORK-29
  ask();
  std::string lines = call("a1", "t1", 1s) + answer("r1", "t1", "one", 2s) + call("a2", "t1", 3s);
  append(path(), lines);
  advance(2s);
  EXPECT_THAT(outputs(), ElementsAre("one", "one"));
  EXPECT_THAT(answers(), SizeIs(1));
  append(path(), answer("r2", "t1", "two", 4s) + call("a3", "t1", 5s) + answer("r3", "t1", "two", 6s));
  run_again();
  EXPECT_THAT(outputs(), ElementsAre("two", "two", "two"));
  EXPECT_THAT(answers(), SizeIs(1));
  replace_file(lines + answer("r2", "t1", "two", 4s));
  EXPECT_THAT(outputs(), ElementsAre("two", "two", "two"));
  EXPECT_THAT(answers(), SizeIs(1));
}

TEST_F(TranscriptUuids, ToolsThatARowHasNoRoomForHaveNoAnswers) {  // WORK-20, WORK-29
  ask();
  std::string tools, results;
  for (int i = 0; i < 3'000; ++i) {
    std::string id = "t" + std::to_string(i);
    tools += (i ? "," : "") + (R"({"type":"tool_use","id":")" + id + R"(","name":"Bash","input":{}})");
    results += (i ? "," : "") + (R"({"type":"tool_result","tool_use_id":")" + id + R"(","content":"ok"})");
  }
  std::string lines = line("assistant", "a1", "[" + tools + "]", 1s) + line("user", "r1", "[" + results + "]", 2s);
  append(path(), lines);
  advance(2s);
  ASSERT_THAT(messages(), SizeIs(1));
  EXPECT_TRUE(messages()[0].row.cut);
  std::size_t kept = messages()[0].row.tools.size(), all = answers().size();
  EXPECT_LT(kept, 2'000U);
  auto told = changes().size();
  replace_file(lines);
  EXPECT_EQ(answers().size(), all);
  EXPECT_EQ(changes().size(), told);
}

TEST_F(TranscriptUuids, AnAnswerIsKnownAgainInAnotherBatchThanItsCall) {  // WORK-U13, WORK-29
  ask();
  append(path(), call("a1", "t1", 1s) + answer("r1", "t1", "one", 2s));
  advance(2s);
  // The call is the last of what is there this time, and its answer comes with the next run.
  auto told = changes().size();
  replace_file(call("a1", "t1", 1s));
  append(path(), answer("r1", "t1", "one", 2s));
  run_again();
  EXPECT_THAT(outputs(), ElementsAre("one"));
  EXPECT_THAT(answers(), SizeIs(1));
  EXPECT_EQ(changes().size(), told);
}

TEST_F(TranscriptUuids, TheAnswerToACallWithoutATimeIsKnownAgain) {  // WORK-U13, WORK-U9
  ask();
  std::string lines = R"({"type":"assistant","uuid":"a1","message":{"role":"assistant","content":)"
                      R"([{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}})"
                      "\n" +
                      answer("r1", "t1", "one", 2s);
  append(path(), lines);
  advance(2s);
  EXPECT_THAT(outputs(), ElementsAre("one"));
  replace_file(lines + user("u", "more"));
  EXPECT_THAT(answers(), SizeIs(1));
}

TEST_F(TranscriptUuids, TheAnswerToAListThatWasReplacedIsKnownAgain) {  // WORK-U13, WORK-29
  ask();
  std::string lines = call("a1", "t1", 1s, "TodoWrite") + answer("r1", "t1", "one", 2s) +
                      call("a2", "t2", 3s, "TodoWrite") + answer("r2", "t2", "two", 4s);
  append(path(), lines);
  advance(2s);
  EXPECT_THAT(outputs(), ElementsAre("two"));
  auto told = changes().size();
  replace_file(lines);
  EXPECT_THAT(outputs(), ElementsAre("two"));
  EXPECT_THAT(answers(), SizeIs(2));
  EXPECT_EQ(changes().size(), told);
}

TEST_F(TranscriptUuids, WithAMessageItsAnswersGo) {  // WORK-U14
  ask();
  append(path(), call("a1", "t1", 1s) + answer("r1", "t1", "one", 2s));
  advance(2s);
  EXPECT_THAT(answers(), SizeIs(1));
  advance(73h);
  EXPECT_THAT(messages(), IsEmpty());
  EXPECT_THAT(answers(), IsEmpty());
  EXPECT_THAT(owners(), IsEmpty());
}

}  // namespace
}  // namespace perdure::transcript
