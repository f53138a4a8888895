#include "store/lmdb/file_check.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "store/lmdb/lmdb_test_file.h"

namespace perdure::lmdb {
namespace {

constexpr std::uint64_t kMetaTxnid = 16 + 128;
constexpr std::uint64_t kMetaLastPage = 16 + 120;

/// A file of about a hundred pages of which none is free.
Bytes dense_image() {
  LmdbTestFile file;
  file.commit([](auto& batch) {
    for (int i = 0; i < 2000; ++i) batch.put_sealed(row_key(i), 150);
    batch.put_sealed("big", 50'000);
  });
  EXPECT_EQ(file.walk_sealed().free_pages, 0u);
  return file.bytes();
}

/// LMDB makes such a file itself: pages that a transaction takes and gives back are counted but never written. The
/// small commits before leave free pages, so that the freelist itself finds room without growing the file again.
void make_short(LmdbTestFile& file) {
  for (int i = 0; i < 5; ++i) file.commit([](auto& batch) { batch.put_sealed("kept", 100); });
  file.commit([](auto& batch) {
    for (int i = 0; i < 1000; ++i) batch.put_sealed(row_key(i), 150);
    for (int i = 999; i >= 0; --i) batch.erase(row_key(i));
  });
}

ErrorCode code_of(const Result<FileCheck>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? ErrorCode::kClosed : result.error().code;
}

TEST(FileCheck, EmptyFileIsNew) {
  FileImage image("");
  auto seen = check_file_size(image.fd(), "data.mdb");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->state, FileState::kNew);
}

TEST(FileCheck, FreshAndWrittenFilesAreComplete) {
  LmdbTestFile file;
  for (int i = 0; i < 5; ++i) {
    auto seen = check_file_size(file.fd(), file.path());
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->state, FileState::kComplete);
    EXPECT_EQ(seen->complete_bytes, file.bytes().size());
    file.commit([&](auto& batch) { batch.put_sealed(row_key(i), 5000); });
  }
}

TEST(FileCheck, CopiesOfLmdbAreComplete) {
  LmdbTestFile file;
  make_short(file);
  file.commit([](auto& batch) { batch.put_sealed("big", 100'000); });
  for (unsigned flags : {0u, unsigned{MDB_CP_COMPACT}}) {
    std::string copy = file.directory() + "/copy" + std::to_string(flags);
    std::filesystem::create_directory(copy);
    LmdbTestFile::expect(mdb_env_copy2(file.env(), copy.c_str(), flags));
    int fd = ::open((copy + "/data.mdb").c_str(), O_RDONLY | O_CLOEXEC);
    auto seen = check_file_size(fd, copy);
    EXPECT_TRUE(seen) << seen.error().message;
    ::close(fd);
  }
}

TEST(FileCheck, AnyTruncationOfADenseFileIsRefused) {
  Bytes bytes = dense_image();
  FileImage image(bytes);
  for (std::uint64_t size = bytes.size() - 1; size > 0; size = size > 777 ? size - 777 : size - 1) {
    image.truncate(size);
    auto seen = check_file_size(image.fd(), "data.mdb");
    ASSERT_EQ(code_of(seen), ErrorCode::kCorrupt) << size;
    EXPECT_TRUE(seen.error().message.contains("data.mdb is truncated")) << seen.error().message;
  }
}

TEST(FileCheck, TruncationNamesFileSizesAndRemedy) {
  Bytes bytes = dense_image();
  FileImage image(bytes);
  image.truncate(bytes.size() - 4096);
  EXPECT_EQ(check_file_size(image.fd(), "/s/data.mdb").error().message,
            "/s/data.mdb is truncated: " + std::to_string(bytes.size() - 4096) + " bytes, but its last page ends at " +
                std::to_string(bytes.size()) + "; restore it from a backup");
}

TEST(FileCheck, FileThatLacksOnlyFreePagesIsAcceptedAndCanBeExtended) {
  LmdbTestFile file;
  make_short(file);
  auto seen = check_file_size(file.fd(), file.path());
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->state, FileState::kShort);
  EXPECT_GT(seen->complete_bytes, file.bytes().size());
  EXPECT_TRUE(file.walk_sealed().sound());

  ASSERT_EQ(::ftruncate(file.fd(), static_cast<off_t>(seen->complete_bytes)), 0);
  seen = check_file_size(file.fd(), file.path());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->state, FileState::kComplete);
  file.close();
  file.open();
  make_short(file);
  auto report = file.walk_sealed();
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.rows, 1u);
}

TEST(FileCheck, ShortFileIsRefusedOnceItLacksAUsedPage) {
  LmdbTestFile file;
  make_short(file);
  Bytes bytes = file.bytes();
  FileImage image(bytes);
  auto meta = read_meta(image.fd(), "data.mdb", image.newest_txnid()).value();
  ASSERT_EQ(meta.main_db.depth, 1);
  ASSERT_EQ(meta.free_db.depth, 1);
  // So the two roots are the only pages in use.
  auto needed = (std::max(meta.main_db.root, meta.free_db.root) + 1) * meta.page_bytes;
  ASSERT_LT(needed, meta.file_bytes());
  for (std::uint64_t size = bytes.size(); size > 0; size -= std::min<std::uint64_t>(size, 512)) {
    image.truncate(size);
    auto seen = check_file_size(image.fd(), "data.mdb");
    EXPECT_EQ(seen.has_value(), size >= needed) << size;
    EXPECT_TRUE(!seen || seen->state == FileState::kShort);
  }
}

TEST(FileCheck, ShortFileWithADamagedFreelistIsRefused) {
  LmdbTestFile file;
  make_short(file);
  FileImage image(file.bytes());
  auto meta = read_meta(image.fd(), "data.mdb", image.newest_txnid()).value();
  auto list_page = meta.free_db.root * meta.page_bytes;
  // A list of a transaction that has not been is no list to rely on, even if its pages fit.
  auto last_offset = list_page + image.read_number<std::uint16_t>(list_page + 12) - 2;
  auto node = list_page + image.read_number<std::uint16_t>(last_offset);
  image.write_number(node + 8, meta.txnid + 1);
  EXPECT_EQ(code_of(check_file_size(image.fd(), "data.mdb")), ErrorCode::kCorrupt);
}

TEST(FileCheck, MetaThatPromisesAbsurdlyManyPagesIsRefusedWithoutUsingTheirMemory) {
  FileImage image(dense_image());
  std::uint64_t meta = (image.newest_txnid() % 2) * image.page_bytes();
  for (std::uint64_t last :
       {std::uint64_t{1} << 20, std::uint64_t{1} << 40, std::uint64_t{1} << 50, ~std::uint64_t{0}, std::uint64_t{0}}) {
    image.write_number(meta + kMetaLastPage, last);
    EXPECT_EQ(code_of(check_file_size(image.fd(), "data.mdb")), ErrorCode::kCorrupt) << last;
  }
}

TEST(FileCheck, WhatIsNotAnLmdbFileIsRefused) {
  for (std::size_t size : {1, 151, 152, 4096, 8192, 100'000}) {
    FileImage zeros(Bytes(size, '\0')), text(Bytes(size, 'x'));
    EXPECT_EQ(code_of(check_file_size(zeros.fd(), "data.mdb")), ErrorCode::kCorrupt);
    EXPECT_EQ(code_of(check_file_size(text.fd(), "data.mdb")), ErrorCode::kCorrupt);
  }
}

TEST(FileCheck, RandomBytesBehindARealMetaNeverCrash) {
  Bytes real = dense_image();
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    Bytes noise(random() % 40'000, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    for (std::uint64_t page : {0, 4096})
      if (noise.size() >= page + 24) noise.replace(page, 24, real, page, 24);
    if (noise.size() > 4096 + 44 && i % 2 == 0)
      for (std::uint64_t page : {0, 4096}) noise.replace(page + 40, 4, real, 40, 4);
    FileImage image(noise);
    if (noise.empty()) continue;
    EXPECT_FALSE(check_file_size(image.fd(), "data.mdb"));
    EXPECT_FALSE(read_meta(image.fd(), "data.mdb", i));
  }
}

TEST(FileCheck, OtherDataVersionIsUnsupported) {
  FileImage image(dense_image());
  image.write_number<std::uint32_t>(16 + 4, 2);
  EXPECT_EQ(code_of(check_file_size(image.fd(), "data.mdb")), ErrorCode::kUnsupportedFormat);
}

TEST(FileCheck, EitherDamagedMetaIsRefused) {
  for (std::uint64_t page : {0, 4096}) {
    FileImage image(dense_image());
    image.write_number<std::uint32_t>(page + 16, 0xdeadbeef);
    EXPECT_EQ(code_of(check_file_size(image.fd(), "data.mdb")), ErrorCode::kCorrupt);
  }
}

TEST(FileCheck, ImpossiblePageSizeIsRefused) {
  for (std::uint32_t size : {0u, 1u, 256u, 4095u, 65536u, 0x80000000u}) {
    FileImage image(dense_image());
    for (std::uint64_t page : {0, 4096}) image.write_number<std::uint32_t>(page + 40, size);
    EXPECT_EQ(code_of(check_file_size(image.fd(), "data.mdb")), ErrorCode::kCorrupt) << size;
  }
}

TEST(FileCheck, DamagedTransactionNumberIsRefusedInsteadOfLosingTheLastCommit) {
  FileImage image(dense_image());
  std::uint64_t meta = (image.newest_txnid() % 2) * image.page_bytes();
  auto txnid = image.newest_txnid();
  for (std::uint64_t wrong : {txnid - 1, txnid + 1, txnid + 2, txnid ^ 0xff00, std::uint64_t{0}}) {
    image.write_number(meta + kMetaTxnid, wrong);
    if (wrong == 0 && txnid == 1) continue;  // The same as a new file.
    EXPECT_EQ(code_of(check_file_size(image.fd(), "data.mdb")), ErrorCode::kCorrupt) << wrong;
  }
}

TEST(FileCheck, MetaWithForeignFlagsOrRootsIsRefused) {
  auto refused = [](std::uint64_t offset, std::uint64_t value, std::size_t size) {
    FileImage image(dense_image());
    char raw[8];
    store_little(raw, value);
    image.write((image.newest_txnid() % 2) * image.page_bytes() + 16 + offset, {raw, size});
    return code_of(check_file_size(image.fd(), "data.mdb")) == ErrorCode::kCorrupt;
  };
  constexpr std::uint64_t kFree = 24, kMain = 24 + 48, kFlags = 4, kRoot = 40;
  EXPECT_TRUE(refused(kMain + kFlags, 0x04, 2));
  EXPECT_TRUE(refused(kFree + kFlags, 0x00, 2));
  EXPECT_TRUE(refused(kFree + kFlags, 0x09, 2));
  for (std::uint64_t root : {0u, 1u, 100'000u}) {
    EXPECT_TRUE(refused(kMain + kRoot, root, 8));
    EXPECT_TRUE(refused(kFree + kRoot, root, 8));
  }
}

TEST(FileCheck, UnreadableDescriptorIsAStoreFailure) {
  EXPECT_EQ(code_of(check_file_size(-1, "data.mdb")), ErrorCode::kStoreFailed);
}

TEST(ReadMeta, SnapshotThatWasOverwrittenCanBeRetried) {
  LmdbTestFile file;
  for (int i = 0; i < 4; ++i) file.commit([&](auto& batch) { batch.put_sealed(row_key(i), 20); });
  EXPECT_EQ(read_meta(file.fd(), file.path(), 4)->main_db.entries, 4u);
  EXPECT_EQ(read_meta(file.fd(), file.path(), 3)->main_db.entries, 3u);
  EXPECT_EQ(read_meta(file.fd(), file.path(), 2).error().code, ErrorCode::kUnavailable);
}

TEST(FileCheck, CommitsOfAnotherThreadNeverMakeASoundFileLookDamaged) {
  LmdbTestFile file;
  make_short(file);
  // Tiny commits are the fastest, but use up the missing pages; large ones make new ones.
  std::jthread writer([&](std::stop_token stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      if (i % 10 == 0)
        make_short(file);
      else
        file.commit([&](auto& batch) { batch.put_sealed("kept", 100); });
    }
  });
  int short_ones = 0;
  for (int i = 0; i < 5000; ++i) {
    auto seen = check_file_size(file.fd(), file.path());
    ASSERT_TRUE(seen || seen.error().code == ErrorCode::kUnavailable) << seen.error().message;
    short_ones += seen && seen->state == FileState::kShort;
  }
  EXPECT_GT(short_ones, 100);
}

}  // namespace
}  // namespace perdure::lmdb
