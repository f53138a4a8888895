#include "transcript/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transcript/lines_test_util.h"

namespace perdure::transcript {
namespace {

using ::testing::HasSubstr;

/// A root, and a directory beside it that is none.
class TranscriptPath : public ScratchDirectory {
 protected:
  TranscriptPath() {
    fs::create_directories(root_);
    fs::create_directories(outside_);
  }
  /// What both functions say.
  std::string refused(const std::string& path, ErrorCode code) {
    auto opened = open_transcript(path, {root_});
    auto checked = check_path(path, {root_});
    if (opened || checked) return "taken";
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_EQ(checked.error().code, code) << checked.error().message;
    EXPECT_EQ(opened.error().message, checked.error().message);
    return opened.error().message;
  }
  std::string opened(const std::string& path, const std::vector<std::string>& roots) {
    auto checked = check_path(path, roots);
    EXPECT_TRUE(checked) << checked.error().message;
    auto file = open_transcript(path, roots);
    if (!file) return file.error().message;
    char bytes[64];
    ssize_t got = ::read(file->fd(), bytes, sizeof bytes);
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }
  ErrorCode check_error(const std::string& path) {
    auto checked = check_path(path, {root_});
    EXPECT_FALSE(checked) << path;
    return checked ? ErrorCode::kConflict : checked.error().code;
  }

