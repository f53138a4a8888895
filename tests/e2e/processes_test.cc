// Several processes on one store: stopped, killed, with maps of different sizes, and backed up at work.
#include <sys/stat.h>

#include <csignal>

#include "log_check.h"
#include "scratch.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

class Processes : public ::testing::Test {
 protected:
  std::uintmax_t data_bytes() const { return std::filesystem::file_size(directory_ + "/data.mdb"); }

  Scratch scratch_;
  std::string directory_ = scratch_ / "store";
  std::string url_ = lmdb_url(directory_);
};

class StoppedInCommit : public Processes {
 protected:
  void SetUp() override {
    store_.emplace(must(Store::open(url_)));
    ASSERT_TRUE(set(*store_, "before", "there"));
    ASSERT_EQ(other_.ask("open " + url_), "ok");
    other_.say("stop-in-body key short");
    ASSERT_TRUE(other_.wait_until_stopped());
  }

  /// The other process holds the writer lock: writers give up in time, readers do not notice.
  void expect_writers_wait() {
    std::int64_t start_ns = steady_ns();
    auto refused = set(*store_, "mine", "no", {.timeout = std::chrono::milliseconds(300)});
    double waited_s = static_cast<double>(steady_ns() - start_ns) / 1e9;
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable) << to_string(refused.error());
    EXPECT_NE(refused.error().message.find("another process"), std::string::npos) << refused.error().message;
    EXPECT_GE(waited_s, 0.3);
    EXPECT_LT(waited_s, 3);
    EXPECT_EQ(get(*store_, "before"), "there");
    EXPECT_EQ(get(*store_, "key"), std::nullopt);
    expect_sound(*store_);
  }

  std::optional<Store> store_;
  Worker other_;
};

TEST_F(StoppedInCommit, WritersOfOthersGoOnWhenItDoes) {
  expect_writers_wait();
  other_.signal(SIGCONT);
  EXPECT_EQ(other_.event(), "stopped body: ok");
  EXPECT_TRUE(set(*store_, "mine", "yes"));
  EXPECT_EQ(get(*store_, "key"), "after the stop");
  EXPECT_EQ(get(*store_, "mine"), "yes");
}

TEST_F(StoppedInCommit, WritersOfOthersGoOnWhenItDies) {
  expect_writers_wait();
  other_.kill();
  EXPECT_TRUE(set(*store_, "mine", "yes"));
  EXPECT_EQ(get(*store_, "key"), std::nullopt) << "a transaction that never committed";
  EXPECT_EQ(get(*store_, "mine"), "yes");
  expect_sound(*store_);
}

TEST_F(Processes, AReaderOfWhatIsNotYetSyncedIsAnsweredInTime) {
  Worker reader, writer("lazy-meta");
  ASSERT_EQ(reader.ask("open " + url_), "ok");
  ASSERT_EQ(writer.ask("open " + url_), "ok");
  ASSERT_EQ(writer.ask("arm stop-before-unlock 0"), "ok");
  writer.say("set key new");
  ASSERT_TRUE(writer.wait_until_stopped());
  // The commit is visible, and whether it is on the disk only its stopped process can say.
  std::string answer = reader.ask("get key 500", Milliseconds(5000));
  EXPECT_TRUE(answer.starts_with("error deadline") || answer.starts_with("error unavailable")) << answer;
  writer.signal(SIGCONT);
  EXPECT_TRUE(writer.answer().value_or("(no answer)").starts_with("ok"));
  EXPECT_EQ(reader.ask("get key"), "ok new");
}

TEST_F(Processes, AKilledReaderDoesNotPinOldRowsForEver) {
  Store store = must(Store::open(url_));
  auto overwrite = [&](int times) {
    for (int i = 0; i < times; ++i)
      must(store.transact([&](Transaction& txn) {
        for (int row = 0; row < 20; ++row) txn.set("row/" + std::to_string(row), Bytes(4000, 'v'));
      }));
  };
  overwrite(20);
  std::uintmax_t at_rest = data_bytes();
  Worker other;
  ASSERT_EQ(other.ask("open " + url_), "ok");
  other.say("stop-in-body row/0 optimistic");
  ASSERT_TRUE(other.wait_until_stopped());
  overwrite(50);
  std::uintmax_t pinned = data_bytes();
  EXPECT_GT(pinned, at_rest + 1'000'000) << "a stopped reader keeps its rows alive, or this test shows nothing";
  Watch watched = must(store.transact([](Transaction& txn) { return txn.watch("nothing"); }));
  other.kill();
  ASSERT_TRUE(watched.wait(std::chrono::seconds(10))) << "its death is noticed";
  overwrite(200);
  EXPECT_LT(data_bytes(), pinned + 1'000'000) << "its slot is cleared, and old pages are used again";
  expect_sound(store);
}

