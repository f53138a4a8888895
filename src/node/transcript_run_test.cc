// Runs: what is read of the transcript of a session, when, and that each message is stored once.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <set>

#include "node/transcript_test_util.h"
#include "runtime/latch.h"
#include "transcript/ingest.h"

namespace perdure::transcript {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// While it lives, this process can open no file.
class AllFilesOpen {
 public:
  AllFilesOpen() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = {256, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) open_.push_back(fd);
  }
  ~AllFilesOpen() {
    for (int fd : open_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_{};
  std::vector<int> open_;
};

class TranscriptRun : public TranscriptNode {
 protected:
  /// A prompt, by which there is something to attach messages to.
  void ask(const std::string& text = "", const std::string& id = "s") {
    hook("UserPromptSubmit", {{"session_id", id}, {"prompt", text}});
  }
  /// Another hook, and its run.
  void run_again() {
    hook("PostToolUse");
    advance(2s);
  }
  std::uint64_t bytes_read() { return session()->progress.bytes_read; }
  /// Runs of the session that have ended, as "00:00:02.000" each.
  Texts runs() {
    auto feed = Changes::open(node->store());
    auto page = feed->read({.limit = 1'000});
    Texts all;
    for (const Change& change : page->changes)
      if (change.type == "event" && change.state == "completed")
        all.push_back(format_rfc3339(change.at).substr(11, 12));
    return all;
  }
};

TEST_F(TranscriptRun, HooksOfABurstAreOneRunTwoSecondsAfterTheFirst) {  // WORK-4, WORK-5, WORK-24, WORK-9
  append(path(), user("u1", "hello"));
  ask("hello");
  advance(100ms);
  hook("PreToolUse");
  advance(100ms);
  hook("PostToolUse");
  advance(1799ms);
  EXPECT_THAT(messages(), IsEmpty()) << "the window is open";
  advance(1ms);
  EXPECT_THAT(bodies(), ElementsAre("hello"));
  EXPECT_EQ(node->debouncers().key(kDebouncer, "s")->status, KeyStatus::kIdle);
  advance(1h);
  EXPECT_THAT(runs(), ElementsAre("00:00:02.000"));
}

TEST_F(TranscriptRun, AHookAfterTheRunHasARunOfItsOwn) {  // WORK-6, WORK-7, WORK-8, WORK-25
  append(path(), user("u1", "one"));
  ask("one");
  advance(2s);
  append(path(), assistant("a1", "two", 2s));
  hook("Stop");
  advance(1s);
  hook("SubagentStop");
  advance(1min);
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
  EXPECT_THAT(runs(), ElementsAre("00:00:02.000", "00:00:04.000"));
}

TEST_F(TranscriptRun, SessionsRunEachOnItsOwn) {  // WORK-13
  append(path("a"), user("u1", "of a"));
  append(path("b"), user("u2", "of b"));
  ask("", "a");
  advance(1s);
  ask("", "b");
  advance(1s);
  EXPECT_THAT(bodies("a"), ElementsAre("of a"));
  EXPECT_THAT(bodies("b"), IsEmpty());
  advance(1s);
  EXPECT_THAT(bodies("b"), ElementsAre("of b"));
}

TEST_F(TranscriptRun, SessionsDoNotWaitForEachOther) {  // WORK-13
  // A run that finds no file says so, and each stays in the middle of that until the other is there as well.
  std::atomic<int> there = 0;
  Latch both;
  on_log = [&] {
    if (++there == 2) both.set();
    diary.note(both.wait_for(10s) ? "together" : "alone");
  };
  ask("x", "a");
  ask("x", "b");
  advance(2s);
  EXPECT_THAT(diary.entries(), ElementsAre("together", "together"));
}

TEST_F(TranscriptRun, ARunThatNeverEndsKeepsOneThreadAndNoOtherSession) {  // WORK-13
  node.reset();
  NodeOptions options{.store = fresh_store_url()};
  options.store_options.clock = std::make_shared<TestClock>(kStart);
  Latch end;
  std::atomic<int> hanging = 0;
  // It stays in the middle of saying that a line is malformed.
  options.store_options.log = [&](const LogRecord& record) {
    if (record.component != "transcript") return;
    diary.note(std::string(record.message));
    if (!record.message.starts_with("lines were passed over")) return;
    ++hanging;
    end.wait();
    --hanging;
  };
  options.transcripts.roots = {directory};
  options.transcripts.marker.run.timeout = 300ms;
  node = open(std::move(options));
  ASSERT_TRUE(node);
  ask("x", "a");
  append(path("a"), user("a1", "of a") + "malformed\n");
  for (int attempts = 0; attempts < 10; ++attempts) advance(1min);
  EXPECT_EQ(hanging, 1);
  EXPECT_THAT(diary.entries(), Contains(HasSubstr("the run before this one still waits")));
  ask("x", "b");
  append(path("b"), user("b1", "of b"));
  advance(2s);
  EXPECT_THAT(bodies("b"), ElementsAre("of b"));
  end.set();
  EXPECT_TRUE(eventually([&] { return hanging == 0; }));
  ask("y", "a");
  append(path("a"), user("a2", "more of a"));
  for (int attempts = 0; attempts < 10; ++attempts) advance(1min);
  EXPECT_THAT(bodies("a"), ElementsAre("of a", "more of a"));
  node.reset();
}

TEST_F(TranscriptRun,
       MessagesAreStoredWithAllTheirFields) {  // WORK-14, WORK-15, WORK-16, WORK-18, WORK-19, WORK-20, WORK-U9
  ask("question");
  append(path(), user("u1", "question", 1s) +
                     line("assistant", "a1",
                          R"([{"type":"thinking","thinking":"hm"},{"type":"text","text":"one"},)"
                          R"({"type":"text","text":"two"}])",
                          3s) +
                     assistant("a2", "late in the file, early in time", 2s));
  advance(2s);
  auto found = messages();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].row.uuid, "u1");
  EXPECT_TRUE(found[0].row.is_user);
  EXPECT_EQ(found[0].row.body, "question");
  EXPECT_EQ(found[0].at, kStart + 1s);
  EXPECT_EQ(found[0].number, 1U);
  EXPECT_EQ(found[0].prompt, 1U);
  EXPECT_EQ(found[1].row.uuid, "a2") << "the transcript's own times are the order";
  EXPECT_EQ(found[1].number, 3U);
  EXPECT_EQ(found[2].row.body, "one\n\ntwo");
  EXPECT_EQ(found[2].row.thinking, "hm");
  EXPECT_FALSE(found[2].row.is_user);
  EXPECT_EQ(found[2].at, kStart + 3s);
}

TEST_F(TranscriptRun, AMessageWithoutATimeHasThatOfItsRun) {  // WORK-U9
  ask();
  append(path(), R"({"type":"user","uuid":"u1","message":{"content":"when?"}})"
                 "\n");
  advance(2s);
  ASSERT_EQ(messages().size(), 1U);
  EXPECT_EQ(messages()[0].at, kStart + 2s);
}

TEST_F(TranscriptRun, PagesOfMessagesGoOnBehindTheLast) {  // WORK-U9
  ask();
  append(path(), user("u1", "a", 5s) + user("u2", "b", 5s) + user("u3", "c", 6s));
  advance(2s);
  auto page = [&](Transcripts::Place after, std::size_t limit) {
    auto found = node->store().read(
        [&](Reader& reader) { return transcripts().messages(reader, "default", "s", after, limit); });
    Texts all;
    for (const Message& message : *found) all.push_back(message.row.body);
    return all;
  };
  EXPECT_THAT(page({}, 2), ElementsAre("a", "b"));
  EXPECT_THAT(page({to_ns(kStart + 5s), 1}, 2), ElementsAre("b", "c"));
  EXPECT_THAT(page({to_ns(kStart + 6s), 3}, 2), IsEmpty());
}

TEST_F(TranscriptRun, MessagesBelongToThePromptOfTheirTime) {  // WORK-15, WORK-B11
  hook("UserPromptSubmit", {{"prompt", "first"}, {"timestamp", "2026-03-01T00:00:10Z"}});
  hook("UserPromptSubmit", {{"prompt", "second"}, {"timestamp", "2026-03-01T00:00:20Z"}});
  append(path(), user("u0", "before", 1s) + user("u1", "first", 9s) + assistant("a1", "x", 19s) +
                     user("u2", "second", 19s) + user("u3", "not second", 19s) + assistant("a2", "second", 19s) +
                     assistant("a3", "y", 20s));
  advance(2s);
  std::map<std::string, std::uint64_t> prompts;
  for (const Message& message : messages()) prompts[message.row.uuid] = message.prompt;
  std::map<std::string, std::uint64_t> wanted = {{"u0", 1}, {"u1", 1}, {"a1", 1}, {"u2", 2},
                                                 {"u3", 1}, {"a2", 1}, {"a3", 2}};
  EXPECT_EQ(prompts, wanted);
}

TEST_F(TranscriptRun, WhoSaysTheSameTwiceMeansTheNearerPrompt) {  // WORK-15, WORK-B11
  hook("UserPromptSubmit", {{"prompt", "go on"}, {"timestamp", "2026-03-01T00:00:10Z"}});
  hook("UserPromptSubmit", {{"prompt", "go on"}, {"timestamp", "2026-03-01T00:00:15Z"}});
  append(path(), user("u0", "go on", 9s) + user("u1", "go on", 11s) + user("u2", "go on", 14s));
  advance(2s);
  ASSERT_EQ(messages().size(), 3U);
  EXPECT_EQ(messages()[0].prompt, 1U);
  EXPECT_EQ(messages()[1].prompt, 1U);
  EXPECT_EQ(messages()[2].prompt, 2U);
}

TEST_F(TranscriptRun, TimesAtTheEndsOfTimeDoNoHarm) {  // WORK-U9
  auto said = [](const std::string& uuid, const std::string& time) {
    return R"({"type":"user","uuid":")" + uuid + R"(","timestamp":")" + time +
           R"(","message":{"content":"x"}})"
           "\n";
  };
  hook("UserPromptSubmit", {{"prompt", "y"}, {"timestamp", "1700-01-01T00:00:00Z"}});
  hook("UserPromptSubmit", {{"prompt", "x"}, {"timestamp", "2261-12-31T23:59:59Z"}});
  append(path(), said("u1", "1701-01-01T00:00:00Z") + said("u2", "2261-12-31T23:59:59Z"));
  advance(2s);
  ASSERT_EQ(messages().size(), 2U);
  EXPECT_EQ(messages()[0].prompt, 1U);
  EXPECT_EQ(messages()[1].prompt, 2U);
  advance(std::chrono::hours(4 * 24));
  ASSERT_EQ(messages().size(), 1U);
  EXPECT_EQ(messages()[0].row.uuid, "u2");
}

