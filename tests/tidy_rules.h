// The style rules that a program can check.
//
// Each rule is a pure function over the files of the repository: it reads no disk, so tidy_test.cc can show it a bad
// file made up on the spot and see that it objects, and then show it the real ones. Most rules look at one file at a
// time; the one about registration needs them all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace perdure::tidy {

/// A file of the repository; the path is relative to its root and uses '/'.
struct File {
  std::string path;
  std::string text;
};

/// One objection. Line 0 means the file as a whole.
struct Finding {
  std::string path;
  std::size_t line;
  std::string what;

  bool operator==(const Finding&) const = default;
};

/// "src/store/x.cc:12: what"
std::string to_string(const Finding& finding);

using Findings = std::vector<Finding>;
using Rule = Findings (*)(const File&);

/// True for .h and .cc under include/, src/, tests/, bench/ and examples/. All rules about code ask this first.
bool is_code(std::string_view path);

/// True for all of tests/ and, elsewhere, for files called like foo_test.cc, foo_test_util.h or foo_fuzz.cc.
bool is_test(std::string_view path);

/// Threads, clocks, sleeps and randomness belong to src/runtime. Tests may start threads and use seeded engines, but
/// nothing called *_test.cc sleeps, wherever it is.
Findings runtime_alone_is_impure(const File& file);

/// A folder of src/ includes only itself and those before it; only tests include sim; an include names its folder.
Findings includes_point_one_way(const File& file);

/// Public headers include "perdure/..." and standard headers, nothing else.
Findings public_headers_are_self_contained(const File& file);

/// At most 1,000 lines, none wider than 120 columns except where clang-format is switched off.
Findings sizes_are_bounded(const File& file);

/// No tabs, no blanks at the end of a line, a newline at the end of the file. CMake files too.
Findings whitespace_is_clean(const File& file);

Findings headers_have_pragma_once(const File& file);

/// No notes about work left undone: those are issues. CMake and shell files too.
Findings nothing_is_left_for_later(const File& file);

Findings namespace_std_is_not_imported(const File& file);

/// No home directory, and no address of a package registry or mirror, in any file.
Findings no_machine_is_named(const File& file);

/// Every .cc of src/, and every *_test.cc and *_fuzz.cc, stands in a CMakeLists.txt of its own folder or of one above.
Findings sources_are_registered(const std::vector<File>& files);

}  // namespace perdure::tidy
