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

TEST_F(TranscriptPrompts, OfAnyNumberAreReadPageByPage) {  // WORK-15
  std::vector<Hook> asked;
  for (int i = 0; i < 5'000; ++i) {
    asked.push_back(transcripts().read(hook_text("UserPromptSubmit", {{"prompt", "x"}}), ""));
    asked.back().sent = kStart + i * 1s;
  }
  ASSERT_TRUE(transcripts().take("default", std::move(asked)));
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
