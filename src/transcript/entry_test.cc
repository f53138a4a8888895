#include "transcript/entry.h"

#include <gmock/gmock.h>

#include <random>

#include "base/rfc3339.h"
#include "transcript/lines.h"
#include "tuple/utf8.h"

namespace perdure::transcript {
namespace {

using Kind = Entry::Kind;

Entry read(EntryReader& reader, std::string line, char behind = '\n') {
  std::size_t size = line.size();
  line.append(kLinePadding, behind);
  return reader.read(std::string_view(line).substr(0, size));
}

Entry read(const std::string& line) {
  EntryReader reader;
  return read(reader, line);
}

/// A line with such a message.
std::string line_of(const std::string& type, const std::string& content) {
  return R"({"parentUuid":null,"isSidechain":false,"type":")" + type + R"(","message":{"role":")" + type +
         R"(","content":)" + content + R"(},"uuid":"u-1","timestamp":"2026-01-31T08:15:00.250Z"})";
}

Entry user(const std::string& content) {
  return read(line_of("user", content));
}
Entry assistant(const std::string& content) {
  return read(line_of("assistant", content));
}

TEST(TranscriptEntry, AUserMessageIsItsStringContent) {  // WORK-18, WORK-U9
  Entry entry = user(R"("Fix the \"bug\"\nplease \u20ac")");
  EXPECT_EQ(entry.kind, Kind::kMessage);
  EXPECT_TRUE(entry.is_user);
  EXPECT_EQ(entry.uuid, "u-1");
  EXPECT_EQ(entry.body, "Fix the \"bug\"\nplease €");
  EXPECT_EQ(entry.thinking, "");
  ASSERT_TRUE(entry.at);
  EXPECT_EQ(format_rfc3339(*entry.at), "2026-01-31T08:15:00.250Z");
}

TEST(TranscriptEntry, TextItemsOfTheUserAreNotKept) {  // WORK-18
  Entry entry = user(R"([{"type":"text","text":"hello"},{"type":"thinking","thinking":"hm"},
                        {"type":"tool_use","id":"t","name":"Bash","input":{}}])");
  EXPECT_EQ(entry.kind, Kind::kSkipped);
  EXPECT_EQ(entry.why, "nothing to keep");
}

TEST(TranscriptEntry, AllTextAndThinkingOfTheAssistantIsKept) {  // WORK-19, WORK-B11
  Entry entry = assistant(R"([{"type":"thinking","thinking":"first","signature":"x"},{"type":"text","text":"one"},
                             {"type":"text","text":" \n"},{"type":"thinking","thinking":"second"},
                             {"type":"image","source":{"data":"AAAA"}},{"text":"two\n","type":"text"}])");
  EXPECT_EQ(entry.kind, Kind::kMessage);
  EXPECT_FALSE(entry.is_user);
  EXPECT_EQ(entry.body, "one\n\ntwo\n");
  EXPECT_EQ(entry.thinking, "first\n\nsecond");
}

TEST(TranscriptEntry, ThinkingAloneAndAPlainStringOfTheAssistantAreKept) {  // WORK-19
  EXPECT_EQ(assistant(R"([{"type":"thinking","thinking":"hm"}])").thinking, "hm");
  EXPECT_EQ(assistant(R"("<command-name> is no command here")").body, "<command-name> is no command here");
}

TEST(TranscriptEntry, ToolCallsKeepTheirInputAsJson) {  // WORK-U13
  Entry entry = assistant(R"([{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls \"a\"","n":[1,2.5e3]} },
                             {"type":"tool_use","id":"t2","name":"Todo","input":[]},
                              {"name":"X","type":"tool_use","id":"t3"}])");
  EXPECT_EQ(entry.kind, Kind::kMessage);
  EXPECT_EQ(entry.body, "");
  ASSERT_EQ(entry.tools.size(), 3U);
  EXPECT_EQ(entry.tools[0].id, "t1");
  EXPECT_EQ(entry.tools[0].name, "Bash");
  EXPECT_EQ(entry.tools[0].input, R"({"command":"ls \"a\"","n":[1,2.5e3]})");
  EXPECT_EQ(entry.tools[1].input, "[]");
  EXPECT_EQ(entry.tools[2].input, "null");
}

