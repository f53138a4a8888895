// Transcripts that are longer than one batch, or than what one run has time for.
#include "node/transcript_test_util.h"

namespace perdure::transcript {
namespace {

using ::testing::ElementsAre;

class LongTranscript : public TranscriptNode {
 protected:
  void open_with(Duration reads_for, Duration reads_at_most) {
    node.reset();
    NodeOptions options{.store = fresh_store_url()};
    options.store_options.clock = std::make_shared<TestClock>(kStart);
    options.transcripts.roots = {directory};
    options.transcripts.reads_for = reads_for;
    options.transcripts.reads_at_most = reads_at_most;
    node = open(std::move(options));
    ASSERT_TRUE(node && Changes::open(node->store()));
  }
  /// So many lines of 900 kB: of 10, which are more than 8 MiB, the uuids are booked; 3 or 4 are a batch.
  void write_lines(int count) {
    for (int i = 0; i < count; ++i) append(path(), user("u" + std::to_string(i), std::string(900'000, 'x'), i * 1s));
  }
  /// How many runs there were; none has failed.
  std::uint64_t runs() {
    auto worker = node->queue().worker(kDebouncer);
    EXPECT_TRUE(worker);
    EXPECT_EQ(worker->failed, 0U);
    return worker->completed;
  }
};

TEST_F(LongTranscript, ARunThatHasReadForLongLeavesTheRestToTheNext) {  // WORK-B2
  open_with(0s, Duration::max());
  write_lines(8);
  hook("UserPromptSubmit");
  advance(2s);
  EXPECT_GT(messages().size(), 0U);
  EXPECT_LT(messages().size(), 8U) << "a batch";
  EXPECT_TRUE(node->debouncers().key(kDebouncer, "s")->status == KeyStatus::kWaiting) << "without another hook";
  advance(1min);
  EXPECT_EQ(messages().size(), 8U);
  EXPECT_GE(runs(), 2U) << "a batch each";
}

TEST_F(LongTranscript, WhatIsBookedIsStoredBeforeTheRestIsLeft) {  // WORK-B2
  open_with(0s, Duration::max());
  write_lines(10);
  hook("UserPromptSubmit");
  advance(2s);
  EXPECT_EQ(messages().size(), 10U) << "in several batches";
}

TEST_F(LongTranscript, ARunThatHasNoTimeAtAllGetsOnByALine) {  // WORK-B2
  open_with(0s, 0s);
  write_lines(10);
  hook("UserPromptSubmit");
  for (std::size_t n = 1; n <= 10; ++n) {
    advance(2s);
    ASSERT_EQ(messages().size(), n);
  }
  advance(2s);
  EXPECT_EQ(runs(), 11U) << "the last of them finds nothing more";
  EXPECT_LT(session()->progress.bytes_read, 2 * fs::file_size(path())) << "nothing was read ahead";
}

TEST_F(LongTranscript, WithoutADebouncerTheRestIsLeftToTheNextHook) {  // WORK-1
  Debouncers debouncers = node->debouncers().in("x");
  ASSERT_TRUE(debouncers.set(kDebouncer, {.window = 2s}));
  write_lines(2);
  Hook asked = transcripts().read(hook_text("UserPromptSubmit"), "");
  change([&](Transaction& txn) { take_hook(txn, "x", asked, node->debouncers(), kStart); });
  ASSERT_TRUE(node->queue().in("x").work(kDebouncer, [&](Job& job) {
    // Asked for the time, it has read a line, and is about to store it.
    auto now = [&] {
      EXPECT_TRUE(debouncers.remove(kDebouncer));
      return kStart;
    };
    auto read = run_at(job, now, {0s, 0s, 0s});
    diary.note(read ? "read" : to_string(read.error()));
    return read;
  }));
  advance(2s);
  EXPECT_THAT(diary.entries(), ElementsAre("read"));
  EXPECT_EQ(messages("s", "x").size(), 1U);
}

TEST_F(LongTranscript, APromptWithoutATextGetsWhatTheUserSaidLastInAnyBatch) {  // WORK-21
  hook("SessionStart");
  write_lines(9);
  append(path(), user("last", "the last", 20s));
  advance(2s);
  EXPECT_EQ(messages().size(), 10U);
  EXPECT_THAT(prompts(), ElementsAre("the last"));
}

TEST_F(LongTranscript, APromptWithoutATextGetsTheSameInAnyNumberOfRuns) {  // WORK-21
  open_with(0s, 0s);
  hook("SessionStart");
  append(path(), user("u1", "one", 1s) + user("u2", "two", 3s) + user("u3", "earlier, but behind it", 2s));
  for (const char* said : {"one", "two", "two"}) {
    advance(2s);
    EXPECT_THAT(prompts(), ElementsAre(said));
  }
  EXPECT_EQ(messages().size(), 3U);
  hook("UserPromptSubmit", {{"prompt", "asked"}});
  append(path(), user("u4", "three", 20s));
  advance(1min);
  EXPECT_THAT(prompts(), ElementsAre("two", "asked")) << "one that has a text keeps it";
}

}  // namespace
}  // namespace perdure::transcript
