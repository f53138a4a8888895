#include "store/remote/server_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace perdure::remote {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kStranger = 65534;
const std::string kName = "perdure_of_this_test.so";

class FindLibrary : public testing::Test {
 protected:
  FindLibrary() {
    std::string pattern = (fs::temp_directory_path() / "perdure_library_XXXXXX").string();
    root_ = fs::canonical(mkdtemp(pattern.data()));
  }
  ~FindLibrary() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  fs::path file(const fs::path& at) {
    fs::create_directories(at.parent_path());
    std::ofstream(at) << "x";
    fs::permissions(at.parent_path(), fs::perms(0755));
    fs::permissions(at, fs::perms(0644));
    return at;
  }
  fs::path program(const fs::path& at) { return file(root_ / at); }
  /// Puts one there.
  fs::path put(const fs::path& directory) { return file(root_ / directory / kName); }
  static fs::path found(const fs::path& program) { return find_library(kName, program).value_or(fs::path()); }
  static std::string refusal(const fs::path& program) {
    auto path = find_library(kName, program);
    return path ? "it is " + path->string() : path.error().message;
  }

  fs::path root_;
};

TEST_F(FindLibrary, InAnInstallationItIsInTheLibraryDirectory) {
  fs::path library = put(fs::path(PERDURE_LIBDIR) / "perdure");
  EXPECT_EQ(found(program("bin/perdure")), library);
  EXPECT_EQ(found(program("elsewhere/deeper/perdure")), "");
}

TEST_F(FindLibrary, InABuildItIsInEnginesBesideTheProgramOrAbove) {
  fs::path library = put("engines");
  EXPECT_EQ(found(program("perdure")), library);
  EXPECT_EQ(found(program("examples/bank")), library);
  EXPECT_EQ(found(program("tests/e2e/worker")), library);
  EXPECT_THAT(refusal(program("far/too/deep/worker")), HasSubstr("PERDURE_ENGINES"));
}

TEST_F(FindLibrary, WhatOthersMayWriteToIsLeftAlone) {
  fs::path at = program("tests/e2e/worker"), library = put("engines");
  for (unsigned mode : {0775u, 0757u, 01777u}) {
    fs::permissions(library.parent_path(), fs::perms(mode));
    EXPECT_THAT(refusal(at), HasSubstr("what is in " + (root_ / "engines").string() + " is left alone"));
  }
  fs::permissions(library.parent_path(), fs::perms(0755));
  for (unsigned mode : {0664u, 0646u}) {
    fs::permissions(library, fs::perms(mode));
    EXPECT_THAT(refusal(at), HasSubstr("is left alone"));
  }
  // One that can be trusted is found behind it.
  put("tests/engines");
  fs::permissions(root_ / "tests/engines", fs::perms(0777));
  fs::permissions(library, fs::perms(0644));
  EXPECT_EQ(found(at), library);
}

class FindLibraryOfOthers : public FindLibrary {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  }
  static void give(const fs::path& path) { ASSERT_EQ(lchown(path.c_str(), kStranger, kStranger), 0); }
};

TEST_F(FindLibraryOfOthers, WhatAStrangerHasPutThereIsLeftAlone) {
  fs::path at = program("x/perdure"), library = put("engines");
  give(root_ / "engines");
  EXPECT_THAT(refusal(at), HasSubstr("is left alone"));
  ASSERT_EQ(chown((root_ / "engines").c_str(), 0, 0), 0);
  ASSERT_EQ(found(at), library);
  give(library);
  EXPECT_THAT(refusal(at), HasSubstr("is left alone"));
}

TEST_F(FindLibraryOfOthers, ALinkOfAStrangerIsNotFollowed) {
  fs::path at = program("x/perdure");
  put("ours");
  fs::create_directory_symlink(root_ / "ours", root_ / "engines");
  EXPECT_EQ(found(at), root_ / "engines" / kName);
  give(root_ / "engines");
  EXPECT_THAT(refusal(at), HasSubstr("is left alone"));
}

TEST_F(FindLibraryOfOthers, WhoeverTheProgramBelongsToMayBringIt) {
  fs::path at = program("x/perdure"), library = put("engines");
  give(root_ / "engines");
  give(library);
  give(at);
  EXPECT_EQ(found(at), library);
}

}  // namespace
}  // namespace perdure::remote
