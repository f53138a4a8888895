// Just enough reading of C++ and CMake for the rules of tidy_rules.h: lines, words, includes, and code apart from
// comments and literals. No parser: a rule that needs one belongs to clang-tidy.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace perdure::tidy {

struct Include {
  std::size_t line;
  bool quoted;
  std::string name;
};

/// `text` with comments and the insides of literals replaced by blanks, so that what is left is code. Lines and columns
/// stay where they were. The names in #include lines are kept, quoted or not.
std::string code_only(std::string_view text);

/// The lines of `text` without their newlines; views into it.
std::vector<std::string_view> lines_of(std::string_view text);

/// Whether `word` stands in `line` other than as a part of a longer word. A word may hold or end in punctuation.
bool has_word(std::string_view line, std::string_view word);

/// The #include lines of `code`, which code_only() has been through.
std::vector<Include> includes_of(std::string_view code);

/// The words of a CMake file without its comments: what is commented out is not there.
std::set<std::string, std::less<>> cmake_words(std::string_view text);

}  // namespace perdure::tidy
