// Prompts: which of them messages belong to, and that it makes no difference when their hooks come.
#include "node/transcript_test_util.h"

namespace perdure::transcript {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class TranscriptPrompts : public TranscriptNode {
 protected:
  /// Of each message its uuid, and the prompt that it belongs to.
  std::vector<std::pair<std::string, std::uint64_t>> attached() {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const Message& message : messages()) all.emplace_back(message.row.uuid, message.prompt);
    return all;
  }
};

TEST_F(TranscriptPrompts, OneWhoseHookIsLateHasTheMessagesThatWereReadBefore) {  // WORK-15, WORK-B11
  hook("UserPromptSubmit", {{"prompt", "A"}});
  append(path(),
         user("u1", "A", 0s) + assistant("a1", "yes", 15s) + user("u2", "B", 20s - 10ms) + assistant("a2", "yes", 22s));
  advance(2s);
  EXPECT_THAT(attached(), ElementsAre(Pair("u1", 1U), Pair("a1", 1U), Pair("u2", 1U), Pair("a2", 1U)));
  hook("UserPromptSubmit", {{"prompt", "B"}, {"timestamp", "2026-03-01T00:00:20Z"}});
  advance(2s);
  EXPECT_THAT(attached(), ElementsAre(Pair("u1", 1U), Pair("a1", 1U), Pair("u2", 2U), Pair("a2", 2U)));
  EXPECT_THAT(prompts(), ElementsAre("A", "B"));
}

TEST_F(TranscriptPrompts, OneWhoseHookIsLateTakesItsTextFromTheOneThatHadNone) {  // WORK-21
  hook("SessionStart");
  append(path(), user("u1", "one", 1s) + user("u2", "two", 2s) + assistant("a1", "yes", 3s) +
                     user("u3", "B", 20s - 10ms) + assistant("a2", "yes", 22s));
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("B")) << "for all that is known";
  hook("UserPromptSubmit", {{"prompt", "B"}, {"timestamp", "2026-03-01T00:00:20Z"}});
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("two", "B"));
  hook("UserPromptSubmit", {{"prompt", "one"}, {"timestamp", "2026-03-01T00:00:00.500Z"}});
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("", "B", "one")) << "nothing is left for it";
}

TEST_F(TranscriptPrompts, OneWithoutATextGetsWhatWasReadBeforeItsHookCame) {  // WORK-21
  hook("UserPromptSubmit", {{"prompt", "A"}});
  append(path(),
         user("u1", "A", 0s) + user("u2", "more", 20s) + user("u3", "B", 30s - 10ms) + user("u4", "more of B", 31s));
  advance(2s);
  hook("UserPromptSubmit", {{"prompt", "B"}, {"timestamp", "2026-03-01T00:00:30Z"}});
  hook("SessionStart", {{"timestamp", "2026-03-01T00:00:10Z"}});
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("A", "B", "more"));
  EXPECT_THAT(attached(), ElementsAre(Pair("u1", 1U), Pair("u2", 3U), Pair("u3", 2U), Pair("u4", 2U)));
}

TEST_F(TranscriptPrompts, WhatWasSaidBeforeTheFirstIsOfTheOneThatTurnsOutToBeIt) {  // WORK-21
  hook("SessionStart", {{"timestamp", "2026-03-01T00:00:10Z"}});
  append(path(), user("u1", "early", 1s));
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("early"));
  hook("SessionStart", {{"timestamp", "2026-03-01T00:00:05Z"}});
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("", "early"));
}

TEST_F(TranscriptPrompts, ATextStaysWhenItsMessageIsGone) {  // WORK-21, WORK-U14
  hook("SessionStart");
  append(path(), user("u1", "one", 1s));
  advance(std::chrono::hours(3 * 24) + 5s);
  ASSERT_TRUE(messages().empty());
  hook("UserPromptSubmit", {{"prompt", "next"}});
  advance(2s);
  EXPECT_THAT(prompts(), ElementsAre("one", "next"));
}

TEST_F(TranscriptPrompts, AnyNumberMayBeLate) {  // WORK-21
  hook("UserPromptSubmit", {{"prompt", "A"}});
  std::vector<Hook> late;
  std::string lines;
  Texts wanted = {"A"};
  for (int i = 1; i <= 250; ++i) {
    lines += user("u" + std::to_string(i), "said " + std::to_string(i), i * 1s + 500ms);
    late.push_back(transcripts().read(hook_text("SessionStart"), ""));
    late.back().sent = kStart + i * 1s;
    wanted.push_back("said " + std::to_string(i));
  }
  append(path(), lines);
  advance(2s);
  ASSERT_TRUE(transcripts().take("default", std::move(late)));
  advance(2s);
  EXPECT_EQ(prompts(), wanted);
}

TEST_F(TranscriptPrompts, OfAnyNumberAreReadPageByPage) {  // WORK-15
  for (int i = 0; i < 5'000;) {
    std::vector<Hook> asked;
    do {
      asked.push_back(transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), ""));
      asked.back().sent = kStart + i * 1s;
    } while (++i % 250 != 0);
    ASSERT_TRUE(transcripts().take("default", std::move(asked)));
  }
  append(path(), assistant("a1", "x", 10s) + assistant("a2", "x", 11s) + assistant("a3", "x", 3'000s) +
                     assistant("a4", "x", 6'000s));
  advance(2s);
  EXPECT_THAT(attached(), ElementsAre(Pair("a1", 11U), Pair("a2", 12U), Pair("a3", 3'001U), Pair("a4", 5'000U)));
  auto page = node->store().read([&](Reader& reader) { return transcripts().messages(reader, "default", "s", {}, 9); });
  ASSERT_TRUE(page);
  EXPECT_EQ(page->size(), 2U) << "those between are too many for one page";
}

}  // namespace
}  // namespace perdure::transcript