TEST_F(Processes, AMapThatAnotherHasGrownIsFollowed) {
  StoreOptions options;
  options.map_bytes = 4 << 20;
  options.reserve_bytes = 64 << 10;
  Store store = must(Store::open(url_, options));
  ASSERT_TRUE(set(store, "mine", "old"));
  Watch watched = must(store.transact([](Transaction& txn) { return txn.watch("last"); }));
  Worker other;
  ASSERT_EQ(other.ask("open " + url_ + " map=67108864 reserve=65536"), "ok");
  ASSERT_EQ(other.ask("fill big/ 3000 4000"), "ok");
  ASSERT_GT(data_bytes(), options.map_bytes);
  ASSERT_TRUE(other.ask("set last x").starts_with("ok"));
  EXPECT_TRUE(watched.wait(std::chrono::seconds(10)));
  EXPECT_EQ(get(store, "big/2999"), Bytes(4000, 'x'));
  EXPECT_EQ(get(store, "mine"), "old");
  auto written = set(store, "mine", "new");
  EXPECT_TRUE(written) << to_string(written.error());
  EXPECT_EQ(other.ask("get mine"), "ok new");
  expect_sound(store);
}

TEST_F(Processes, AMapThatAnotherHasGrownIsFollowedByAWriter) {
  StoreOptions options;
  options.map_bytes = 4 << 20;
  options.reserve_bytes = 64 << 10;
  Store store = must(Store::open(url_, options));
  Worker other;
  ASSERT_EQ(other.ask("open " + url_ + " map=67108864 reserve=65536"), "ok");
  ASSERT_EQ(other.ask("fill big/ 3000 4000"), "ok");
  auto added = store.transact([](Transaction& txn) { txn.add("counter", 1); });
  EXPECT_TRUE(added) << to_string(added.error());
  EXPECT_EQ(decode_counter(get(store, "counter")), 1);
}

TEST_F(Processes, ABackupTakenAtWorkIsAWholeStore) {
  Store store = must(Store::open(url_));
  Worker other;
  ASSERT_EQ(other.ask("open " + url_), "ok");
  ASSERT_EQ(other.ask("log 0 16"), "ok");
  Acknowledged acknowledged;
  for (int turn = 0; turn < 5; ++turn) {
    other.gather(Milliseconds(100));
    for (const std::string& event : other.take_events()) acknowledged.hear(event);
    ASSERT_GT(acknowledged.entries.size(), 0u);
    std::string restored = scratch_ / ("restored" + std::to_string(turn));
    std::filesystem::create_directory(restored);
    auto done = store.backup(restored + "/data.mdb");
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_FALSE(std::filesystem::exists(restored + "/data.mdb.partial"));
    struct stat status = {};
    ASSERT_EQ(stat((restored + "/data.mdb").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);

    Store copy = must(Store::open(lmdb_url(restored)));
    expect_sound(copy);
    EXPECT_EQ(check_log(copy, acknowledged), std::vector<std::string>());
    EXPECT_TRUE(set(copy, "later", "life"));
  }
}

TEST_F(Processes, ABackupNeverReplacesAFile) {
  Store store = must(Store::open(url_));
  std::string path = scratch_ / "backup";
  write_whole(path, "precious");
  auto refused = store.backup(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find(path), std::string::npos) << refused.error().message;
  EXPECT_EQ(read_whole(path), "precious");
  auto nowhere = store.backup(scratch_ / "missing" + "/backup");
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("missing/backup"), std::string::npos) << nowhere.error().message;
  EXPECT_TRUE(set(store, "a", "b")) << "a backup that failed leaves the store alone";
}

TEST_F(Processes, ManyMayComeAndGo) {
  Store store = must(Store::open(url_));
  constexpr int kProcesses = 8, kTurns = 3;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<std::unique_ptr<Worker>> others;
    for (int i = 0; i < kProcesses; ++i) {
      others.push_back(std::make_unique<Worker>());
      others.back()->say("open " + url_);
    }
    for (auto& other : others) ASSERT_EQ(other->answer().value_or("(no answer)"), "ok");
    for (int i = 0; i < kProcesses; ++i)
      ASSERT_TRUE(others[static_cast<std::size_t>(i)]->ask("set k" + std::to_string(i) + " v").starts_with("ok"));
    for (auto& other : others) {
      other->end_input();
      ASSERT_EQ(other->wait(), 0);
    }
    for (int i = 0; i < kProcesses; ++i) EXPECT_EQ(get(store, "k" + std::to_string(i)), "v");
  }
}

}  // namespace
}  // namespace perdure::e2e