TEST(TranscriptEntry, AnInputIsKeptAsItWasWrittenWhateverItIs) {  // WORK-U13
  for (std::string input :
       {R"({"n":123456789012345678901234567890})", R"([1e309,-1e309])", R"({"a":1,"a":2})", R"({"$bytes":7})",
        R"({"a":tru})", R"({"a":1,})", R"([1 2])", R"({"a":"\x"})", R"(nonsense)", R"({"a":01})"}) {
    Entry entry =
        assistant(R"([{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"B","input":)" + input + "}]");
    ASSERT_EQ(entry.tools.size(), 1U) << input;
    EXPECT_EQ(entry.tools[0].input, input);
    EXPECT_EQ(entry.body, "hi");
  }
}

TEST(TranscriptEntry, ToolResultsAreKeptWithoutABody) {  // WORK-U13
  Entry entry = user(R"([{"tool_use_id":"t1","type":"tool_result","content":"out\n","is_error":false},
                        {"type":"tool_result","content":[{"type":"text","text":"a"},{"type":"image"},
                         {"type":"text","text":"b"}],"is_error":true,"tool_use_id":"t2"},
                        {"type":"tool_result","tool_use_id":"t3"}])");
  EXPECT_EQ(entry.kind, Kind::kMessage);
  EXPECT_TRUE(entry.is_user);
  EXPECT_EQ(entry.body, "");
  ASSERT_EQ(entry.results.size(), 3U);
  EXPECT_EQ(entry.results[0].id, "t1");
  EXPECT_EQ(entry.results[0].output, "out\n");
  EXPECT_FALSE(entry.results[0].is_error);
  EXPECT_FALSE(entry.results[0].cut);
  EXPECT_EQ(entry.results[1].output, "a\n\nb");
  EXPECT_TRUE(entry.results[1].is_error);
  EXPECT_EQ(entry.results[2].output, "");
}

TEST(TranscriptEntry, OutputsAreCutBehindTheLimitInCharacters) {  // WORK-U13
  auto result = [](const std::string& output) {
    return user(R"([{"type":"tool_result","tool_use_id":"t","content":)" + output + "}]").results.at(0);
  };
  auto times = [](std::size_t count, std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += text;
    return out;
  };
  ToolResult exact = result("\"" + times(kOutputCharactersMax, "€") + "\"");
  EXPECT_FALSE(exact.cut);
  EXPECT_EQ(exact.output, times(kOutputCharactersMax, "€"));
  for (std::string_view raw : {"😀", "\\ud83d\\ude00"}) {
    ToolResult more = result("\"" + times(kOutputCharactersMax + 1, raw) + "\"");
    EXPECT_TRUE(more.cut);
    EXPECT_EQ(more.output, times(kOutputCharactersMax, "😀"));
  }
  std::string half = R"({"type":"text","text":")" + times(kOutputCharactersMax / 2 + 1, "é") + R"("})";
  ToolResult joined = result("[" + half + "," + half + "]");
  EXPECT_TRUE(joined.cut);
  EXPECT_EQ(joined.output.size(), 2 * kOutputCharactersMax - 2) << "two of the characters are the line ends between";
}

TEST(TranscriptEntry, LocalCommandsOfTheUserAreSkipped) {  // WORK-U8
  for (std::string marker : {"<local-command-stdout>", "<local-command-caveat>", "<command-name>"}) {
    Entry entry = user("\"before " + marker + "x\"");
    EXPECT_EQ(entry.kind, Kind::kSkipped);
    EXPECT_EQ(entry.why, "a local command");
    EXPECT_EQ(user("\"before \\u003c" + marker.substr(1) + "x\"").why, "a local command");
  }
  EXPECT_EQ(user(R"("<command-nam> <local-command>")").kind, Kind::kMessage);
}

TEST(TranscriptEntry, AnEntryThatIsMetaIsJudgedByItsContent) {  // WORK-U8
  std::string line = line_of("user", "\"hello\"");
  line.insert(1, R"("isMeta":true,)");
  EXPECT_EQ(read(line).body, "hello");
}

TEST(TranscriptEntry, BlankLinesAreSkipped) {  // WORK-U7
  for (std::string line : {"", " ", "\t \r", "\v\f"}) EXPECT_EQ(read(line).why, "blank");
}