TEST_F(TranscriptRun, WhatWasAskedLongBeforeIsNotTheNextPrompt) {  // WORK-B11
  hook("UserPromptSubmit", {{"prompt", "first"}, {"timestamp", "2026-03-01T00:00:00Z"}});
  hook("UserPromptSubmit", {{"prompt", "again"}, {"timestamp", "2026-03-01T00:01:00Z"}});
  append(path(), user("u1", "again", 49s) + user("u2", "again", 50s));
  advance(2s);
  EXPECT_EQ(messages()[0].prompt, 1U);
  EXPECT_EQ(messages()[1].prompt, 2U);
}

TEST_F(TranscriptRun, APromptWithoutATextGetsWhatTheUserSaidLast) {  // WORK-21
  hook("SessionStart");
  append(path(),
         user("u1", "one", 1s) + assistant("a1", "answer", 2s) + user("u2", "two", 3s) + assistant("a2", "answer", 4s));
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("two"));
  hook("UserPromptSubmit", {{"prompt", "asked"}, {"timestamp", "2026-03-01T00:00:05Z"}});
  append(path(), user("u3", "three", 5s));
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("two", "asked")) << "those with a text keep it";
}

TEST_F(TranscriptRun, KnownUuidsAreSkipped) {  // WORK-17, WORK-29
  ask();
  append(path(), user("u1", "one") + user("u1", "one again") + assistant("a1", "two", 2s));
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
  append(path(), user("u1", "once more", 3s));
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
  EXPECT_EQ(session()->progress.messages, 2U);
}

