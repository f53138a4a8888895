// For the tests of the page walk: real files, made by LMDB itself, and images of them that can be damaged at will.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

#include "base/endian.h"
#include "perdure/bytes.h"
#include "store/lmdb/page_walk.h"

namespace perdure::lmdb {

inline std::uint64_t digest(BytesView bytes, std::uint64_t seed = 14695981039346656037u) {
  for (char c : bytes) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return seed;
}

/// A value of `size` >= 8 bytes that carries a checksum over its key and itself.
inline Bytes sealed_value(BytesView key, std::size_t size) {
  Bytes value(8, '\0');
  while (value.size() < size) value += static_cast<char>('a' + value.size() % 26);
  store_little(value.data(), digest(BytesView(value).substr(8), digest(key)));
  return value;
}

inline std::optional<std::string> check_sealed(BytesView key, BytesView value) {
  if (value.size() < 8) return "it has no checksum";
  if (load_little<std::uint64_t>(value.data()) != digest(value.substr(8), digest(key))) return "its checksum is wrong";
  return std::nullopt;
}

/// An LMDB environment in a directory of its own, which goes away with it.
class LmdbTestFile {
 public:
  LmdbTestFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "page_walk_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    open();
  }
  LmdbTestFile(const LmdbTestFile&) = delete;
  LmdbTestFile& operator=(const LmdbTestFile&) = delete;
  ~LmdbTestFile() {
    close();
    std::filesystem::remove_all(directory_);
  }

  void open() {
    expect(mdb_env_create(&env_));
    expect(mdb_env_set_mapsize(env_, std::size_t{1} << 30));
    // The tests do not cut the power, so nothing is gained by waiting for the disk.
    expect(mdb_env_open(env_, directory_.c_str(), MDB_NOTLS | MDB_NOSYNC | MDB_NOMEMINIT, 0644));
    fd_ = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
  }
  void close() {
    if (env_ == nullptr) return;
    mdb_env_close(env_);
    ::close(fd_);
    env_ = nullptr;
  }

  MDB_env* env() const { return env_; }
  int fd() const { return fd_; }
  std::string directory() const { return directory_; }
  std::string path() const { return directory_ + "/data.mdb"; }

  class Batch {
   public:
    explicit Batch(MDB_txn* txn) : txn_(txn) { expect(mdb_dbi_open(txn_, nullptr, 0, &dbi_)); }
    void put(BytesView key, BytesView value) {
      MDB_val k = val(key), v = val(value);
      expect(mdb_put(txn_, dbi_, &k, &v, 0));
    }
    void put_sealed(BytesView key, std::size_t size) { put(key, sealed_value(key, size)); }
    void erase(BytesView key) {
      MDB_val k = val(key);
      expect(mdb_del(txn_, dbi_, &k, nullptr));
    }

   private:
    static MDB_val val(BytesView bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
    MDB_txn* txn_;
    MDB_dbi dbi_ = 0;
  };

  /// One write transaction.
  void commit(const std::function<void(Batch&)>& body) {
    MDB_txn* txn = nullptr;
    expect(mdb_txn_begin(env_, nullptr, 0, &txn));
    Batch batch(txn);
    body(batch);
    expect(mdb_txn_commit(txn));
  }

  /// `body` is given a snapshot whose pages stay as they are meanwhile.
  void with_snapshot(const std::function<void(const Meta&)>& body) {
    for (int i = 0; i < 1000; ++i) {
      MDB_txn* txn = nullptr;
      expect(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn));
      auto meta = read_meta(fd_, path(), mdb_txn_id(txn));
      if (meta) body(*meta);
      mdb_txn_abort(txn);
      if (meta) return;
      ASSERT_EQ(meta.error().code, ErrorCode::kUnavailable) << meta.error().message;
    }
    FAIL() << "no snapshot could be captured";
  }

  WalkReport walk_sealed(WalkOptions options = {}) {
    WalkReport report;
    with_snapshot([&](const Meta& meta) { report = walk(fd_, path(), meta, check_sealed, options).value(); });
    return report;
  }

  Bytes bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static void expect(int rc) { ASSERT_EQ(rc, MDB_SUCCESS) << mdb_strerror(rc); }

 private:
  std::string directory_;
  MDB_env* env_ = nullptr;
  int fd_ = -1;
};

inline std::string row_key(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return "row/" + std::string(8 - digits.size(), '0') + digits;
}

/// A file in memory.
class FileImage {
 public:
  explicit FileImage(BytesView bytes) : fd_(::memfd_create("image", MFD_CLOEXEC)) { write(0, bytes); }
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;
  ~FileImage() { ::close(fd_); }

  int fd() const { return fd_; }
  void truncate(std::uint64_t size) { EXPECT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }
  void write(std::uint64_t offset, BytesView bytes) {
    EXPECT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)), bytes.size());
  }
  template <std::unsigned_integral T>
  void write_number(std::uint64_t offset, T value) {
    char raw[sizeof(T)];
    store_little(raw, value);
    write(offset, {raw, sizeof raw});
  }
  Bytes read(std::uint64_t offset, std::size_t size) const {
    Bytes out(size, '\0');
    EXPECT_EQ(::pread(fd_, out.data(), size, static_cast<off_t>(offset)), size);
    return out;
  }
  template <std::unsigned_integral T>
  T read_number(std::uint64_t offset) const {
    return load_little<T>(read(offset, sizeof(T)).data());
  }

  /// The newest snapshot, found without the code under test's help.
  std::uint64_t newest_txnid() const {
    auto a = read_number<std::uint64_t>(16 + 128), b = read_number<std::uint64_t>(page_bytes() + 16 + 128);
    return std::max(a, b);
  }
  std::uint64_t page_bytes() const { return read_number<std::uint32_t>(16 + 24); }

 private:
  int fd_;
};

/// What verify would say about an image, and a digest of the rows that it saw.
struct Verdict {
  bool refused = false;
  WalkReport report;
  std::uint64_t rows_digest = 0;

  bool clean() const { return !refused && report.sound(); }
};

inline Verdict judge(const FileImage& image, std::uint64_t txnid) {
  Verdict verdict;
  auto checked = check_file_size(image.fd(), "data.mdb");
  auto meta = read_meta(image.fd(), "data.mdb", txnid);
  if (!checked || !meta) {
    verdict.refused = true;
    return verdict;
  }
  auto visit = [&](BytesView key, BytesView value) {
    verdict.rows_digest = digest(value, digest(key, verdict.rows_digest));
    return check_sealed(key, value);
  };
  verdict.report = walk(image.fd(), "data.mdb", *meta, visit).value();
  return verdict;
}

/// A file with branches, overflow pages, free pages and a freelist of several rows.
inline Bytes varied_image(int rows, int big_rows) {
  LmdbTestFile file;
  file.commit([&](auto& batch) {
    for (int i = 0; i < rows; ++i) batch.put_sealed(row_key(i), static_cast<std::size_t>(20 + i % 90));
    for (int i = 0; i < big_rows; ++i) batch.put_sealed("big/" + std::to_string(i), 9000);
  });
  for (int i = 0; i < 3; ++i)
    file.commit([&](auto& batch) {
      for (int j = i; j < rows; j += 11) batch.erase(row_key(j));
      batch.erase("big/" + std::to_string(i));
    });
  EXPECT_TRUE(file.walk_sealed().sound());
  return file.bytes();
}

}  // namespace perdure::lmdb