TEST(TranscriptEntry, MalformedLinesAreSkipped) {  // WORK-U7
  std::string good = line_of("user", "\"hello\"");
  // However much of the end is missing, and whatever stands behind it.
  for (std::size_t size = 1; size < good.size(); ++size)
    for (char behind : {'\n', '\0', '}', ']', ',', '"'}) {
      EntryReader reader;
      EXPECT_EQ(read(reader, good.substr(0, size), behind).why, "malformed") << size << " and " << behind;
    }
  for (std::string line : {"not json", "[]", "12", "\"text\"", "null", "{\"type\"}", "{\"uuid\":\"a\",}", "}{", "\\",
                           "{\"type\":\"user\" \"uuid\":\"x\"}"})
    EXPECT_EQ(read(line).why, "malformed") << line;
  EXPECT_EQ(read(good + good).why, "malformed");
  EXPECT_EQ(read(good + "x").why, "malformed");
  EXPECT_EQ(read(good + "}").why, "malformed");
  EXPECT_EQ(user("\"a\\x\"").why, "malformed");
  EXPECT_EQ(user("\"a\xff\"").why, "malformed");
  EXPECT_EQ(user(std::string("\"a\0b\"", 5)).why, "malformed");
  EXPECT_EQ(user("[{\"type\":\"tool_result\"]").why, "malformed");
  EXPECT_EQ(read(good + " \r").body, "hello") << "blanks at the end are none";
}

TEST(TranscriptEntry, EntriesWithoutAUuidAreSkipped) {  // WORK-U7
  auto with = [](const std::string& uuid) {
    return read(R"({"type":"user",)" + uuid + R"("message":{"content":"hi"}})");
  };
  EXPECT_EQ(with("").why, "no uuid");
  EXPECT_EQ(with(R"("uuid":"",)").why, "no uuid");
  EXPECT_EQ(with(R"("uuid":12,)").why, "no uuid");
  EXPECT_EQ(with(R"("uuid":null,)").why, "no uuid");
  EXPECT_EQ(with(R"("uuid":")" + std::string(kIdBytesMax + 1, 'u') + R"(",)").why, "no uuid");
  EXPECT_EQ(with(R"("uuid":")" + std::string(kIdBytesMax, 'u') + R"(",)").uuid.size(), kIdBytesMax);
}

TEST(TranscriptEntry, EntriesWithNothingToKeepAreSkipped) {  // WORK-U7
  for (std::string content : {"\"\"", "\" \\n\\t\"", "[]", "{}", "12", "null", "true", "[1,\"a\",[[]],null]",
                              R"([{"type":"text","text":5}])", R"([{"type":7}])", R"([{}])", R"([{"text":"no type"}])"})
    for (const Entry& entry : {user(content), assistant(content)}) {
      EXPECT_EQ(entry.kind, Kind::kSkipped) << content;
      EXPECT_EQ(entry.why, "nothing to keep") << content;
    }
  EXPECT_EQ(read(R"({"type":"user","uuid":"a"})").why, "nothing to keep");
  EXPECT_EQ(read(R"({"type":"user","uuid":"a","message":"hi"})").why, "nothing to keep");
  EXPECT_EQ(read(R"({"type":"user","uuid":"a","message":{}})").why, "nothing to keep");
}

TEST(TranscriptEntry, CallsAndResultsWithoutAnIdAreNotKept) {  // WORK-U13
  EXPECT_EQ(assistant(R"([{"type":"tool_use","id":3,"name":"B","input":{}}])").why, "nothing to keep");
  EXPECT_EQ(assistant(R"([{"type":"tool_use","id":"t","input":{}}])").why, "nothing to keep");
  EXPECT_EQ(user(R"([{"type":"tool_result","content":"x"}])").why, "nothing to keep");
}

TEST(TranscriptEntry, OtherTypesAreSkipped) {  // WORK-18, WORK-19
  for (std::string line : {R"({"type":"summary","summary":"x"})", R"({"type":"system","uuid":"a","content":"x"})",
                           R"({})", R"({"type":4})", R"({"type":"file-history-snapshot","snapshot":{"a":[{}]}})",
                           R"({"uuid":"a","message":{"content":"x"}})"})
    EXPECT_EQ(read(line).why, "of another type") << line;
}

TEST(TranscriptEntry, ATimeThatIsMissingOrMalformedIsNone) {  // WORK-U9
  for (std::string time :
       {"", R"("timestamp":12,)", R"("timestamp":"yesterday",)", R"("timestamp":"2026-13-01T00:00:00Z",)"}) {
    Entry entry = read("{" + time + R"("type":"user","uuid":"a","message":{"content":"hi"}})");
    EXPECT_EQ(entry.kind, Kind::kMessage);
    EXPECT_EQ(entry.at, std::nullopt) << time;
  }
}