  std::string root_ = directory_ + "/allowed", outside_ = directory_ + "/allowed2";
  std::string inside_ = root_ + "/a.jsonl";
};

TEST_F(TranscriptPath, AFileBelowARootIsOpened) {  // WORK-14
  write(inside_, "hello");
  EXPECT_EQ(opened(inside_, {root_}), "hello");
  EXPECT_EQ(opened(inside_, {root_ + "/"}), "hello");
  EXPECT_EQ(opened(inside_, {"/nowhere", "", outside_, root_}), "hello");
  EXPECT_EQ(opened(inside_, {"/"}), "hello");
  EXPECT_EQ(opened(root_ + "/.//../allowed/a.jsonl", {root_}), "hello");
}

TEST_F(TranscriptPath, TheDescriptorIsReadOnlyAndClosedOnExec) {  // WORK-14
  write(inside_, "hello");
  auto file = open_transcript(inside_, {root_});
  ASSERT_TRUE(file);
  EXPECT_EQ(::fcntl(file->fd(), F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(::fcntl(file->fd(), F_GETFD), FD_CLOEXEC);
  int fd = file->fd();
  TranscriptFile moved = std::move(*file);
  EXPECT_EQ(moved.fd(), fd);
  EXPECT_EQ(file->fd(), -1);
}

TEST_F(TranscriptPath, NoDescriptorIsLeftBehind) {  // WORK-14
  write(inside_, "hello");
  auto count = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); };
  auto before = count();
  for (const std::string& path : {inside_, root_, outside_, root_ + "/none"}) (void)open_transcript(path, {root_});
  EXPECT_EQ(count(), before);
}

TEST_F(TranscriptPath, OnlyPathsThatCouldBeOneAreLookedAt) {  // WORK-14
  EXPECT_THAT(refused("", ErrorCode::kInvalidArgument), HasSubstr("is empty"));
  EXPECT_THAT(refused("a.jsonl", ErrorCode::kInvalidArgument), HasSubstr("not absolute"));
  EXPECT_THAT(refused(inside_ + std::string("\0b", 2), ErrorCode::kInvalidArgument), HasSubstr("NUL"));
  EXPECT_THAT(refused("/" + std::string(kPathBytesMax, 'a'), ErrorCode::kInvalidArgument),
              HasSubstr("longer than 4096"));
  EXPECT_THAT(refused(root_ + "/" + std::string(300, 'a'), ErrorCode::kInvalidArgument), HasSubstr("too long a name"));
}

TEST_F(TranscriptPath, WhatIsNoRegularFileIsRefused) {  // WORK-14
  fs::create_directories(root_ + "/directory");
  ASSERT_EQ(::mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (root_ + "/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(listener);
  EXPECT_THAT(refused(root_ + "/directory", ErrorCode::kInvalidArgument),
              HasSubstr("is a directory; name the regular"));
  EXPECT_THAT(refused(root_ + "/pipe", ErrorCode::kInvalidArgument), HasSubstr("is a pipe"));
  EXPECT_THAT(refused(root_ + "/socket", ErrorCode::kInvalidArgument), HasSubstr("is a socket"));
  auto device = open_transcript("/dev/zero", {"/dev"});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(device.error().message, HasSubstr("is a device"));
  EXPECT_FALSE(check_path("/dev/zero", {"/dev"}));
}

TEST_F(TranscriptPath, WhatIsOutsideIsRefused) {  // WORK-14
  write(outside_ + "/a.jsonl", "secret");
  EXPECT_THAT(refused(outside_ + "/a.jsonl", ErrorCode::kPermissionDenied), HasSubstr("outside the directories"));
  EXPECT_THAT(refused(root_ + "/../allowed2/a.jsonl", ErrorCode::kPermissionDenied), HasSubstr(root_));
  EXPECT_THAT(refused(root_, ErrorCode::kPermissionDenied), HasSubstr("outside"));
  auto without = open_transcript(outside_ + "/a.jsonl", {});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("there are none"));
}

TEST_F(TranscriptPath, LinksAreFollowedToWhereTheyLead) {  // WORK-14
  write(inside_, "hello");
  write(outside_ + "/a.jsonl", "secret");
  fs::create_symlink(inside_, root_ + "/good");
  fs::create_symlink(outside_ + "/a.jsonl", root_ + "/bad");
  fs::create_symlink(outside_, root_ + "/bad-directory");
  fs::create_symlink(inside_, outside_ + "/back");
  fs::create_symlink(root_, directory_ + "/link-to-allowed");
  EXPECT_EQ(opened(root_ + "/good", {root_}), "hello");
  EXPECT_EQ(opened(outside_ + "/back", {root_}), "hello");
  EXPECT_EQ(opened(inside_, {directory_ + "/link-to-allowed"}), "hello");
  EXPECT_THAT(refused(root_ + "/bad", ErrorCode::kPermissionDenied), HasSubstr("outside"));
  EXPECT_THAT(refused(root_ + "/bad-directory/a.jsonl", ErrorCode::kPermissionDenied), HasSubstr("outside"));
}

TEST_F(TranscriptPath, LoopsOfLinksAreRefused) {  // WORK-14
  fs::create_symlink(root_ + "/one", root_ + "/two");
  fs::create_symlink(root_ + "/two", root_ + "/one");
  EXPECT_THAT(refused(root_ + "/one", ErrorCode::kInvalidArgument), HasSubstr("loop of symbolic links"));
}

TEST_F(TranscriptPath, AFileThatMayNotBeReadIsRefused) {  // WORK-14
  write(inside_, "hello");
  fs::permissions(inside_, fs::perms::none);
  fs::permissions(directory_, fs::perms::all);
  fs::permissions(root_, fs::perms::all);
  // Root may read everything.
  bool is_root = ::geteuid() == 0;
  ASSERT_EQ(is_root ? ::seteuid(65534) : 0, 0);
  std::string message = refused(inside_, ErrorCode::kPermissionDenied);
  fs::path hidden = root_ + "/hidden";
  fs::create_directories(hidden);
  fs::permissions(hidden, fs::perms::none);
  std::string below = refused(hidden / "a.jsonl", ErrorCode::kPermissionDenied);
  fs::permissions(hidden, fs::perms::all);
  ASSERT_EQ(is_root ? ::seteuid(0) : 0, 0);
  EXPECT_THAT(message, HasSubstr("may not be read by this process; change its permissions"));
  EXPECT_THAT(below, HasSubstr("may not be read"));
}

TEST_F(TranscriptPath, AFileThatIsNotThereYetIsNotFoundButMayCome) {  // WORK-U7
  for (std::string path : {"/a.jsonl", "/new/deep/a.jsonl", "/new//a.jsonl"}) {
    auto missing = open_transcript(root_ + path, {root_});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(check_path(root_ + path, {root_})) << path;
  }
  EXPECT_TRUE(check_path("/nowhere/a.jsonl", {"/"}));
}

TEST_F(TranscriptPath, AFileThatIsNotThereYetMustComeBelowARoot) {  // WORK-14
  write(inside_, "hello");
  EXPECT_EQ(check_error(outside_ + "/none"), ErrorCode::kPermissionDenied);
  EXPECT_EQ(check_error("/nowhere/a.jsonl"), ErrorCode::kPermissionDenied);
  EXPECT_EQ(check_error(root_ + "/new/../../allowed2/none"), ErrorCode::kPermissionDenied);
  EXPECT_EQ(check_error(root_ + "/new/.."), ErrorCode::kPermissionDenied);
  EXPECT_EQ(check_error(inside_ + "/below-a-file"), ErrorCode::kNotFound);
  fs::create_symlink(outside_ + "/none", root_ + "/dangling");
  EXPECT_EQ(check_error(root_ + "/dangling"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(check_error(root_ + "/dangling/a.jsonl"), ErrorCode::kInvalidArgument);
  fs::create_symlink(outside_, root_ + "/elsewhere");
  EXPECT_EQ(check_error(root_ + "/elsewhere/none"), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace perdure::transcript
