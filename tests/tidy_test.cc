// The style rules of docs/contributing.md, run over the repository. Each rule is first shown a bad file made up on the
// spot, so that a rule which has stopped working fails too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tidy_rules.h"
#include "tidy_text.h"

namespace perdure::tidy {
namespace {

namespace fs = std::filesystem;

// Every file that belongs to the repository: what is built, fetched or stored by running it is left out.
std::vector<File> read_repository() {
  static const std::vector<std::string> kLeftOut = {".git", "build", "node_modules", "perdure-data", ".cache"};
  std::vector<File> files;
  fs::path root(PERDURE_SOURCE_DIR);
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    if (std::ranges::count(kLeftOut, entry->path().filename().string()) > 0) {
      if (entry->is_directory()) entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && !entry->is_symlink()) {
      std::ifstream in(entry->path(), std::ios::binary);
      files.push_back({entry->path().lexically_relative(root).generic_string(),
                       std::string(std::istreambuf_iterator<char>(in), {})});
    }
  }
  std::ranges::sort(files, {}, &File::path);
  return files;
}

const std::vector<File>& repository() {
  static const std::vector<File> kFiles = read_repository();
  return kFiles;
}

std::string listed(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_string(finding) + "\n";
  return text;
}

std::string over_repository(Rule rule) {
  std::string text;
  for (const File& file : repository()) text += listed(rule(file));
  return text;
}

// How many objections `rule` has to a file of that path and text.
std::size_t objections(Rule rule, std::string path, std::string text) {
  return rule({std::move(path), std::move(text)}).size();
}

TEST(Tidy, TheRepositoryIsFoundAndHasCode) {
  auto has = [](std::string_view path) { return std::ranges::count(repository(), path, &File::path) == 1; };
  EXPECT_TRUE(has("include/perdure/error.h"));
  EXPECT_TRUE(has("src/base/error.cc"));
  EXPECT_TRUE(has("tests/tidy_test.cc"));
}

TEST(Tidy, OnlyRuntimeTouchesThreadsClocksAndRandomness) {
  Rule rule = runtime_alone_is_impure;
  for (std::string bad : {"std::thread t(f);", "std::jthread t;", "auto f = std::async(g);", "pthread_create(&t);",
                          "std::this_thread::sleep_for(1s);", "sleep_until(t);", "usleep(1);", "nanosleep(&t, 0);",
                          "std::chrono::steady_clock::now();", "system_clock::now();", "high_resolution_clock c;",
                          "clock_gettime(id, &t);", "gettimeofday(&t, 0);", "auto t = time(nullptr);",
                          "std::random_device d;", "int i = rand();", "std::mt19937 e(1);", "std::mt19937_64 e(1);"}) {
    EXPECT_EQ(objections(rule, "src/store/store.cc", "int x;\n" + bad + "\n"), 1u) << bad;
    EXPECT_EQ(objections(rule, "include/perdure/store.h", bad), 1u) << bad;
    EXPECT_EQ(objections(rule, "src/runtime/pool.cc", bad), 0u) << bad;
  }
  EXPECT_EQ(objections(rule, "src/store/a.cc", "// std::thread\nint lifetime(int), operand(), my_mt19937;"), 0u);
  EXPECT_EQ(objections(rule, "src/store/a.cc", "log(\"std::thread\"); std::this_thread::get_id();"), 0u);
  EXPECT_EQ(objections(rule, "src/store/store_test.cc", "std::thread t(f); std::mt19937 e(7);"), 0u);
  EXPECT_EQ(objections(rule, "src/store/store_test.cc", "std::random_device d;"), 1u);
  for (std::string test : {"src/store/store_test.cc", "src/runtime/pool_test.cc", "tests/kill_test.cc"})
    EXPECT_EQ(objections(rule, test, "std::this_thread::sleep_for(1s);"), 1u) << test;
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, IncludesPointOneWay) {
  Rule rule = includes_point_one_way;
  EXPECT_EQ(objections(rule, "src/store/a.cc", "#include \"tuple/tuple.h\"\n#include \"store/engine.h\"\n"), 0u);
  EXPECT_EQ(objections(rule, "src/store/lmdb/a.cc", "#include \"perdure/store.h\"\n#include <lmdb.h>\n"), 0u);
  EXPECT_EQ(objections(rule, "src/tuple/a.cc", "#  include \"store/engine.h\"\n"), 1u);
  EXPECT_EQ(objections(rule, "src/tuple/a_test.cc", "#include \"store/engine.h\"\n"), 1u);
  EXPECT_EQ(objections(rule, "src/store/a.cc", "#include \"engine.h\"\n"), 1u);
  EXPECT_EQ(objections(rule, "src/store/a.cc", "#include \"../base/assert.h\"\n"), 1u);
  EXPECT_EQ(objections(rule, "src/store/a.cc", "#include \"elsewhere/x.h\"\n"), 1u);
  EXPECT_EQ(objections(rule, "src/elsewhere/a.cc", ""), 1u);
  for (std::string user : {"src/cli/main.cc", "bench/bench_store.cc", "examples/accounts.cc"})
    EXPECT_EQ(objections(rule, user, "#include \"sim/world.h\"\n"), 1u) << user;
  for (std::string user : {"src/sim/world.cc", "src/store/store_test.cc", "tests/ring.cc"})
    EXPECT_EQ(objections(rule, user, "#include \"sim/world.h\"\n"), 0u) << user;
  EXPECT_EQ(objections(rule, "src/sim/world.cc", "#include \"store/engine.h\"\n"), 0u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, PublicHeadersIncludeOnlyEachOtherAndTheStandardLibrary) {
  Rule rule = public_headers_are_self_contained;
  EXPECT_EQ(objections(rule, "include/perdure/a.h", "#include <expected>\n#include \"perdure/bytes.h\"\n"), 0u);
  EXPECT_EQ(objections(rule, "include/perdure/a.h", "#include <lmdb.h>\n"), 1u);
  EXPECT_EQ(objections(rule, "include/perdure/a.h", "#include <boost/json>\n"), 1u);
  EXPECT_EQ(objections(rule, "include/perdure/a.h", "#include \"base/assert.h\"\n"), 1u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, EverySourceAndTestIsPartOfTheBuild) {
  File cmake{"src/store/CMakeLists.txt", "perdure_library(store SOURCES a.cc lmdb/b.cc)\n# perdure_test(c_test.cc)\n"};
  auto unregistered = [&](std::string path) { return sources_are_registered({cmake, {path, ""}}).size(); };
  EXPECT_EQ(unregistered("src/store/a.cc"), 0u);
  EXPECT_EQ(unregistered("src/store/lmdb/b.cc"), 0u);
  EXPECT_EQ(unregistered("src/store/b.cc"), 1u);
  EXPECT_EQ(unregistered("src/store/c_test.cc"), 1u) << "one that is commented out is not registered";
  EXPECT_EQ(unregistered("src/tuple/a.cc"), 1u) << "another folder's list does not count";
  EXPECT_EQ(unregistered("tests/x_test.cc"), 1u);
  EXPECT_EQ(unregistered("tests/x_fuzz.cc"), 1u);
  EXPECT_EQ(unregistered("tests/helper.cc"), 0u);
  EXPECT_EQ(listed(sources_are_registered(repository())), "");
}

TEST(Tidy, FilesAndLinesStayShort) {
  Rule rule = sizes_are_bounded;
  std::string full_line(120, 'x'), many_lines(1000, '\n');
  EXPECT_EQ(objections(rule, "src/base/a.cc", full_line), 0u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", full_line + "x"), 1u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", full_line.substr(1) + "\u00e9"), 0u) << "columns are not bytes";
  EXPECT_EQ(objections(rule, "src/base/a.cc", "// clang-format off\nx" + full_line + "\n// clang-format on\n"), 0u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", "// clang-format off\n// clang-format on\nx" + full_line), 1u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", many_lines), 0u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", many_lines + "\n"), 1u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, NoTabsAndNoTrailingBlanks) {
  Rule rule = whitespace_is_clean;
  EXPECT_EQ(objections(rule, "src/base/a.cc", "int a;\n\nint b;\n"), 0u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", "\tint a;\n"), 1u);
  EXPECT_EQ(objections(rule, "src/base/CMakeLists.txt", "project(x) \n"), 1u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", "int a;\r\n"), 1u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", "int a;"), 1u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, EveryHeaderHasPragmaOnce) {
  Rule rule = headers_have_pragma_once;
  EXPECT_EQ(objections(rule, "src/base/a.h", "// An idea.\n#pragma once\n"), 0u);
  EXPECT_EQ(objections(rule, "src/base/a.h", "// #pragma once\n"), 1u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", ""), 0u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, NothingIsLeftForLater) {
  Rule rule = nothing_is_left_for_later;
  for (std::string mark : {std::string("TO") + "DO", std::string("FIX") + "ME", std::string("XX") + "X"}) {
    EXPECT_EQ(objections(rule, "src/base/a.cc", "// " + mark + ": later\n"), 1u) << mark;
    EXPECT_EQ(objections(rule, "dev", "# " + mark + "\n"), 1u) << mark;
  }
  EXPECT_EQ(objections(rule, "src/base/a.cc", "mkdtemp(\"/tmp/perdure.XXXXXX\");\n"), 0u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, NamespaceStdIsNotImported) {
  Rule rule = namespace_std_is_not_imported;
  EXPECT_EQ(objections(rule, "src/base/a.cc", "using  namespace std ;\n"), 1u);
  EXPECT_EQ(objections(rule, "src/base/a.cc", "using namespace std::chrono_literals;\n"), 0u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(Tidy, NoFileNamesTheMachineItWasWrittenOn) {
  Rule rule = no_machine_is_named;
  for (std::string folder : {"home", "root", "Users"})
    EXPECT_EQ(objections(rule, "docs/a.md", "see /" + folder + "/ada/x"), 1u) << folder;
  std::string scheme = "https:";
  EXPECT_EQ(objections(rule, "web/package-lock.json", "\"resolved\": \"" + scheme + "//registry.example/x.tgz\""), 1u);
  EXPECT_EQ(objections(rule, "docs/a.md", scheme + "//example.org/registry and src/root.cc"), 0u);
  EXPECT_EQ(over_repository(rule), "");
}

TEST(TidyText, CodeIsWhatIsLeftWithoutCommentsAndLiterals) {
  EXPECT_EQ(code_only("a // b\nc"), "a     \nc");
  EXPECT_EQ(code_only("a /* b\nc */ d"), "a     \n     d");
  EXPECT_EQ(code_only(R"(f("x // \" y", 'z') // w)"), "f(\"         \", ' ')     ");
  EXPECT_EQ(code_only("R\"-(a)\" b)-\" c"), "R\"         \" c");
  EXPECT_EQ(code_only("1'000 + 0x1'f // x"), "1'000 + 0x1'f     ");
  EXPECT_EQ(code_only("#include \"a/b.h\"  // c"), "#include \"a/b.h\"      ");
}

}  // namespace
}  // namespace perdure::tidy
