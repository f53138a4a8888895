#include "transcript/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "base/rfc3339.h"

namespace perdure::transcript {
namespace {

namespace fs = std::filesystem;

class Spool : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<void> add(const std::string& hook, const std::string& id = "i") {
    return append_to_spool(path_, {id, "default", hook, *parse_rfc3339("2026-01-31T08:15:00.250Z")});
  }
  Result<SpoolReport> take() {
    return take_spool(path_, [this](std::span<const Spooled> batch) -> Result<void> {
      batches_.push_back(batch.size());
      if (batches_.size() == fails_at_) return fail(ErrorCode::kUnavailable, "died");
      for (const Spooled& each : batch) taken_.push_back(each);
      return {};
    });
  }
  std::string hooks() const {
    std::string all;
    for (const Spooled& each : taken_) all += (all.empty() ? "" : " ") + each.hook;
    return all;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    std::ranges::sort(found);
    return found;
  }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void append_raw(const std::string& bytes) { std::ofstream(path_, std::ios::app | std::ios::binary) << bytes; }

  std::string folder_ = testing::TempDir() + "perdure_spool_" + std::to_string(::getpid());
  std::string path_ = folder_ + "/hooks.spool";
  std::vector<Spooled> taken_;
  std::vector<std::size_t> batches_;
  std::size_t fails_at_ = 0;
};

TEST_F(Spool, EachHookIsOneLineThatOnlyItsUserCanRead) {
  ::umask(0);
  ASSERT_TRUE(add("{\"a\":\n1}", "one"));
  EXPECT_EQ(text(), R"({"at":"2026-01-31T08:15:00.250Z","hook":"{\"a\":\n1}","id":"one","space":"default"})"
                    "\n");
  struct stat found{};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

TEST_F(Spool, WhatWasSpooledIsTakenInOrderAndOnce) {
  for (int i = 0; i < 250; ++i) ASSERT_TRUE(add(std::to_string(i)));
  auto report = take();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->taken, 250u);
  EXPECT_EQ(report->unreadable, 0u);
  EXPECT_EQ(batches_, (std::vector<std::size_t>{100, 100, 50}));
  ASSERT_EQ(taken_.size(), 250u);
  for (int i = 0; i < 250; ++i) EXPECT_EQ(taken_[i].hook, std::to_string(i));
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(take()->taken, 0u);
  EXPECT_EQ(batches_.size(), 3u);
}

TEST_F(Spool, EveryFieldAndByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  std::vector<std::string> all = {"",         "null", "{\"$bytes\":\"AA==\"}", std::string("a\0b\n\r\x01", 6),
                                  "\xff\xfe", bytes};
  for (const std::string& hook : all) ASSERT_TRUE(add(hook, "id " + std::to_string(hook.size())));
  ASSERT_EQ(take()->taken, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(taken_[i].hook, all[i]) << i;
    EXPECT_EQ(taken_[i].id, "id " + std::to_string(all[i].size()));
    EXPECT_EQ(taken_[i].space, "default");
    EXPECT_EQ(format_rfc3339(taken_[i].at), "2026-01-31T08:15:00.250Z");
  }
}

TEST_F(Spool, BatchesAreBoundedByBytesToo) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(add(std::string(std::size_t{5} << 20, 'x')));
  EXPECT_EQ(take()->taken, 3u);
  EXPECT_EQ(batches_, (std::vector<std::size_t>{2, 1}));
}

TEST_F(Spool, AHookOfTheLargestSizeIsTakenHoweverMuchOfItIsEscaped) {
  std::string large(std::size_t{8} << 20, '\x01');
  ASSERT_TRUE(add(large));
  ASSERT_TRUE(add("next"));
  EXPECT_EQ(take()->taken, 2u);
  EXPECT_EQ(taken_.at(0).hook, large);
}

TEST_F(Spool, ACrashBetweenBatchesLeavesAllOfTheFileForTheNextTime) {
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(add(std::to_string(i)));
  fails_at_ = 2;
  auto report = take();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "died");
  EXPECT_EQ(names(), std::vector<std::string>{"hooks.spool.taking.1"});
  EXPECT_EQ(taken_.size(), 100u);
  // What comes in meanwhile is behind what was left.
  ASSERT_TRUE(add("150"));
  taken_.clear();
  EXPECT_EQ(take()->taken, 151u);
  for (int i = 0; i < 151; ++i) EXPECT_EQ(taken_[i].hook, std::to_string(i));
  EXPECT_TRUE(names().empty());
}

