#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/failure.h"

namespace perdure::cli {
namespace {

Value json(std::string_view text) {
  return *Value::from_json(text);
}

TEST(CliTable, AlignsColumnsAndPutsNumbersToTheRight) {
  Table table({{"ID", "id"}, {"N", "counts.n", Style::kRight}, {"VALUE", "value"}}, {});
  std::vector<Value> rows = {json(R"({"id":"a","counts":{"n":7},"value":{"x":1}})"),
                             json(R"({"id":"bcd","counts":{"n":1000},"value":"text"})"), json(R"({"id":"ü"})")};
  EXPECT_EQ(table.page(rows),
            "ID      N  VALUE\n"
            "a       7  {\"x\":1}\n"
            "bcd  1000  text\n"
            "ü       -  -\n");
  EXPECT_EQ(table.page(std::vector{json(R"({"id":"e","counts":{"n":1},"value":null})")}), "e       1  -\n")
      << "titles come once, and the widths stay";
}

TEST(CliTable, CutsLongLinesToTheTerminal) {
  Table table({{"ID", "id"}, {"VALUE", "value"}}, {.columns = 12});
  EXPECT_EQ(table.page(std::vector{json(R"({"id":"ab","value":"0123456789"})")}), "ID  VALUE\nab  0123456…\n");
}

TEST(CliTable, ColoursStatesAndTitles) {
  Table table({{"STATE", "state", Style::kState}}, {.colour = true});
  EXPECT_EQ(table.page(std::vector{json(R"({"state":"dead"})")}), "\x1b[1mSTATE\x1b[0m\n\x1b[31mdead\x1b[0m\n");
}

TEST(CliTable, NothingStoredCanReachTheTerminal) {
  EXPECT_EQ(cell_of(&static_cast<const Value&>(json(R"("a\u001b[2Jb\nc\u007f")"))), "a\\x1b[2Jb\\nc\\x7f");
}

TEST(CliTable, ControlsOfMoreThanOneByteCannotEither) {
  // U+009B is what ESC [ is. Neighbours, and other characters with such a byte, stay.
  for (std::string json_text : {R"("a\u0080\u009b2J\u009f")", R"({"k":"\u0080\u009b2J\u009f\u007f"})"}) {
    std::string cell = cell_of(&static_cast<const Value&>(json(json_text)));
    EXPECT_NE(cell.find("\\x80\\x9b2J\\x9f"), std::string::npos) << cell;
    EXPECT_EQ(cell.find('\x9b'), std::string::npos) << cell;
    EXPECT_EQ(cell.find('\x7f'), std::string::npos) << cell;
  }
  EXPECT_EQ(without_controls("\u00a0\u00bf\u00c0\u00db\u011b\u209b\xc2"), "\u00a0\u00bf\u00c0\u00db\u011b\u209b\xc2");
}

TEST(CliTable, CutsBetweenCharacters) {
  EXPECT_EQ(cut("ääää", 4), "ääää");
  EXPECT_EQ(cut("ääää", 3), "ää…");
  EXPECT_EQ(cut("ääää", 0), "ääää");
}

TEST(CliTable, TakesTheFirstAlternativeThatIsThere) {
  Value row = json(R"({"a":null,"b":{"c":2}})");
  EXPECT_EQ(cell_of(at_path(row, "a|b.c")), "2");
  EXPECT_EQ(cell_of(at_path(row, "a|x.y")), "-");
}

TEST(CliTable, AnObjectIsLinesOfNamesAndValues) {
  EXPECT_EQ(pairs(json(R"({"worker":"mail","counts":{"dead":0,"ready":12},"rules":[],"value":{"deep":{"x":1}}})"), {}),
            "counts.dead   0\n"
            "counts.ready  12\n"
            "value         {\"deep\":{\"x\":1}}\n"
            "worker        mail\n");
}

TEST(CliFailure, ExitCodesComeFromTheTableOfErrors) {
  for (const ErrorInfo& row : error_table())
    EXPECT_EQ(failure_of(row.name, "x", 599).exit_code, row.exit_code) << row.name;
}

TEST(CliFailure, UnknownCodesGoByTheStatus) {
  auto exit_code = [](int status) { return failure_of(http::Response{status, {}, "{}"}).exit_code; };
  EXPECT_EQ(exit_code(400), 2);
  EXPECT_EQ(exit_code(401), 1);
  EXPECT_EQ(exit_code(404), 3);
  EXPECT_EQ(exit_code(409), 4);
  EXPECT_EQ(exit_code(412), 4);
  EXPECT_EQ(exit_code(422), 4);
  EXPECT_EQ(exit_code(429), 5);
  EXPECT_EQ(exit_code(503), 5);
  EXPECT_EQ(exit_code(507), 5);
  EXPECT_EQ(exit_code(500), 1);
}

TEST(CliFailure, TheMessageIsTheMostThatTheAnswerSays) {
  auto message = [](std::string body) { return failure_of(http::Response{500, {}, body}).message; };
  EXPECT_EQ(message(R"({"title":"t","detail":"d","error":{"code":"x","message":"m"}})"), "m");
  EXPECT_EQ(message(R"({"title":"t","detail":"d"})"), "d");
  EXPECT_EQ(message(R"({"title":"t"})"), "t");
  EXPECT_EQ(message("<html>"), "the daemon answered with the status 500");
}

}  // namespace
}  // namespace perdure::cli
