#include "tidy_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "tidy_text.h"

namespace perdure::tidy {
namespace {

constexpr std::size_t kLinesMax = 1000;
constexpr std::size_t kColumnsMax = 120;

// The folders of src/, lowest first. See docs/internals/architecture.md.
constexpr std::array<std::string_view, 16> kFolders = {
    "base",     "runtime",  "tuple",    "value",      "store", "session", "actor", "queue",
    "schedule", "debounce", "sequence", "transcript", "node",  "http",    "cli",   "sim"};

std::string without_blanks(std::string_view line) {
  std::string out(line);
  std::erase_if(out, [](char c) { return c == ' '; });
  return out;
}

void find_words(const File& file, std::string_view text, std::span<const std::string_view> words, std::string_view why,
                Findings& findings) {
  auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (std::string_view word : words)
      if (has_word(lines[i], word)) findings.push_back({file.path, i + 1, std::string(word) + ": " + std::string(why)});
}

bool is_build_file(std::string_view path) {
  return path.ends_with("CMakeLists.txt") || path.ends_with(".cmake");
}

bool is_script(std::string_view path) {
  return path == "dev" || path == ".ci/run" || path.ends_with(".sh");
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The folder of src/ that `path` lies in: "store" for "src/store/lmdb/engine.cc", empty for what is not in src/.
std::string_view folder_of(std::string_view path) {
  if (!path.starts_with("src/")) return {};
  path.remove_prefix(4);
  std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string to_string(const Finding& finding) {
  return finding.path + ":" + std::to_string(finding.line) + ": " + finding.what;
}

bool is_code(std::string_view path) {
  static constexpr std::array<std::string_view, 5> kRoots = {"include/", "src/", "tests/", "bench/", "examples/"};
  return (path.ends_with(".h") || path.ends_with(".cc")) &&
         std::ranges::any_of(kRoots, [&](std::string_view root) { return path.starts_with(root); });
}

bool is_test(std::string_view path) {
  std::string_view name = name_of(path);
  return path.starts_with("tests/") || name.find("_test.") != name.npos || name.find("_test_") != name.npos ||
         name.find("_fuzz.") != name.npos;
}

Findings runtime_alone_is_impure(const File& file) {
  static constexpr std::array<std::string_view, 6> kSleeps = {"sleep_for", "sleep_until",     "usleep",
                                                              "nanosleep", "clock_nanosleep", "sleep("};
  static constexpr std::array<std::string_view, 4> kThreads = {"std::thread", "std::jthread", "std::async",
                                                               "pthread_create"};
  static constexpr std::array<std::string_view, 9> kClocks = {"steady_clock",  "system_clock", "high_resolution_clock",
                                                              "clock_gettime", "gettimeofday", "time(nullptr)",
                                                              "time(NULL)",    "time(0)",      "std::clock"};
  static constexpr std::array<std::string_view, 5> kChance = {"random_device", "rand(", "srand(", "getrandom",
                                                              "arc4random"};
  static constexpr std::array<std::string_view, 4> kSeeded = {"mt19937", "mt19937_64", "default_random_engine",
                                                              "minstd_rand"};
  Findings findings;
  if (!is_code(file.path)) return findings;
  bool in_library = file.path.starts_with("include/") || file.path.starts_with("src/");
  bool in_runtime = folder_of(file.path) == "runtime";
  std::string code = code_only(file.text);
  if (file.path.ends_with("_test.cc")) {
    find_words(file, code, kSleeps, "a test waits for what happens, or moves virtual time", findings);
  } else if (in_library && !in_runtime) {
    find_words(file, code, kSleeps, "only src/runtime sleeps; use Scheduler::at", findings);
  }
  if (!in_library || in_runtime) return findings;
  find_words(file, code, kClocks, "only src/runtime reads clocks; ask the Scheduler or its Clock", findings);
  find_words(file, code, kChance, "only src/runtime draws chance; it would not replay from a seed", findings);
  if (is_test(file.path)) return findings;
  find_words(file, code, kThreads, "only src/runtime starts threads; use Scheduler::post", findings);
  find_words(file, code, kSeeded, "only src/runtime draws chance, and tests with a fixed seed", findings);
  return findings;
}

Findings includes_point_one_way(const File& file) {
  Findings findings;
  if (!is_code(file.path)) return findings;
  auto rank = [](std::string_view folder) { return std::ranges::find(kFolders, folder); };
  std::string_view own = folder_of(file.path);
  bool in_src = file.path.starts_with("src/");
  if (in_src && rank(own) == kFolders.end())
    return {{file.path, 0, "not in a folder that docs/internals/architecture.md knows"}};
  std::string code = code_only(file.text);
  for (const Include& include : includes_of(code)) {
    if (!include.quoted) continue;
    auto object = [&](const std::string& what) {
      findings.push_back({file.path, include.line, include.name + ": " + what});
    };
    std::string target = include.name.substr(0, include.name.find('/'));
    if (include.name.starts_with("..") || (in_src && target == include.name)) {
      object("name the folder, as in \"store/engine.h\"");
    } else if (target == "sim") {
      if (own != "sim" && !is_test(file.path)) object("only tests include sim");
    } else if (in_src && rank(target) == kFolders.end()) {
      if (target != "perdure") object("no folder of src/ is called that");
    } else if (in_src && rank(target) > rank(own)) {
      object(std::string(own) + " is below " + std::string(target));
    }
  }
  return findings;
}

Findings public_headers_are_self_contained(const File& file) {
  Findings findings;
  if (!file.path.starts_with("include/")) return findings;
  std::string code = code_only(file.text);
  for (const Include& include : includes_of(code)) {
    bool standard = include.name.find_first_of("/.") == std::string::npos;
    if (include.quoted ? !include.name.starts_with("perdure/") : !standard)
      findings.push_back({file.path, include.line, include.name + ": neither perdure/ nor standard"});
  }
  return findings;
}

Findings sizes_are_bounded(const File& file) {
  Findings findings;
  if (!is_code(file.path)) return findings;
  auto lines = lines_of(file.text);
  if (lines.size() > kLinesMax)
    findings.push_back({file.path, 0, std::to_string(lines.size()) + " lines; split it by idea"});
  bool formatted = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_with("// clang-format off")) formatted = false;
    if (lines[i].ends_with("// clang-format on")) formatted = true;
    std::size_t columns = columns_of(lines[i]);
    if (formatted && columns > kColumnsMax)
      findings.push_back({file.path, i + 1, std::to_string(columns) + " columns"});
  }
  return findings;
}

Findings whitespace_is_clean(const File& file) {
  Findings findings;
  if (!is_code(file.path) && !is_build_file(file.path)) return findings;
  auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find('\t') != std::string_view::npos) findings.push_back({file.path, i + 1, "a tab"});
    if (lines[i].ends_with(' ') || lines[i].ends_with('\r'))
      findings.push_back({file.path, i + 1, "a blank at the end"});
  }
  if (!file.text.empty() && !file.text.ends_with('\n'))
    findings.push_back({file.path, lines.size(), "no newline at the end of the file"});
  return findings;
}