TEST_F(Spool, WhatSeveralDeadDaemonsLeftIsTakenByItsNumber) {
  for (int i = 1; i <= 11; ++i) {
    ASSERT_TRUE(add(std::to_string(i)));
    fs::rename(path_, path_ + ".taking." + std::to_string(i));
  }
  std::ofstream(path_ + ".taking.x") << "not one of them";
  EXPECT_EQ(take()->taken, 11u);
  EXPECT_EQ(hooks(), "1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(names(), std::vector<std::string>{"hooks.spool.taking.x"});
}

TEST_F(Spool, NothingToTakeIsNoError) {
  EXPECT_EQ(take()->taken, 0u);
  fs::remove_all(folder_);
  EXPECT_EQ(take()->taken, 0u);
}

TEST_F(Spool, LinesThatCannotBeReadAreSkippedAndCounted) {
  ASSERT_TRUE(add("1"));
  append_raw("not JSON\n\n{\"id\":\"i\"}\n[]\n{\"at\":\"soon\",\"hook\":\"h\",\"id\":\"i\",\"space\":\"s\"}\n");
  ASSERT_TRUE(add("2"));
  append_raw("{\"at\":\"2026-01-31T08:15");
  auto report = take();
  EXPECT_EQ(hooks(), "1 2");
  EXPECT_EQ(report->unreadable, 6u);
  EXPECT_TRUE(names().empty());
}

TEST_F(Spool, AWriterThatDiedHalfwaySpoilsNoLineButItsOwn) {
  append_raw("{\"at\":\"2026-01-31T08:15");
  ASSERT_TRUE(add("1"));
  auto report = take();
  EXPECT_EQ(hooks(), "1");
  EXPECT_EQ(report->unreadable, 1u);
}

TEST_F(Spool, ALineBeyondAllBoundsIsSkipped) {
  append_raw(std::string(std::size_t{70} << 20, 'x') + "\n");
  ASSERT_TRUE(add("1"));
  auto report = take();
  EXPECT_EQ(hooks(), "1");
  EXPECT_EQ(report->unreadable, 1u);
}

// Blocks until some thread or process waits for a lock on this file.
void wait_for_a_waiter(int fd) {
  struct stat file{};
  ASSERT_EQ(::fstat(fd, &file), 0);
  std::string inode = ":" + std::to_string(file.st_ino) + " ";
  for (bool waits = false; !waits; std::this_thread::yield()) {
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);)
      waits = waits || (line.find("-> FLOCK") != std::string::npos && line.find(inode) != std::string::npos);
  }
}

TEST_F(Spool, AFileThatIsMovedWhileAWriterWaitsIsNotWrittenTo) {
  ASSERT_TRUE(add("1"));
  int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  std::thread writer([this] { EXPECT_TRUE(add("2")); });
  wait_for_a_waiter(fd);
  fs::rename(path_, path_ + ".away");
  ::close(fd);
  writer.join();
  EXPECT_EQ(take()->taken, 1u);
  EXPECT_EQ(hooks(), "2");
}

/// Two daemons of one directory.
class SpoolOfTwo : public Spool {
 protected:
  /// The spool has "1" in it. Looks while the other one gives it `number`, which is not waited for, and once more when
  /// "2" is spooled behind it.
  Result<SpoolReport> take_while_moved_to(int number) {
    EXPECT_TRUE(add("1"));
    int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::flock(fd, LOCK_EX), 0);
    EXPECT_EQ(take()->taken, 0u);
    fs::rename(path_, path_ + ".taking." + std::to_string(number));
    EXPECT_TRUE(add("2"));
    ::close(fd);
    return take();
  }
};

TEST_F(SpoolOfTwo, WhatTheOtherHasMovedMeanwhileIsTakenFirst) {  // WORK-25
  EXPECT_TRUE(take_while_moved_to(1));
  EXPECT_EQ(hooks(), "1 2");
  EXPECT_TRUE(names().empty());
}

TEST_F(SpoolOfTwo, NumbersGrowAsLongAsOneIsLeft) {  // WORK-25
  fails_at_ = 1;
  // Its first file has been taken by then.
  EXPECT_FALSE(take_while_moved_to(2));
  EXPECT_EQ(names(), (std::vector<std::string>{"hooks.spool.taking.2", "hooks.spool.taking.3"}));
  EXPECT_EQ(take()->taken, 2u);
  EXPECT_EQ(hooks(), "1 2");
}

