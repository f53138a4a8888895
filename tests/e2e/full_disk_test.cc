// A disk or a map that is full: writes are refused, reads and what frees space go on, and it heals by itself.
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "loop_disk.h"
#include "scratch.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t room(const std::string& directory) {
  struct statvfs status = {};
  EXPECT_EQ(statvfs(directory.c_str(), &status), 0);
  return status.f_bavail * status.f_frsize;
}

/// Takes all but `left` bytes of the disk.
void fill_disk(const std::string& path, std::uint64_t left) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  std::string directory = std::filesystem::path(path).parent_path();
  std::string block(4096, 'f');
  while (room(directory) > left && write(fd, block.data(), block.size()) > 0) {
  }
  fsync(fd);
  close(fd);
}

void free_disk(const std::string& path) {
  std::string directory = std::filesystem::path(path).parent_path();
  std::filesystem::remove(path);
  int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  syncfs(fd);  // ext4 gives blocks back with the next commit of its journal.
  close(fd);
}

Bytes row_key(int row) {
  return "row/" + std::to_string(row);
}

/// Adds rows of 4 KiB until one is refused; returns the refusal.
Error add_rows(Store& store, int& rows, Reserve reserve) {
  for (;;) {
    auto done = set(store, row_key(rows), Bytes(4000, 'v'), {.reserve = reserve});
    if (!done) return done.error();
    ++rows;
  }
}

void expect_rows(Store& store, int from, int to) {
  for (int row = from; row < to; ++row) ASSERT_EQ(get(store, row_key(row)), Bytes(4000, 'v')) << row_key(row);
}

TEST(FullDisk, RefusesWritesKeepsReadingAndHeals) {
  auto disk = LoopDisk::make(24 * kMiB);
  if (!disk) GTEST_SKIP() << disk.error().message;
  std::string filler = (*disk)->path() + "/filler";
  StoreOptions options;
  options.reserve_bytes = 4 * kMiB;
  int fatal = 0;
  options.on_fatal = [&](const Error&) { ++fatal; };
  options.when_failed = WhenFailed::kRefuseCalls;
  Store store = must(Store::open(lmdb_url((*disk)->path() + "/store"), options));
  int rows = 0;
  for (; rows < 100; ++rows) ASSERT_TRUE(set(store, row_key(rows), Bytes(4000, 'v')));

  // Only the reserve is left: what adds is refused, what frees space or may use the reserve passes.
  fill_disk(filler, 3 * kMiB);
  Error early = add_rows(store, rows, Reserve::kKeepOut);
  EXPECT_EQ(early.code, ErrorCode::kStoreFull);
  EXPECT_NE(early.message.find("make room"), std::string::npos) << early.message;
  EXPECT_TRUE(set(store, row_key(rows), Bytes(4000, 'v'), {.reserve = Reserve::kMayUse}));
  ++rows;
  EXPECT_TRUE(store.transact([](Transaction& txn) { txn.clear(row_key(0)); }));
  expect_rows(store, 1, rows);

  // Not even that is left.
  fill_disk(filler, 0);
  Error late = add_rows(store, rows, Reserve::kMayUse);
  EXPECT_EQ(late.code, ErrorCode::kStoreFull);
  EXPECT_NE(late.message.find("data.mdb"), std::string::npos) << late.message;
  EXPECT_NE(late.message.find("make room"), std::string::npos) << late.message;
  expect_rows(store, 1, rows);
  expect_sound(store);

  // Room again: the same handle goes on.
  free_disk(filler);
  auto healed = set(store, "healed", "yes");
  EXPECT_TRUE(healed) << to_string(healed.error());
  for (int end = rows + 100; rows < end; ++rows) ASSERT_TRUE(set(store, row_key(rows), Bytes(4000, 'v')));
  expect_rows(store, 1, rows);
  expect_sound(store);
  EXPECT_EQ(fatal, 0);
  store.close();
  Store again = must(Store::open(lmdb_url((*disk)->path() + "/store"), options));
  expect_rows(again, 1, rows);
  EXPECT_EQ(get(again, row_key(0)), std::nullopt);
}

