// What cannot be opened is refused with one clear error, and left as it is.
#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "base/endian.h"
#include "scratch.h"
#include "store/lmdb/environment.h"
#include "store/lmdb/row.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

using ::testing::Test;

constexpr unsigned kNobody = 65534;

class OpenTest : public Test {
 protected:
  /// A store with a few rows, closed.
  void make_store() {
    Store store = must(Store::open(url_));
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(set(store, "row/" + std::to_string(i), Bytes(500, 'v')));
  }

  /// Expects that opening fails like this, with all `words` in the message, and changes no file that was there.
  void expect_refused(const std::string& url, ErrorCode code, const std::vector<std::string>& words) {
    bool there = std::filesystem::is_directory(directory_);
    auto before = there ? contents(directory_) : std::map<std::string, std::string>();
    auto opened = Store::open(url);
    ASSERT_FALSE(opened) << printable(url);
    EXPECT_EQ(opened.error().code, code) << to_string(opened.error());
    for (const std::string& word : words)
      EXPECT_NE(opened.error().message.find(word), std::string::npos)
          << "no '" << word << "' in: " << opened.error().message;
    if (!there) return;
    auto after = contents(directory_);
    for (const char* scratch : {"bulletin", "lock.mdb"}) before.erase(scratch);
    for (const auto& [name, bytes] : before) EXPECT_TRUE(after[name] == bytes) << name << " was changed";
    EXPECT_EQ(after.contains("data.mdb"), before.contains("data.mdb"));
  }

  Scratch scratch_;
  std::string directory_ = scratch_ / "store";
  std::string data_ = directory_ + "/data.mdb";
  std::string url_ = lmdb_url(directory_);
};

TEST_F(OpenTest, RefusesUrlsThatNameNoStore) {
  for (const char* url : {"", "lmdb", "lmdb:", "memory", "memory:x", "file:/tmp", "LMDB:x", "/tmp/x"})
    expect_refused(url, ErrorCode::kInvalidArgument, {"lmdb:DIR"});
  expect_refused(url_ + std::string("\0hidden", 7), ErrorCode::kInvalidArgument, {"\\x00"});
  EXPECT_FALSE(std::filesystem::exists(directory_));
  expect_refused("lmdb:" + (scratch_ / std::string(300, 'n')), ErrorCode::kInvalidArgument, {"too long"});
}

TEST_F(OpenTest, RefusesAMissingParent) {
  expect_refused(url_ + "/deeper/still", ErrorCode::kInvalidArgument, {directory_, "does not exist"});
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

TEST_F(OpenTest, RefusesAFileWhereTheDirectoryShouldBe) {
  write_whole(directory_, "a file");
  expect_refused(url_, ErrorCode::kInvalidArgument, {directory_, "is a file"});
  expect_refused(url_ + "/below", ErrorCode::kInvalidArgument, {directory_});
  EXPECT_EQ(read_whole(directory_), "a file");
}

TEST_F(OpenTest, RefusesADirectoryWithoutRights) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  make_store();
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  for (const std::string& directory : {directory_, scratch_ / "new"}) {
    Worker worker;
    ASSERT_EQ(worker.ask("become " + std::to_string(kNobody)), "ok");
    std::string answer = worker.ask("open " + lmdb_url(directory));
    EXPECT_TRUE(answer.starts_with("error permission_denied")) << answer;
    EXPECT_NE(answer.find(directory), std::string::npos) << answer;
    EXPECT_NE(answer.find("give this user the right"), std::string::npos) << answer;
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "new"));
  Store store = must(Store::open(url_));
  expect_sound(store);
}