TEST_F(SpoolOfTwo, WhatTheOtherIsTakingIsNotOvertaken) {  // WORK-25
  ASSERT_TRUE(add("1"));
  auto other = take_spool(path_, [this](std::span<const Spooled> batch) -> Result<void> {
    EXPECT_TRUE(add("2"));
    EXPECT_EQ(take()->taken, 0u);
    for (const Spooled& each : batch) taken_.push_back(each);
    return {};
  });
  EXPECT_EQ(other->taken, 1u);
  EXPECT_EQ(hooks(), "1");
  EXPECT_EQ(take()->taken, 1u);
  EXPECT_EQ(hooks(), "1 2");
  EXPECT_TRUE(names().empty());
}

TEST_F(Spool, AWriterThatOpenedAFileBeforeItWasMovedDoesNotWaitUntilItIsTaken) {  // WORK-4
  ASSERT_TRUE(add("1"));
  int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  auto report = take_spool(path_, [&](std::span<const Spooled>) -> Result<void> {
    EXPECT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
    return {};
  });
  EXPECT_EQ(report->taken, 1u);
  ::close(fd);
}

TEST_F(Spool, WritersAndATakerAtOnceLoseNothing) {
  constexpr int kWriters = 4, kEach = 200;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([this, w] {
      for (int i = 0; i < kEach; ++i) EXPECT_TRUE(add(std::string(3000, 'x'), std::to_string(w * kEach + i)));
    });
  while (taken_.size() < kWriters * kEach) {
    auto report = take();
    ASSERT_TRUE(report);
    ASSERT_EQ(report->unreadable, 0u);
  }
  for (std::thread& writer : writers) writer.join();
  std::map<std::string, int> seen;
  std::vector<int> last(kWriters, -1);
  for (const Spooled& each : taken_) {
    int number = std::stoi(each.id);
    EXPECT_GT(number, last[number / kEach]) << "each writer's own are in order";
    last[number / kEach] = number;
    ++seen[each.id];
  }
  EXPECT_EQ(seen.size(), std::size_t{kWriters * kEach});
  EXPECT_EQ(taken_.size(), seen.size());
}

TEST_F(Spool, WhatIsNotAFileIsRefused) {
  fs::create_symlink(folder_ + "/elsewhere", path_);
  EXPECT_EQ(add("1").error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(fs::exists(folder_ + "/elsewhere"));
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(add("1").error().code, ErrorCode::kUnavailable);
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(add("1").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(append_to_spool(folder_ + "/no/such", {}).error().code, ErrorCode::kUnavailable);
}

TEST_F(Spool, WhatIsNotAFileHoldsUpNothingAndIsNamed) {  // WORK-25
  std::string taking = path_ + ".taking.";
  ASSERT_EQ(::mkfifo((taking + "1").c_str(), 0600), 0);
  fs::create_directory(taking + "2");
  fs::create_symlink(folder_ + "/elsewhere", taking + "3");
  ASSERT_TRUE(add("1"));
  fs::rename(path_, taking + "4");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  for (int times = 0; times < 2; ++times) {
    auto report = take();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->refused, (std::vector<std::string>{path_, taking + "1", taking + "2", taking + "3"}));
    EXPECT_EQ(hooks(), "1");
  }
}

TEST_F(Spool, AFileOfSomebodyElseIsNeitherWrittenNorTaken) {  // WORK-25
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  ASSERT_TRUE(add("1"));
  fs::copy(path_, path_ + ".taking.1");
  for (const std::string& path : {path_, path_ + ".taking.1"}) ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(add("2").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(take()->refused, (std::vector<std::string>{path_, path_ + ".taking.1"}));
  EXPECT_EQ(hooks(), "");
}

TEST_F(Spool, DoesNotGrowBeyondItsLimit) {
  ASSERT_TRUE(add("1"));
  fs::resize_file(path_, kSpoolBytesMax - 10);  // A hole, which takes no room.
  EXPECT_EQ(add("2").error().code, ErrorCode::kStoreFull);
  EXPECT_EQ(fs::file_size(path_), kSpoolBytesMax - 10);
}

TEST_F(Spool, WhatWaitsAsideIsBoundedToo) {  // WORK-25
  ASSERT_TRUE(add("1"));
  fails_at_ = 1;
  EXPECT_FALSE(take());
  const std::string aside = path_ + ".taking.1";
  const auto size = fs::file_size(aside);
  fs::resize_file(aside, kSpoolBytesMax - 10);
  ASSERT_TRUE(add("2"));
  batches_.clear();
  EXPECT_FALSE(take());
  EXPECT_EQ(names(), (std::vector<std::string>{"hooks.spool", "hooks.spool.taking.1"}));
  fs::resize_file(aside, size);
  ASSERT_TRUE(add("3"));
  fails_at_ = 0;
  EXPECT_EQ(take()->taken, 3u);
  EXPECT_EQ(hooks(), "1 2 3");
}

}  // namespace
}  // namespace perdure::transcript