TEST(FullDisk, DoesNotHideThatTheLastWriteOfACommitFailed) {
  auto disk = LoopDisk::make(24 * kMiB);
  if (!disk) GTEST_SKIP() << disk.error().message;
  Worker worker("armed");
  ASSERT_EQ(worker.ask("open " + lmdb_url((*disk)->path() + "/store") + " reserve=0"), "ok");
  fill_disk((*disk)->path() + "/filler", kMiB);
  ASSERT_EQ(worker.ask("arm meta 0"), "ok");
  std::string answer = worker.ask("set a b");
  EXPECT_TRUE(answer.starts_with("error commit_unknown")) << answer;
  EXPECT_TRUE(worker.event().value_or("").starts_with("fatal store_failed"));
}

TEST(FullDisk, CanStillBeOpenedAndRead) {
  auto disk = LoopDisk::make(24 * kMiB);
  if (!disk) GTEST_SKIP() << disk.error().message;
  std::string url = lmdb_url((*disk)->path() + "/store");
  {
    Store store = must(Store::open(url));
    for (int row = 0; row < 20; ++row)
      ASSERT_TRUE(set(store, row_key(row), Bytes(4000, 'v'), {.reserve = Reserve::kMayUse}));
  }
  fill_disk((*disk)->path() + "/filler", 0);
  auto store = Store::open(url);
  ASSERT_TRUE(store) << to_string(store.error());
  expect_rows(*store, 0, 20);
  EXPECT_EQ(set(*store, "a", "b").error().code, ErrorCode::kStoreFull);
}

TEST(FullDisk, RefusesToMakeAStoreThatDoesNotFit) {
  auto disk = LoopDisk::make(24 * kMiB);
  if (!disk) GTEST_SKIP() << disk.error().message;
  std::string filler = (*disk)->path() + "/filler";
  fill_disk(filler, 0);
  auto refused = Store::open(lmdb_url((*disk)->path() + "/store"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kStoreFull) << to_string(refused.error());
  free_disk(filler);
  auto store = Store::open(lmdb_url((*disk)->path() + "/store"));
  ASSERT_TRUE(store) << to_string(store.error());
  expect_sound(*store);
}

TEST(FullMap, RefusesWritesKeepsReadingAndHealsByDeleting) {
  Scratch scratch;
  StoreOptions options;
  options.map_bytes = 8 * kMiB;
  options.reserve_bytes = kMiB;
  Store store = must(Store::open(lmdb_url(scratch / "store"), options));
  int rows = 0, first = 0;
  for (int turn = 0; turn < 3; ++turn) {
    Error refused = add_rows(store, rows, Reserve::kKeepOut);
    EXPECT_EQ(refused.code, ErrorCode::kStoreFull) << refused.message;
    EXPECT_GT(rows - first, 500);
    expect_rows(store, first, rows);
    auto cleared = store.transact([&](Transaction& txn) {
      for (; first < rows / 2; ++first) txn.clear(row_key(first));
    });
    ASSERT_TRUE(cleared) << to_string(cleared.error());
    expect_sound(store);
  }
}

TEST(FullMap, WithItsReserveUsedUpNamesTheSettingAndKeepsReading) {
  Scratch scratch;
  StoreOptions options;
  options.map_bytes = 8 * kMiB;
  options.reserve_bytes = kMiB;
  int fatal = 0;
  options.on_fatal = [&](const Error&) { ++fatal; };
  options.when_failed = WhenFailed::kRefuseCalls;
  std::string url = lmdb_url(scratch / "store");
  int rows = 0;
  {
    Store store = must(Store::open(url, options));
    add_rows(store, rows, Reserve::kKeepOut);
    int kept_out = rows;
    Error refused = add_rows(store, rows, Reserve::kMayUse);
    EXPECT_EQ(refused.code, ErrorCode::kStoreFull);
    EXPECT_NE(refused.message.find("map_bytes"), std::string::npos) << refused.message;
    EXPECT_GT(rows, kept_out) << "the reserve is there to be used";
    expect_rows(store, 0, rows);
    expect_sound(store);
  }
  options.map_bytes = 16 * kMiB;
  Store store = must(Store::open(url, options));
  EXPECT_TRUE(set(store, row_key(rows++), Bytes(4000, 'v')));
  expect_rows(store, 0, rows);
  EXPECT_EQ(fatal, 0);
}

TEST(FullMap, ASmallMapWithTheDefaultReserveCanBeUsed) {
  Scratch scratch;
  StoreOptions options;
  options.map_bytes = 8 * kMiB;
  Store store = must(Store::open(lmdb_url(scratch / "store"), options));
  auto done = set(store, "a", "b");
  EXPECT_TRUE(done) << to_string(done.error());
}

}  // namespace
}  // namespace perdure::e2e