TEST_F(OpenTest, RefusesAReadOnlyDataFile) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a file away";
  make_store();
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    ASSERT_EQ(chown(entry.path().c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chown(directory_.c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chmod(data_.c_str(), 0400), 0);
  Worker worker;
  ASSERT_EQ(worker.ask("become " + std::to_string(kNobody)), "ok");
  std::string answer = worker.ask("open " + url_);
  EXPECT_TRUE(answer.starts_with("error permission_denied")) << answer;
  EXPECT_NE(answer.find(data_), std::string::npos) << answer;
}

TEST_F(OpenTest, RefusesAFileSystemThatCannotLock) {
  Worker worker("no-lock");
  std::string answer = worker.ask("open " + url_);
  EXPECT_TRUE(answer.starts_with("error unavailable")) << answer;
  EXPECT_NE(answer.find(directory_), std::string::npos) << answer;
  EXPECT_NE(answer.find("cannot lock"), std::string::npos) << answer;
  EXPECT_FALSE(std::filesystem::exists(data_));
}

TEST_F(OpenTest, RefusesTheSameDirectoryTwiceInOneProcess) {
  Store store = must(Store::open(url_));
  std::filesystem::create_directory_symlink(directory_, scratch_ / "link");
  auto relative = std::filesystem::relative(directory_).string();
  for (const std::string& url : {url_, url_ + "/", lmdb_url(scratch_ / "link"), lmdb_url(relative)}) {
    auto second = Store::open(url);
    ASSERT_FALSE(second) << url;
    EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(second.error().message.find("share the handle"), std::string::npos) << second.error().message;
  }
  // The first has not lost its locks by that: others still see it, and it still works.
  Worker worker;
  ASSERT_EQ(worker.ask("open " + url_), "ok");
  ASSERT_TRUE(worker.ask("set a b").starts_with("ok"));
  EXPECT_EQ(get(store, "a"), "b");
  worker.kill();
  ASSERT_TRUE(store.close());
  for (const std::string& url : {url_, lmdb_url(scratch_ / "link"), lmdb_url(relative)})
    EXPECT_TRUE(Store::open(url)) << "closed means that it can be opened again";
}

/// Runs `edit` in a write transaction on the rows of the LMDB file in `directory`.
void edit_rows(const std::string& directory, const std::function<void(MDB_txn*, MDB_dbi)>& edit) {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi rows = 0;
  ASSERT_EQ(mdb_env_create(&env), 0);
  ASSERT_EQ(mdb_env_open(env, directory.c_str(), 0, 0600), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
  ASSERT_EQ(mdb_dbi_open(txn, nullptr, 0, &rows), 0);
  edit(txn, rows);
  ASSERT_EQ(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
}

void put(MDB_txn* txn, MDB_dbi rows, BytesView key, BytesView value) {
  MDB_val lmdb_key = lmdb::to_val(key), lmdb_value = lmdb::to_val(value);
  ASSERT_EQ(mdb_put(txn, rows, &lmdb_key, &lmdb_value, 0), 0);
}

TEST_F(OpenTest, RefusesAnotherFormatVersion) {
  make_store();
  edit_rows(directory_, [](MDB_txn* txn, MDB_dbi rows) {
    char number[8], row[lmdb::kRowHeader + 8];
    store_little(number, std::uint64_t{lmdb::kFormat + 1});
    lmdb::encode_row(row, lmdb::kFormatKey, Version{}, BytesView(number, 8));
    put(txn, rows, lmdb::kFormatKey, BytesView(row, sizeof row));
  });
  expect_refused(url_, ErrorCode::kUnsupportedFormat, {data_, "format 2", "knows format 1", "use the version"});
}

TEST_F(OpenTest, RefusesADamagedFormatRow) {
  make_store();
  edit_rows(directory_, [](MDB_txn* txn, MDB_dbi rows) { put(txn, rows, lmdb::kFormatKey, Bytes(20, 'x')); });
  expect_refused(url_, ErrorCode::kCorrupt, {data_, "format row", "backup"});
}

TEST_F(OpenTest, RefusesAnLmdbFileThatIsNoStore) {
  std::filesystem::create_directory(directory_);
  edit_rows(directory_, [](MDB_txn* txn, MDB_dbi rows) { put(txn, rows, "somebody", "else's"); });
  expect_refused(url_, ErrorCode::kUnsupportedFormat, {data_, "not a store of perdure"});
}

TEST_F(OpenTest, RefusesAFileThatIsNotLmdb) {
  std::filesystem::create_directory(directory_);
  write_whole(data_, std::string(20'000, 'j'));
  expect_refused(url_, ErrorCode::kCorrupt, {data_});
}

TEST_F(OpenTest, RefusesATruncatedDataFile) {
  make_store();
  std::string whole = read_whole(data_);
  for (std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{5000}, std::size_t{8192},
                           whole.size() / 2, whole.size() / 4 * 3}) {
    write_whole(data_, whole.substr(0, size));
    expect_refused(url_, ErrorCode::kCorrupt, {data_});
  }
  write_whole(data_, whole);
  Store store = must(Store::open(url_));
  expect_sound(store);
}

TEST_F(OpenTest, RefusesAnEmptyOrMissingDataFileWhereAStoreWas) {
  make_store();
  std::string whole = read_whole(data_);
  write_whole(data_, "");
  expect_refused(url_, ErrorCode::kCorrupt, {data_, "empty", "backup"});
  std::filesystem::remove(data_);
  expect_refused(url_, ErrorCode::kCorrupt, {data_, "missing", "backup"});
  write_whole(data_, whole);
  Store store = must(Store::open(url_));
  EXPECT_EQ(get(store, "row/7"), Bytes(500, 'v'));
}

TEST_F(OpenTest, TheFilesBelongToTheirOwnerAlone) {
  mode_t old = umask(0);
  make_store();
  umask(old);
  auto rights = [](const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  };
  EXPECT_EQ(rights(directory_), 0700u);
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    EXPECT_EQ(rights(entry.path()), 0600u) << entry.path();
}

TEST_F(OpenTest, ProgramsStartedLaterInheritNoneOfTheFiles) {
  Store store = must(Store::open(url_));
  ASSERT_TRUE(set(store, "a", "b"));
  Worker worker;
  std::string open_files = worker.ask("fds");
  EXPECT_EQ(open_files.find(directory_), std::string::npos) << open_files;
}

}  // namespace
}  // namespace perdure::e2e
