// Hooks that wait in files: that a daemon takes them, whenever they come.
#include "http/spool_taker.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/latch.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using transcript::Spooled;

class SpoolTaking : public testing::Test {
 protected:
  SpoolTaking() {
    std::string made = fs::canonical(testing::TempDir()).string() + "/spool-taker-XXXXXX";
    directory_ = ::mkdtemp(made.data());
    NodeOptions options{.store = "memory:"};
    options.store_options.log = [this](const LogRecord& record) {
      std::string line(record.message);
      for (const LogField& field : record.fields)
        line += " " + std::string(field.name) + "=" + std::string(field.value);
      MutexLock lock(mutex_);
      log_.push_back(line);
    };
    node_ = *Node::open(std::move(options));
  }
  ~SpoolTaking() override {
    (void)node_->close(10s);
    fs::remove_all(directory_);
  }

  std::string path() const { return directory_ + "/hooks.spool"; }
  void spool(const std::string& session, const std::string& space = "default", std::string file = "",
             const std::string& prompt = "x") {
    if (file.empty()) file = path();
    std::string hook =
        R"({"hook_event_name":"UserPromptSubmit","prompt":")" + prompt + R"(","session_id":")" + session + "\"}";
    auto kept = transcript::append_to_spool(file, {session, space, hook, wall_now() - 1h});
    ASSERT_TRUE(kept) << kept.error().message;
  }
  WallTime wall_now() { return StoreAccess::impl(node_->store()).scheduler().wall_now(); }
  std::optional<transcript::SessionRow> session(const std::string& id) {
    auto found =
        node_->store().read([&](Reader& reader) { return node_->transcripts().session(reader, "default", id); });
    return found ? std::optional(found->row) : std::nullopt;
  }
  /// Whether it comes within a time that only a daemon which does not look would need.
  bool comes(const std::string& id) {
    return within(20s, [&] { return session(id).has_value(); });
  }
  static bool within(Duration most, const std::function<bool()>& holds) {
    Latch never;
    for (Duration waited = 0ms; waited < most; waited += 5ms) {
      if (holds()) return true;
      never.wait_for(5ms);
    }
    return false;
  }
  bool no_file_is_left() { return fs::is_empty(directory_); }
  bool was_logged(const std::string& text) { return times_logged(text) > 0; }
  std::size_t times_logged(const std::string& text) {
    auto lines = logged();
    return static_cast<std::size_t>(
        std::ranges::count_if(lines, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }
  /// Writes a row of perdure's own, or takes it away.
  void set_row(const Bytes& key, const std::optional<Bytes>& value) {
    auto done = node_->store().transact([&](Transaction& txn) {
      SystemAccess access(txn);
      if (value) txn.set(key, *value);
      if (!value) txn.clear(key);
    });
    ASSERT_TRUE(done) << done.error().message;
  }
  std::vector<std::string> logged() {
    MutexLock lock(mutex_);
    return log_;
  }

  std::string directory_;
  Mutex mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<Node> node_;
};

TEST_F(SpoolTaking, TakesWhatComesAtAnyTime) {
  spool("before");
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  EXPECT_TRUE(comes("before"));
  spool("behind");
  EXPECT_TRUE(comes("behind"));
  EXPECT_TRUE(within(20s, [&] { return no_file_is_left(); }));
}

TEST_F(SpoolTaking, AHookHasTheTimeAtWhichItCame) {
  WallTime before = wall_now();
  spool("s");
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  ASSERT_TRUE(comes("s"));
  EXPECT_LT(transcript::from_ns(session("s")->updated), before - 59min);
}

TEST_F(SpoolTaking, TakesWhatAnotherDaemonHasLeft) {
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  // Made where nobody looks, or this one might be faster.
  spool("s", "default", path() + ".elsewhere");
  fs::rename(path() + ".elsewhere", path() + ".taking.7");
  EXPECT_TRUE(comes("s"));
  EXPECT_TRUE(within(20s, [&] { return no_file_is_left(); }));
}

TEST_F(SpoolTaking, WhatIsRefusedForGoodIsLoggedAndHoldsUpNothing) {
  spool("first", "no space");
  spool("second");
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  EXPECT_TRUE(comes("second"));
  EXPECT_THAT(logged(),
              Contains(HasSubstr("hooks that were left in a file are refused for good space=no space hooks=1")));
}

TEST_F(SpoolTaking, WhatIsTooLargeForOneTransactionComesInSeveral) {  // WORK-25
  spool("before", "default", "", std::string(900'000, 'x'));
  spool("large", "default", "", std::string(std::size_t{11} << 20, 'x'));
  spool("behind");
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  for (const char* each : {"before", "large", "behind"}) EXPECT_TRUE(comes(each)) << each;
  EXPECT_TRUE(within(20s, [&] { return no_file_is_left(); }));
  EXPECT_THAT(logged(), Contains(HasSubstr("longer than this store can keep, and is cut")));
}

TEST_F(SpoolTaking, WhatAStoreAtFaultRefusesWaitsUntilThatIsMended) {  // WORK-25
  Bytes row = transcript::session_key("default", "s");
  set_row(row, "damaged");
  spool("s");
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  EXPECT_TRUE(within(20s, [&] { return was_logged("could not be taken") || no_file_is_left(); }));
  EXPECT_FALSE(no_file_is_left());
  set_row(row, std::nullopt);
  EXPECT_TRUE(comes("s"));
  EXPECT_TRUE(within(20s, [&] { return no_file_is_left(); }));
}

TEST_F(SpoolTaking, WhatIsNoFileIsSaidOnceAndHoldsUpNothing) {  // WORK-25
  ASSERT_EQ(::mkfifo((path() + ".taking.1").c_str(), 0600), 0);
  fs::create_directory(path() + ".taking.2");
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  // Each is taken by another look.
  for (const char* session : {"first", "second", "third"}) {
    spool(session);
    EXPECT_TRUE(comes(session));
  }
  for (const char* number : {"1", "2"})
    EXPECT_EQ(times_logged("but is no file of this user file=" + path() + ".taking." + number), 1u);
}

TEST_F(SpoolTaking, AHookThatStoppedWhileItWroteHoldsUpNothing) {  // WORK-25
  const std::string locked = directory_ + "/locked.spool";
  spool("behind the lock", "default", locked);
  spool("s");
  const int fd = ::open(locked.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  SpoolTaker taker(*node_, {.paths = {locked, path()}, .every = 5ms});
  taker.start();
  EXPECT_TRUE(comes("s"));
  EXPECT_FALSE(session("behind the lock"));
  ::close(fd);
  EXPECT_TRUE(comes("behind the lock"));
}

TEST_F(SpoolTaking, ALockThatIsHeldKeepsNoDaemonFromStopping) {  // WORK-25
  spool("s");
  const int fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 5ms});
  taker.start();
  EXPECT_FALSE(within(20ms, [&] { return session("s").has_value(); }));
  const SteadyTime begun = steady_now();
  taker.stop();
  EXPECT_LT(steady_now() - begun, 1s);
  ::close(fd);
}

TEST_F(SpoolTaking, AFileSystemThatDoesNotAnswerHoldsUpNothingAndIsLeftBehind) {  // WORK-25
  const std::string away = directory_ + "/away.spool";
  spool("away", "default", away);
  spool("s");
  Latch answers, is_over;
  SpoolTakerOptions options{.paths = {away, path()}, .every = 5ms};
  options.take_spool = [&](const std::string& path, const transcript::TakeSpooled& take) {
    if (path == away) answers.wait();
    auto report = transcript::take_spool(path, take);
    if (path == away) is_over.set();
    return report;
  };
  SpoolTaker taker(*node_, std::move(options));
  taker.start();
  EXPECT_TRUE(comes("s"));
  EXPECT_FALSE(taker.stop(10ms));
  answers.set();
  is_over.wait();
  EXPECT_FALSE(session("away")) << "it came back too late";
  EXPECT_TRUE(fs::exists(away + ".taking.1")) << "for the next daemon";
}

TEST_F(SpoolTaking, AfterItsStopItTakesNothing) {
  SpoolTaker taker(*node_, {.paths = {path()}, .every = 1ms});
  taker.start();
  taker.stop();
  spool("s");
  EXPECT_FALSE(within(50ms, [&] { return session("s").has_value(); }));
}

}  // namespace
}  // namespace perdure::http