TEST_F(TranscriptRun, AUuidOfAnotherSessionIsKnownAsLongAsThatIsThere) {  // WORK-17, WORK-U9
  append(path("a"), user("u1", "one"));
  append(path("b"), user("u1", "one") + user("u2", "two", 2s));
  ask("", "a");
  advance(2s);
  ask("", "b");
  advance(2s);
  EXPECT_THAT(bodies("b"), ElementsAre("two"));
  remove("a");
  advance(0s);
  fs::rename(path("b"), path("c"));
  fs::copy_file(path("c"), path("b"));
  ask("", "b");
  advance(2s);
  EXPECT_THAT(bodies("b"), ElementsAre("one", "two"));
}

TEST_F(TranscriptRun, OneMoreLineIsAllThatIsReadForIt) {  // WORK-B10
  ask();
  for (int i = 0; i < 100; ++i) append(path(), user("u" + std::to_string(i), std::string(1'000, 'x')));
  advance(2s);
  EXPECT_EQ(bytes_read(), fs::file_size(path()));
  std::uint64_t before = bytes_read();
  std::string more = assistant("a", "more", 2s);
  append(path(), more);
  run_again();
  EXPECT_EQ(messages().size(), 101U);
  EXPECT_LE(bytes_read() - before, more.size());
  before = bytes_read();
  run_again();
  EXPECT_EQ(bytes_read(), before) << "nothing new";
  EXPECT_EQ(session()->progress.offset, fs::file_size(path()));
}

TEST_F(TranscriptRun, AHalfWrittenLineIsReadOnceItIsWhole) {  // WORK-B10
  ask();
  std::string half = user("u2", "two", 2s);
  append(path(), user("u1", "one") + half.substr(0, 30));
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("one"));
  append(path(), half.substr(30, 20));
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("one"));
  append(path(), half.substr(50));
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
}

TEST_F(TranscriptRun, ATruncatedFileIsReadAgainAndNothingIsStoredTwice) {  // WORK-B10, WORK-29
  ask();
  append(path(), user("u1", "one") + user("u2", "two", 2s) + user("u3", "three", 3s));
  advance(2s);
  write(path(), user("u1", "one") + user("u4", "four", 4s));
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("one", "two", "three", "four"));
  EXPECT_EQ(session()->progress.offset, fs::file_size(path()));
}

TEST_F(TranscriptRun, AReplacedFileIsReadAgainAndNothingIsStoredTwice) {  // WORK-B10, WORK-29
  ask();
  append(path(), user("u1", "one") + user("u2", "two", 2s));
  advance(2s);
  append(path() + ".new", user("u1", "one") + user("u2", "two", 2s) + user("u3", "three", 3s) + user("u4", "f", 4s));
  fs::rename(path() + ".new", path());
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("one", "two", "three", "f"));
}

TEST_F(TranscriptRun, AnotherTranscriptOfTheSessionIsReadFromItsBeginning) {  // WORK-14, WORK-B10
  ask();
  append(path(), user("u1", "one"));
  advance(2s);
  append(path("moved"), user("u1", "one") + user("u2", "two", 2s));
  hook("PreToolUse", {{"transcript_path", path("moved")}});
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
}