TEST(TranscriptEntry, ACustomTitleIsATitle) {  // WORK-U13
  Entry entry = read(R"({"type":"custom-title","customTitle":"My \u20ac","sessionId":"s"})");
  EXPECT_EQ(entry.kind, Kind::kTitle);
  EXPECT_EQ(entry.title, "My €");
  EXPECT_EQ(read(R"({"type":"custom-title","customTitle":" "})").why, "nothing to keep");
  EXPECT_EQ(read(R"({"type":"custom-title","customTitle":5})").why, "nothing to keep");
  EXPECT_EQ(read(R"({"type":"custom-title"})").why, "nothing to keep");
  EXPECT_EQ(read(R"({"type":"user","customTitle":"x","uuid":"a","message":{"content":"hi"}})").body, "hi");
}

TEST(TranscriptEntry, TheOrderOfMembersDoesNotMatterAndTheLastOfEqualOnesCounts) {  // WORK-16
  Entry entry = read(R"({"message":{"content":"old"},"uuid":"a","message":{"content":[],"content":"new"},)"
                     R"("type":"system","uuid":"b","type":"user"})");
  EXPECT_EQ(entry.body, "new");
  EXPECT_EQ(entry.uuid, "b");
}

TEST(TranscriptEntry, HalvesOfSurrogatePairsAreReplaced) {  // WORK-U7
  EXPECT_EQ(user(R"("cut \ud83d")").body, "cut \uFFFD");
  EXPECT_EQ(user(R"("cut \ude00")").body, "cut \uFFFD");
  Entry entry =
      assistant(R"([{"type":"tool_use","id":"\udc00","name":"B","input":{"a":"\ud83d","b":"\ud83d\ude00"}}])");
  ASSERT_EQ(entry.tools.size(), 1U);
  EXPECT_EQ(entry.tools[0].id, "\uFFFD");
  EXPECT_EQ(entry.tools[0].input, R"({"a":"\ufffd","b":"\ud83d\ude00"})");
}

TEST(TranscriptEntry, DeepNestingIsPassedOverOrRefusedButNeverFollowed) {  // WORK-U7
  constexpr std::size_t kDeep = 1'000'000;
  std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  EXPECT_EQ(read(R"({"x":)" + deep + "," + line_of("user", "\"hi\"").substr(1)).body, "hi");
  EXPECT_EQ(user(deep).why, "nothing to keep");
  EXPECT_EQ(read(std::string(kDeep, '[')).why, "malformed");
  EXPECT_EQ(read(R"({"a":)" + std::string(kDeep, '{') + "}").why, "malformed");
  Entry entry = assistant(R"([{"type":"tool_use","id":"t","name":"B","input":)" + deep + "}]");
  ASSERT_EQ(entry.tools.size(), 1U);
  EXPECT_EQ(entry.tools[0].input, deep);
}

TEST(TranscriptEntry, AReaderGoesOnAfterAnything) {  // WORK-U7
  EntryReader reader;
  std::string good = line_of("user", "\"hello\"");
  std::string long_one = line_of("user", "\"" + std::string(9 << 20, 'x') + "\"");
  for (const std::string& bad : {std::string("{"), std::string("[1,2"), std::string("\xff\xfe"), std::string(200, '\0'),
                                 long_one, std::string(100'000, '{')}) {
    read(reader, bad);
    EXPECT_EQ(read(reader, good).body, "hello");
  }
  EXPECT_EQ(read(reader, long_one).body.size(), std::size_t{9} << 20);
}

TEST(TranscriptEntry, DamagedLinesNeverGiveTextThatIsNotUtf8) {  // WORK-U7
  std::string lines[] = {
      line_of("assistant", R"([{"type":"text","text":"é\u20ac\ud83d\ude00"},{"type":"thinking","thinking":"h\\"},
              {"type":"tool_use","id":"t","name":"B","input":{"a":["\n",1e5,null,{"é":true}]}}])"),
      line_of("user", R"([{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"€\t"}]}])")};
  std::mt19937 random(7);
  EntryReader reader;
  std::size_t kept = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string line = lines[round % 2];
    for (auto changes = random() % 3 + 1; changes > 0; --changes)
      line[random() % line.size()] = "\"\\{}[]:, \xff\xc3u0d8"[random() % 16];
    Entry entry = read(reader, line);
    EXPECT_EQ(entry.kind == Kind::kSkipped, !entry.why.empty());
    kept += entry.kind == Kind::kMessage;
    std::string all = entry.uuid + entry.body + entry.thinking;
    for (const ToolCall& call : entry.tools) all += call.id + call.name + call.input;
    for (const ToolResult& result : entry.results) all += result.id + result.output;
    ASSERT_EQ(find_invalid_utf8(all), std::nullopt) << line;
  }
  EXPECT_GT(kept, 1000U);
}

}  // namespace
}  // namespace perdure::transcript
