// Code in the documentation that claims to be from an example is that example, word for word: after
//   <!-- from examples/NAME.cc -->          the whole file, or
//   <!-- from examples/NAME.cc [MARK] -->   what stands between two lines "// [MARK]", without the common indentation.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "tidy_text.h"

namespace perdure::tidy {
namespace {

namespace fs = std::filesystem;

std::string read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The lines between the two that hold `mark`, or all if it is empty.
std::string quoted(const std::string& text, const std::string& mark) {
  if (mark.empty()) return text;
  std::vector<std::string> inside;
  int marks = 0;
  for (std::string_view line : lines_of(text)) {
    bool is_mark = line.ends_with("// [" + mark + "]");
    marks += is_mark ? 1 : 0;
    if (!is_mark && marks == 1) inside.emplace_back(line);
  }
  if (marks != 2) return "(there are " + std::to_string(marks) + " lines // [" + mark + "])";
  std::size_t indent = std::string::npos;
  for (const std::string& line : inside)
    if (!line.empty()) indent = std::min(indent, line.find_first_not_of(' '));
  std::string out;
  for (const std::string& line : inside) out += (line.empty() ? line : line.substr(indent)) + "\n";
  return out;
}

struct Quote {
  std::string page, example, mark, code;
};

std::vector<Quote> quotes_of(const std::string& page, const std::string& text) {
  static const std::regex kQuote("<!-- from (examples/[a-z_]+\\.cc)( \\[([a-z_]+)\\])? -->\n```cpp\n([^`]*)```");
  std::vector<Quote> quotes;
  for (std::sregex_iterator found(text.begin(), text.end(), kQuote), end; found != end; ++found)
    quotes.push_back({page, (*found)[1], (*found)[3], (*found)[4]});
  return quotes;
}

TEST(Quotes, CodeInTheDocumentationIsThatOfTheExamples) {
  const fs::path root(PERDURE_SOURCE_DIR);
  std::size_t compared = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() != ".md") continue;
    std::string text = read_whole(entry.path());
    auto quotes = quotes_of(entry.path().lexically_relative(root), text);
    std::size_t claims = 0;
    for (std::size_t at = 0; (at = text.find("\n<!-- from examples/", at)) != std::string::npos; ++at) ++claims;
    EXPECT_EQ(quotes.size(), claims) << entry.path() << " has a quotation that is not followed by its code";
    for (const Quote& quote : quotes) {
      EXPECT_EQ(quote.code, quoted(read_whole(root / quote.example), quote.mark)) << quote.page;
      ++compared;
    }
  }
  EXPECT_GE(compared, 5u);
}

TEST(Quotes, AMarkTakesWhatIsBetweenWithoutItsIndentation) {
  EXPECT_EQ(quoted("a\n  // [x]\n  b\n\n    c\n  // [x]\nd\n", "x"), "b\n\n  c\n");
  EXPECT_EQ(quoted("a\n", ""), "a\n");
  EXPECT_NE(quoted("// [x]\nb\n", "x"), "b\n");
  EXPECT_EQ(quotes_of("p", "<!-- from examples/a.cc [m] -->\n```cpp\ncode\n```\n").size(), 1u);
}

}  // namespace
}  // namespace perdure::tidy