TEST_F(TranscriptRun, LinesThatAreOfNoUseAreSkipped) {  // WORK-U7, WORK-U8
  ask();
  append(path(), "\n  \nnot json\n{\"type\":\"user\"\n" + user("", "no uuid") + user("e", " ") +
                     user("c1", "<command-name>/clear</command-name>") + user("c2", "<local-command-stdout>x") +
                     user("c3", "<local-command-caveat>x") + line("user", "i", R"([{"type":"text","text":"x"}])", 1s) +
                     line("system", "y", "\"x\"", 1s) + user("u1", "kept"));
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("kept"));
  EXPECT_THAT(log.entries(), ElementsAre("lines were passed over: 2 malformed, 0 longer than 16 MiB"));
  run_again();
  EXPECT_EQ(log.entries().size(), 1U) << "once for each";
}

TEST_F(TranscriptRun, LinesThatAreTooLongAreCountedInTheLog) {  // WORK-U7
  ask();
  write(path(), user("u1", "one") + std::string(kLineBytesMax + 1, 'x') + "\n" + user("u2", "two", 2s));
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
  EXPECT_EQ(session()->progress.bytes_read, 2 * fs::file_size(path())) << "read ahead, and then read";
  EXPECT_THAT(log.entries(), ElementsAre("lines were passed over: 0 malformed, 1 longer than 16 MiB"));
}

TEST_F(TranscriptRun, ALineThatIsTooLongIsNotReadAgainWhenItGoesOn) {  // WORK-U7, WORK-B10
  ask();
  write(path(), user("u1", "one") + std::string(kLineBytesMax + 1, 'x'));
  advance(2s);
  const std::uint64_t read_before = bytes_read();
  append(path(), "x\n" + user("u2", "two", 2s));
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("one", "two"));
  EXPECT_LT(bytes_read() - read_before, 1'000U);
  EXPECT_THAT(log.entries(), ElementsAre("lines were passed over: 0 malformed, 1 longer than 16 MiB"));
}

