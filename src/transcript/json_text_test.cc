#include "transcript/json_text.h"

#include <gtest/gtest.h>

#include <optional>

namespace perdure::transcript {
namespace {

std::optional<std::string> unescaped(std::string_view raw, std::size_t enough = std::string::npos) {
  std::string out;
  if (!append_unescaped(raw, out, enough)) return std::nullopt;
  return out;
}

std::string mended(std::string json) {
  mend_surrogates(json);
  return json;
}

TEST(JsonText, EveryEscapeIsUnderstood) {
  EXPECT_EQ(unescaped(R"(plain)"), "plain");
  EXPECT_EQ(unescaped(R"(\"\\\/\b\f\n\r\t)"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(unescaped(R"(a\u0041\u00e9\u20AC\ud83d\ude00z)"), "aAé€😀z");
  EXPECT_EQ(unescaped(R"(\u0000)"), std::string(1, '\0'));
  EXPECT_EQ(unescaped(""), "");
}

TEST(JsonText, EscapesAreFoundWhereverTheyStand) {
  for (std::size_t before = 0; before < 20; ++before)
    for (std::size_t behind = 0; behind < 20; ++behind) {
      std::string left(before, 'a'), right(behind, '\xdc');  // Like a backslash, but for its highest bit.
      EXPECT_EQ(unescaped(left + "\\n" + right + "\\\\"), left + "\n" + right + "\\");
      EXPECT_EQ(unescaped(left + "\\ud83d\\ude00" + right), left + "😀" + right);
      EXPECT_EQ(unescaped(left + "\\"), std::nullopt);
    }
}

TEST(JsonText, UnescapingGoesBehindWhatIsThere) {
  std::string out = "12345";
  ASSERT_TRUE(append_unescaped(R"(67\t89 and more than that)", out, 8));
  EXPECT_EQ(out, "1234567\t");
  ASSERT_TRUE(append_unescaped("nothing", out, 8));
  EXPECT_EQ(out, "1234567\t");
}

TEST(JsonText, MalformedEscapesAreRefused) {
  for (std::string_view raw : {"\\", "a\\x", "\\u", "\\u12", "\\u12g4", "\\u-123", "\\u+123", "\\U0041", "\\u 123"})
    EXPECT_EQ(unescaped(raw), std::nullopt) << raw;
}

TEST(JsonText, HalvesOfSurrogatePairsBecomeReplacementCharacters) {
  EXPECT_EQ(unescaped(R"(a\ud83d)"), "a\uFFFD");
  EXPECT_EQ(unescaped(R"(\ude00b)"), "\uFFFDb");
  EXPECT_EQ(unescaped(R"(\ud83d\u0041)"), "\uFFFDA");
  EXPECT_EQ(unescaped(R"(\ud83d\ud83d\ude00)"), "\uFFFD😀");
  EXPECT_EQ(unescaped(R"(\ud83d\n)"), "\uFFFD\n");
}

TEST(JsonText, UnescapingStopsOnceThereIsEnoughAndNotInsideACharacter) {
  EXPECT_EQ(unescaped("abcdef", 3), "abc");
  EXPECT_EQ(unescaped("ab€€", 3), "ab€");
  EXPECT_EQ(unescaped(R"(ab\ud83d\ude00cd)", 3), "ab😀");
  // What is behind is not looked at.
  EXPECT_EQ(unescaped("abc\\x", 3), "abc");
}

TEST(JsonText, MendingChangesHalvesOfPairsAndNothingElse) {
  EXPECT_EQ(mended(R"({"a":"\ud83d"})"), R"({"a":"\ufffd"})");
  EXPECT_EQ(mended(R"(["\ud83d\ude00","\ude00\ud83d","\\ud83d","\u00e9"])"),
            R"(["\ud83d\ude00","\ufffd\ufffd","\\ud83d","\u00e9"])");
  EXPECT_EQ(mended("\\"), "\\");
  EXPECT_EQ(mended("\\ud8"), "\\ud8");
}

TEST(JsonText, CuttingCountsCharactersAndNotBytes) {
  EXPECT_EQ(first_characters("abc", 2), "ab");
  EXPECT_EQ(first_characters("€€€", 2), "€€");
  EXPECT_EQ(first_characters("😀é€", 3), "😀é€");
  EXPECT_EQ(first_characters("€", 0), "");
  EXPECT_EQ(first_characters("", 0), "");
  EXPECT_EQ(first_bytes("a€€", 4), "a€");
  EXPECT_EQ(first_bytes("a€€", 6), "a€");
  EXPECT_EQ(first_bytes("a€€", 7), "a€€");
}

}  // namespace
}  // namespace perdure::transcript