Findings headers_have_pragma_once(const File& file) {
  if (!is_code(file.path) || !file.path.ends_with(".h")) return {};
  std::string code = code_only(file.text);
  if (std::ranges::count(lines_of(code), "#pragma once") > 0) return {};
  return {{file.path, 0, "#pragma once is missing"}};
}

Findings nothing_is_left_for_later(const File& file) {
  // In two halves, so that this file passes its own rule.
  static const std::array kMarks = {std::string("TO") + "DO", std::string("FIX") + "ME", std::string("XX") + "X"};
  static const std::array<std::string_view, 3> kWords = {kMarks[0], kMarks[1], kMarks[2]};
  Findings findings;
  if (is_code(file.path) || is_build_file(file.path) || is_script(file.path))
    find_words(file, file.text, kWords, "do it now, or open an issue", findings);
  return findings;
}

Findings namespace_std_is_not_imported(const File& file) {
  Findings findings;
  if (!is_code(file.path)) return findings;
  std::string code = code_only(file.text);
  auto lines = lines_of(code);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (without_blanks(lines[i]).find("usingnamespacestd;") != std::string::npos)
      findings.push_back({file.path, i + 1, "name what you use"});
  return findings;
}

Findings no_machine_is_named(const File& file) {
  static constexpr std::array<std::string_view, 3> kHomes = {"home", "root", "Users"};
  static constexpr std::array<std::string_view, 5> kHosts = {"registry", "artifactory", "nexus", "mirror", "proxy"};
  Findings findings;
  auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::string_view home : kHomes) {
      std::string folder = "/" + std::string(home) + "/";
      if (lines[i].find(folder) != std::string_view::npos)
        findings.push_back({file.path, i + 1, folder + ": a path of one machine"});
    }
    for (std::size_t at = lines[i].find("://"); at != std::string_view::npos; at = lines[i].find("://", at + 3)) {
      std::string_view rest = lines[i].substr(at + 3);
      std::string_view host = rest.substr(0, rest.find_first_of("/\"'`<> )"));
      if (std::ranges::any_of(kHosts, [&](std::string_view part) { return host.find(part) != host.npos; }))
        findings.push_back({file.path, i + 1, std::string(host) + ": a package registry or mirror"});
    }
  }
  return findings;
}

Findings sources_are_registered(const std::vector<File>& files) {
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> registered;
  for (const File& file : files)
    if (name_of(file.path) == "CMakeLists.txt")
      registered[file.path.substr(0, file.path.size() - name_of(file.path).size())] = cmake_words(file.text);
  Findings findings;
  for (const File& file : files) {
    std::string_view path = file.path;
    if (!is_code(path) || !path.ends_with(".cc")) continue;
    if (!path.starts_with("src/") && !path.ends_with("_test.cc") && !path.ends_with("_fuzz.cc")) continue;
    bool found = std::ranges::any_of(registered, [&](const auto& list) {
      return path.starts_with(list.first) && list.second.contains(path.substr(list.first.size()));
    });
    if (!found) findings.push_back({file.path, 0, "no CMakeLists.txt names it, so it is never built"});
  }
  return findings;
}

}  // namespace perdure::tidy