TEST_F(TranscriptRun, AFileThatIsRewrittenWhileItIsReadIsReadFromItsBeginning) {  // WORK-B10
  ASSERT_TRUE(node->debouncers().in("x").set(kDebouncer, {.window = 2s}));
  Hook asked = transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), "");
  change([&](Transaction& txn) { take_hook(txn, "x", asked, node->debouncers(), kStart); });
  // Of several batches, and too short to be read ahead.
  std::string before, after;
  for (int i = 0; i < 60; ++i) before += user("old" + std::to_string(i), std::string(100'000, 'x'), i * 1s);
  for (int i = 0; i < 75; ++i) after += user("new" + std::to_string(i), std::string(100'000, 'y'), i * 1s);
  write(path(), before);
  // Asked for the time, it has read a batch, and is about to store it.
  int batches = 0;
  ASSERT_TRUE(node->queue().in("x").work(kDebouncer, [&](Job& job) {
    auto now = [&] {
      if (++batches == 2) write(path(), after);
      return kStart;
    };
    return run_at(job, now);
  }));
  advance(2s);
  std::set<std::string> uuids;
  for (const Message& message : messages("s", "x")) uuids.insert(message.row.uuid);
  for (int i = 0; i < 75; ++i) EXPECT_TRUE(uuids.contains("new" + std::to_string(i))) << i;
  EXPECT_TRUE(uuids.contains("old0"));
  EXPECT_EQ(session("s", "x")->progress.offset, fs::file_size(path()));
  EXPECT_GT(batches, 3);
}

TEST_F(TranscriptRun, WithoutAPathAFileOrAPromptThereIsNothingToDo) {  // WORK-U7
  hook("UserPromptSubmit", {{"session_id", "no-path"}, {"transcript_path", ""}, {"prompt", "x"}});
  hook("UserPromptSubmit", {{"session_id", "no-file"}, {"prompt", "x"}});
  append(path("no-prompt"), user("u1", "one"));
  hook("SessionStart", {{"session_id", "no-prompt"}, {"source", "resume"}});
  advance(2s);
  EXPECT_THAT(log.entries(), Contains("the session has no transcript"));
  EXPECT_THAT(log.entries(), Contains(HasSubstr("does not exist")));
  EXPECT_THAT(log.entries(), Contains("the session has no prompt"));
  EXPECT_EQ(log.entries().size(), 3U);
  EXPECT_THAT(node->debouncers().keys(kDebouncer).value(), IsEmpty()) << "what was touched is used up";
  EXPECT_EQ(runs().size(), 3U);
  hook("UserPromptSubmit", {{"session_id", "no-prompt"}, {"prompt", "x"}});
  advance(2s);
  EXPECT_THAT(bodies("no-prompt"), ElementsAre("one"));
}

TEST_F(TranscriptRun, AFileThatBecameSomethingElseIsNotRead) {  // WORK-14
  write(directory + "/secret", user("u1", "secret"));
  ask();
  fs::create_symlink("/etc/passwd", path());
  advance(2s);
  EXPECT_THAT(messages(), IsEmpty());
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("the transcript")));
}

TEST_F(TranscriptRun, AFailureIsTriedAgainAndTheTouchIsKept) {  // WORK-B5, WORK-U10
  ask();
  append(path(), user("u1", "one"));
  Bytes key = progress_key(data_key("default", session()->row.number));
  change([&](Transaction& txn) { txn.set(key, Bytes("damaged")); });
  advance(2s);
  EXPECT_THAT(messages(), IsEmpty());
  EXPECT_THAT(log.entries(), ElementsAre(HasSubstr("Worker error: ")));
  auto failed = node->store().read([&](Reader& reader) { return node->queue().attempts(reader, kDebouncer); });
  ASSERT_EQ(failed->size(), 1U);
  EXPECT_THAT(failed->front().error, HasSubstr("Worker failed: "));
  auto kept = node->debouncers().key(kDebouncer, "s");
  EXPECT_EQ(kept->status, KeyStatus::kWaiting);
  EXPECT_FALSE(kept->owner) << "nobody holds it";
  change([&](Transaction& txn) { txn.clear(key); });
  advance(5s);
  EXPECT_THAT(bodies(), ElementsAre("one")) << "without another hook";
  EXPECT_EQ(node->debouncers().key(kDebouncer, "s")->status, KeyStatus::kIdle);
}

TEST_F(TranscriptRun, TheNextProcessGoesOnWithWhatWasTouched) {  // WORK-B5
  std::string store = "lmdb:" + directory + "/store";
  auto begin = [&](WallTime at) {
    NodeOptions options{.store = store};
    options.store_options.clock = std::make_shared<TestClock>(at);
    options.transcripts.roots = {directory};
    node = open(std::move(options));
  };
  begin(kStart);
  append(path(), user("u1", "one"));
  ask();
  node.reset();
  begin(kStart + 1h);
  advance(0s);
  EXPECT_THAT(bodies(), ElementsAre("one"));
}

TEST_F(TranscriptRun, ThousandsOfMessagesAreStoredInBatches) {  // WORK-16, WORK-20, WORK-U12
  ask();
  std::string lines;
  for (int i = 0; i < 7'001; ++i) lines += user("u" + std::to_string(i), std::to_string(i), i * 1s);
  write(path(), lines);
  advance(2s);
  auto found = bodies();
  ASSERT_EQ(found.size(), 7'001U);
  for (int i = 0; i < 7'001; ++i) ASSERT_EQ(found[i], std::to_string(i));
  EXPECT_EQ(bytes_read(), lines.size());
  // Each takes a kilobyte besides its text, of the three megabytes of a batch.
  EXPECT_THAT(changes(), ElementsAre("active s shop at 03-01T00:00:00", StartsWith("updated s shop +31"),
                                     StartsWith("updated s shop +31"), EndsWith(" to 7001 at 03-01T00:00:02")));
}

TEST_F(TranscriptRun, MuchTextIsStoredInBatchesToo) {  // WORK-16, WORK-20
  ask();
  for (int i = 0; i < 30; ++i) append(path(), user("u" + std::to_string(i), std::string(900'000, 'x'), i * 1s));
  advance(2s);
  EXPECT_EQ(messages().size(), 30U);
  EXPECT_THAT(log.entries(), IsEmpty());
}

TEST_F(TranscriptRun, WhatARowHasNoRoomForIsCut) {  // WORK-20
  ask();
  std::string tools, results;
  for (int i = 0; i < 60'000; ++i) {
    std::string id = "t" + std::to_string(i);
    tools += (i ? "," : "") + (R"({"type":"tool_use","id":")" + id + R"(","name":"Bash","input":{}})");
    results += (i ? "," : "") + (R"({"type":"tool_result","tool_use_id":")" + id + R"(","content":"ok"})");
  }
  std::string euros;
  for (int i = 0; i < 50'000; ++i) euros += "€";
  std::string long_results;
  for (int i = 0; i < 100; ++i)
    long_results += (i ? "," : "") + (R"({"type":"tool_result","tool_use_id":"l)" + std::to_string(i) +
                                      R"(","content":")" + euros + "\"}");
  append(path(), user("u1", std::string(1'500'000, 'x')) + line("assistant", "a1", "[" + tools + "]", 2s) +
                     line("user", "r1", "[" + results + "]", 3s) + line("user", "r2", "[" + long_results + "]", 3s) +
                     assistant("a2", "behind", 4s));
  advance(2s);
  auto found = messages();
  ASSERT_EQ(found.size(), 3U) << ::testing::PrintToString(log.entries());
  EXPECT_EQ(found[0].row.body.size(), 1'000'000U);
  EXPECT_TRUE(found[0].row.cut);
  EXPECT_TRUE(found[1].row.cut);
  EXPECT_GT(found[1].row.tools.size(), 1'000U);
  EXPECT_EQ(found[1].results[0]->output, "ok");
  EXPECT_FALSE(found[2].row.cut);
  EXPECT_THAT(log.entries(), IsEmpty());
}

TEST_F(TranscriptRun, ABatchFitsIntoATransactionOfTheStoreWhateverItsLastEntryIs) {  // WORK-20
  // As much as etcd takes.
  constexpr std::size_t kRoom = 1'331 << 10;
  ask();
  const std::uint64_t number = session()->row.number;
  auto store = [&](const Batch& batch) {
    change([&](Transaction& txn) { store_batch(txn, "default", "s", number, batch, kStart); });
  };
  auto list = [](const std::string& uuid) {
    return Entry{.kind = Entry::Kind::kMessage,
                 .uuid = uuid,
                 .body = std::string(2'000'000, 'x'),
                 .tools = {{.id = uuid, .name = "TodoWrite", .input = "[]"}}};
  };
  Batch first(kRoom);
  first.add(list("first"));
  store(first);
  Entry answers{.kind = Entry::Kind::kMessage, .uuid = "answers"};
  for (int i = 0; i < 100; ++i)
    answers.results.push_back({.id = "t" + std::to_string(i), .output = std::string(20'000, 'x')});
  // It becomes the text of the prompt as well.
  Entry asked{.kind = Entry::Kind::kMessage, .uuid = "asked", .is_user = true, .body = std::string(2'000'000, 'x')};
  Entry small_list = list("small");
  small_list.body.clear();
  for (const Entry& last : {list("last"), asked, answers}) {
    Batch batch(kRoom);
    if (last.is_user) batch.add(small_list);
    while (!batch.full()) {
      std::string uuid = last.uuid + std::to_string(batch.entries.size());
      batch.add({.kind = Entry::Kind::kMessage, .uuid = uuid, .body = std::string(2'000, 'x')});
    }
    batch.add(last);
    std::map<Bytes, Bytes> before;
    for (const Row& row : rows(root("default"))) before[row.key] = row.value;
    store(batch);
    std::size_t bytes = 0;
    for (const Row& row : rows(root("default")))
      if (before[row.key] != row.value) bytes += row.key.size() + row.value.size();
    EXPECT_LT(bytes, kRoom - 50'000);
    EXPECT_GT(bytes, kRoom / 3);
  }
}

TEST_F(TranscriptRun, ToolCallsHaveTheirResults) {  // WORK-U13
  ask();
  append(path(), line("assistant", "a1",
                      R"([{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}},)"
                      R"({"type":"tool_use","id":"t2","name":"Read","input":{}}])",
                      1s));
  advance(2s);
  ASSERT_EQ(messages().size(), 1U);
  EXPECT_EQ(messages()[0].row.tools[0].input, R"({"command":"ls"})");
  EXPECT_FALSE(messages()[0].results.at(0));
  append(path(), line("user", "r1",
                      R"([{"type":"tool_result","tool_use_id":"t1","content":"a.txt"},)"
                      R"({"type":"tool_result","tool_use_id":"t2","is_error":true,"content":")" +
                          std::string(60'000, 'e') + R"("}])",
                      2s));
  run_again();
  auto found = messages();
  ASSERT_EQ(found.size(), 1U) << "results are no messages";
  ASSERT_TRUE(found[0].results.at(0) && found[0].results.at(1));
  EXPECT_EQ(found[0].results[0]->output, "a.txt");
  EXPECT_FALSE(found[0].results[0]->is_error);
  EXPECT_EQ(found[0].results[1]->output, std::string(50'000, 'e'));
  EXPECT_TRUE(found[0].results[1]->is_error);
  EXPECT_TRUE(found[0].results[1]->cut);
}

TEST_F(TranscriptRun, APageWithLongResultsIsShort) {  // WORK-U13
  ask();
  for (int i = 0; i < 100; ++i) {
    std::string id = std::to_string(i);
    append(path(), line("assistant", "a" + id, R"([{"type":"tool_use","id":")" + id + R"(","name":"B"}])", i * 1s) +
                       line("user", "r" + id,
                            R"([{"type":"tool_result","tool_use_id":")" + id + R"(","content":")" +
                                std::string(50'000, 'x') + R"("}])",
                            i * 1s));
  }
  advance(2s);
  auto page =
      node->store().read([&](Reader& reader) { return transcripts().messages(reader, "default", "s", {}, 500); });
  EXPECT_EQ(page->size(), 84U) << "4 MiB of results";
  EXPECT_EQ(messages().size(), 100U);
}

TEST_F(TranscriptRun, ListsOfThingsToDoAreOneMessage) {  // WORK-U13
  auto todo = [](const std::string& uuid, const std::string& text, const std::string& list, Duration at) {
    std::string content = text.empty() ? "" : R"({"type":"text","text":")" + text + "\"},";
    return line(
        "assistant", uuid,
        "[" + content + R"({"type":"tool_use","id":"t)" + uuid + R"(","name":"TodoWrite","input":")" + list + "\"}]",
        at);
  };
  ask();
  std::string all = todo("a1", "", "1", 1s) + todo("a2", "said", "2", 2s) + todo("a3", "", "3", 3s);
  append(path(), all);
  advance(2s);
  append(path(), todo("a4", "", "4", 4s));
  run_again();
  auto found = messages();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].row.body, "said");
  EXPECT_THAT(found[0].row.tools, IsEmpty());
  EXPECT_EQ(found[1].row.uuid, "a4");
  EXPECT_EQ(found[1].row.tools.at(0).input, "\"4\"");
  // Read again, it is the same.
  fs::rename(path(), path("old"));
  fs::copy_file(path("old"), path());
  run_again();
  EXPECT_EQ(messages().size(), 2U);
  EXPECT_EQ(messages()[1].row.uuid, "a4");
  // And nothing is left of those that were replaced.
  remove("s");
  advance(0s);
  EXPECT_THAT(rows(tuple::pack_onto(root("default"), "uuid")), IsEmpty());
}

TEST_F(TranscriptRun, TheLastTitleRenamesTheSession) {  // WORK-U13
  auto title = [](const std::string& text) {
    return R"({"type":"custom-title","customTitle":)" + quoted(text) + ",\"sessionId\":\"s\"}\n";
  };
  ask("asked");
  append(path(), title("one") + user("u1", "x") + title("two"));
  advance(2s);
  EXPECT_EQ(session()->row.name, "two");
  ask("asked again");
  EXPECT_EQ(session()->row.name, "two");
  append(path(), title(std::string(300, 't')));
  run_again();
  EXPECT_EQ(session()->row.name, std::string(200, 't'));
  EXPECT_EQ(status(), "active");
}

TEST_F(TranscriptRun, TheFeedTellsOfWhatToolsAnsweredLater) {  // WORK-U12, WORK-U13
  std::string call = line("assistant", "a1", R"([{"type":"tool_use","id":"t1","name":"Bash","input":{}}])", 1s);
  std::string answer = line("user", "r1", R"([{"type":"tool_result","tool_use_id":"t1","content":"ok"}])", 2s);
  ask("x");
  append(path(), call);
  advance(2s);
  append(path(), answer);
  run_again();
  // Read once more, it is known.
  write(path(), answer);
  run_again();
  EXPECT_THAT(changes(), ElementsAre("active s shop at 03-01T00:00:00", "updated s shop +1 to 1 at 03-01T00:00:02",
                                     "updated s shop at 03-01T00:00:04"));
}

TEST_F(TranscriptRun, ManyToolsWithLongNamesAreStoredInBatchesToo) {  // WORK-20
  ask("x");
  std::string lines;
  for (int i = 0; i < 20; ++i) {
    std::string items;
    for (int k = 0; k < 1'900; ++k) {
      std::string name = std::to_string(i) + "-" + std::to_string(k) + std::string(180, 'x');
      items +=
          (k > 0 ? "," : "") + (R"({"type":"tool_use","id":")" + name + R"(","name":")" + name + R"(","input":{}})");
    }
    lines += line("assistant", "a" + std::to_string(i), "[" + items + "]", 1s);
  }
  append(path(), lines);
  advance(2s);
  EXPECT_THAT(log.entries(), IsEmpty());
  EXPECT_EQ(session()->progress.messages, 20U);
}

TEST_F(TranscriptRun, ThePlaceIsStoredAlsoWhileNothingIsWorthKeeping) {  // WORK-16, WORK-B10
  ASSERT_TRUE(node->debouncers().in("x").set(kDebouncer, {.window = 2s}));
  Hook asked = transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), "");
  change([&](Transaction& txn) { take_hook(txn, "x", asked, node->debouncers(), kStart); });
  for (int i = 0; i < 70; ++i) append(path(), std::string(std::size_t{1} << 20, 'x') + "\n");
  // Each batch asks for the time, and so does who reads ahead.
  int asked_for_time = 0;
  ASSERT_TRUE(node->queue().in("x").work(kDebouncer, [&](Job& job) {
    auto now = [&] {
      ++asked_for_time;
      return kStart;
    };
    return run_at(job, now);
  }));
  advance(2s);
  EXPECT_EQ(session("s", "x")->progress.offset, 70U * ((std::size_t{1} << 20) + 1));
  EXPECT_EQ(asked_for_time, 3);
}

TEST_F(TranscriptRun, WhatIsTooOldToBeKeptDoesNotComeBackWithAnotherFile) {  // WORK-U14, WORK-B10
  ask("x");
  append(path(), user("u1", "old") + line("user", "r1", R"([{"type":"tool_result","tool_use_id":"t1"}])", 2s));
  advance(std::chrono::hours(3 * 24) + 5s);
  ASSERT_THAT(bodies(), IsEmpty());
  fs::rename(path(), path("before"));
  write(path(), user("u1", "old") + user("u2", "new", std::chrono::hours(3 * 24)));
  run_again();
  EXPECT_THAT(bodies(), ElementsAre("new"));
}

TEST_F(TranscriptRun, TheTextsOfPromptsAreNotRead) {  // WORK-15
  ask("one");
  hook("UserPromptSubmit", {{"prompt", "two"}, {"timestamp", "2026-03-01T00:00:05Z"}});
  for (const Row& row : rows(prompts_key(data_key("default", session()->row.number))))
    change([&](Transaction& txn) { txn.set(row.key, Bytes("damaged")); });
  append(path(), user("u1", "one", 1s) + user("u2", "two", 4s));
  advance(2s);
  ASSERT_EQ(messages().size(), 2U);
  EXPECT_EQ(messages()[0].prompt, 1U);
  EXPECT_EQ(messages()[1].prompt, 2U) << "said by what the next prompt says";
  append(path(), assistant("a1", "yes", 20s));
  run_again();
  EXPECT_EQ(messages()[2].prompt, 2U) << "the last one long before";
}

TEST_F(TranscriptRun, AShortageOfTheMachineIsTriedAgain) {  // WORK-B5, WORK-U7
  append(path(), user("u1", "one"));
  ask("x");
  {
    AllFilesOpen shortage;
    advance(2s);
  }
  // A store on a server may have something to say of it as well.
  EXPECT_THAT(log.entries(), Contains(HasSubstr("Worker error: ")).Times(1));
  EXPECT_EQ(node->debouncers().key(kDebouncer, "s")->status, KeyStatus::kWaiting);
  advance(5s);
  EXPECT_THAT(bodies(), ElementsAre("one")) << "without another hook";
}

TEST_F(TranscriptRun, TheFeedTellsOfNewMessagesOnce) {  // WORK-U12
  ask("x");
  append(path(), user("u1", "one") + assistant("a1", "two", 2s));
  advance(2s);
  run_again();
  append(path(), assistant("a2", "three", 3s));
  hook("Stop");
  advance(2s);
  EXPECT_THAT(changes(), ElementsAre("active s shop at 03-01T00:00:00", "updated s shop +2 to 2 at 03-01T00:00:02",
                                     "done s shop at 03-01T00:00:04", "updated s shop +1 to 3 at 03-01T00:00:06"));
}

TEST_F(TranscriptRun, ASessionThatIsRemovedBeforeItsRunIsNothingToRead) {  // WORK-U7
  ask();
  append(path(), user("u1", "one"));
  remove("s");
  advance(2s);
  EXPECT_THAT(log.entries(), ElementsAre("there is no such session any more"));
  ask();
  advance(2s);
  EXPECT_THAT(bodies(), ElementsAre("one")) << "it can begin anew";
}

TEST_F(TranscriptRun, ASessionThatIsRemovedDuringItsRunKeepsNothing) {  // WORK-20
  ask();
  std::uint64_t number = session()->row.number;
  Batch batch;
  batch.add({.kind = Entry::Kind::kMessage, .uuid = "u1", .is_user = true, .body = "one"});
  // Held, nobody removes what is left.
  node->hold();
  advance(0s);
  remove("s");
  ask();
  auto stored =
      node->store().transact([&](Transaction& txn) { store_batch(txn, "default", "s", number, batch, kStart); });
  EXPECT_EQ(code_of(stored), ErrorCode::kNotFound);
  EXPECT_THAT(messages(), IsEmpty());
  EXPECT_THAT(rows(tuple::pack_onto(root("default"), "uuid")), IsEmpty());
}

TEST_F(TranscriptRun, ARunThatHasLostItsClaimStoresNothing) {  // WORK-13, WORK-B2
  // A space that nobody serves, but for this handler.
  Queue queue = node->queue().in("x");
  Debouncers debouncers = node->debouncers().in("x");
  ASSERT_TRUE(debouncers.set(kDebouncer, {.window = 2s}));
  Hook asked = transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), "");
  change([&](Transaction& txn) { take_hook(txn, "x", asked, node->debouncers(), kStart); });
  append(path(), user("u1", "one"));
  bool lose = true;
  ASSERT_TRUE(queue.work(kDebouncer, [&](Job& job) -> Result<Value> {
    // Asked for the time, it has read, and is about to store.
    auto now = [&] {
      if (lose) (void)queue.cancel(job.id(), Queue::Force::kYes);
      return kStart;
    };
    auto read = run_at(job, now);
    diary.note(read ? "read" : to_string(read.error()).substr(0, 11));
    return read;
  }));
  advance(2s);
  EXPECT_THAT(diary.entries(), ElementsAre("stale_token"));
  EXPECT_THAT(messages("s", "x"), IsEmpty());
  lose = false;
  ASSERT_TRUE(debouncers.touch(kDebouncer, "s"));
  advance(2s);
  EXPECT_THAT(diary.entries(), ElementsAre("stale_token", "read"));
  EXPECT_THAT(bodies("s", "x"), ElementsAre("one"));
}

TEST_F(TranscriptRun, WhatIsLeftOfARemovedSessionIsNotTakenForKnown) {  // WORK-17
  Batch batch;
  batch.add({.kind = Entry::Kind::kMessage, .uuid = "u1", .is_user = true, .body = "one"});
  auto store = [&] {
    std::uint64_t number = session()->row.number;
    change([&](Transaction& txn) { store_batch(txn, "default", "s", number, batch, kStart); });
  };
  ask();
  store();
  // Held, nobody removes what is left.
  node->hold();
  advance(0s);
  remove("s");
  ask();
  store();
  EXPECT_THAT(bodies(), ElementsAre("one"));
  node->release();
  advance(0s);
  EXPECT_THAT(bodies(), ElementsAre("one"));
  store();
  EXPECT_THAT(bodies(), ElementsAre("one"));
}

}  // namespace
}  // namespace perdure::transcript
