#include "tidy_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace perdure::tidy {
namespace {

constexpr auto kNowhere = std::string_view::npos;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_include(std::string_view line) {
  std::size_t hash = line.find_first_not_of(" \t");
  if (hash == kNowhere || line[hash] != '#') return false;
  std::size_t name = line.find_first_not_of(" \t", hash + 1);
  return name != kNowhere && line.substr(name).starts_with("include");
}

// What stands before `at` in its line.
std::string_view line_before(std::string_view text, std::size_t at) {
  text = text.substr(0, at);
  return text.substr(text.rfind('\n') + 1);
}

// Whether the quote at `at` separates digits, as in 1'000: the word that it stands in begins with a digit.
bool separates_digits(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '\'')) --begin;
  return begin < at && std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
}

// Where the literal that opens at `at` ends, one past its closing quote; an unfinished one ends with its line.
std::size_t end_of_literal(std::string_view text, std::size_t at) {
  char quote = text[at];
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return std::min(text.find('\n', at), text.size());
}

// The same for R"delimiter(...)delimiter" whose quote is at `at`.
std::size_t end_of_raw_literal(std::string_view text, std::size_t at) {
  std::size_t open = text.find('(', at);
  if (open == kNowhere) return text.size();
  std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  std::size_t end = text.find(close, open);
  return end == kNowhere ? text.size() : end + close.size();
}

}  // namespace

std::string code_only(std::string_view text) {
  std::string code(text);
  auto blank = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      if (code[i] != '\n') code[i] = ' ';
  };
  for (std::size_t at = 0; at < text.size();) {
    std::string_view rest = text.substr(at);
    std::size_t end = at + 1;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', at), text.size());
      blank(at, end);
    } else if (rest.starts_with("/*")) {
      std::size_t close = text.find("*/", at + 2);
      end = close == kNowhere ? text.size() : close + 2;
      blank(at, end);
    } else if (rest.front() == '"' && is_include(line_before(text, at))) {
      end = end_of_literal(text, at);
    } else if (rest.front() == '"' && at > 0 && text[at - 1] == 'R') {
      end = end_of_raw_literal(text, at);
      blank(at + 1, end - 1);
    } else if (rest.front() == '"' || (rest.front() == '\'' && !separates_digits(text, at))) {
      end = end_of_literal(text, at);
      blank(at + 1, end - 1);
    }
    at = end;
  }
  return code;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != kNowhere; at = line.find(word, at + 1)) {
    std::size_t end = at + word.size();
    bool begins = at == 0 || !is_word(word.front()) || !is_word(line[at - 1]);
    bool ends = end == line.size() || !is_word(word.back()) || !is_word(line[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::vector<Include> includes_of(std::string_view code) {
  std::vector<Include> includes;
  auto lines = lines_of(code);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    std::size_t open = line.find_first_of("\"<");
    if (open == kNowhere || !is_include(line)) continue;
    std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close == kNowhere) continue;
    includes.push_back({i + 1, line[open] == '"', std::string(line.substr(open + 1, close - open - 1))});
  }
  return includes;
}

std::set<std::string, std::less<>> cmake_words(std::string_view text) {
  std::set<std::string, std::less<>> words;
  for (std::string_view line : lines_of(text)) {
    std::string word;
    for (char c : std::string(line.substr(0, line.find('#'))) + " ") {
      if (std::string_view(" \t()\";").find(c) == kNowhere) {
        word += c;
      } else if (!word.empty()) {
        words.insert(std::exchange(word, {}));
      }
    }
  }
  return words;
}

}  // namespace perdure::tidy
