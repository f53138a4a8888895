// fork() with a store open: the child is refused, whatever it tries, and the parent does not notice.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "scratch.h"
#include "store/lmdb/bulletin.h"
#include "worker.h"

namespace perdure::e2e {
namespace {

constexpr auto kWait = std::chrono::seconds(10);

/// Runs `work` in a child of fork() and answers what it returned; a child that hangs is ended by its alarm.
std::string in_child(const std::function<std::string()>& work) {
  int out[2];
  if (pipe(out) != 0) return "(no pipe)";
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::string said = work();
    (void)!write(out[1], said.data(), said.size());
    _exit(0);
  }
  close(out[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t size; (size = read(out[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(size));
  close(out[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + "(ended with " + std::to_string(status) + ")";
}

/// One letter for each answer: r for the refusal that a child must get.
template <class T>
char letter(const Result<T>& result) {
  if (result) return 'y';
  bool clear = result.error().message.find("before fork(); open it again in the child") != std::string::npos ||
               result.error().message.find("opened before fork()") != std::string::npos;
  return result.error().code == ErrorCode::kInvalidArgument && clear ? 'r' : 'n';
}

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
    store_.emplace(must(Store::open(url_)));
    ASSERT_TRUE(set(*store_, "a", "1"));
    watch_ = must(store_->transact([](Transaction& txn) { return txn.watch("rung"); }));
  }

  /// All that a child may think of.
  std::string try_everything() {
    std::string answers;
    answers += letter(set(*store_, "a", "child"));
    answers += letter(store_->read([](Reader& reader) { return reader.get("a"); }));
    store_->transact_async([](Transaction& txn) { txn.set("a", "child"); },
                           [&](const Result<void>& result) { answers += letter(result); });
    answers += letter(store_->clear_in_batches({}));
    answers += letter(store_->verify());
    answers += letter(store_->backup(scratch_ / "copy"));
    answers += watch_.wait() ? 'r' : 'n';
    watch_.then([] {});
    watch_.cancel();
    answers += letter(store_->close());
    store_.reset();
    return answers;
  }

  /// The parent commits, is seen by others, and hears them.
  void expect_undisturbed() {
    ASSERT_TRUE(set(*store_, "a", "2"));
    EXPECT_EQ(get(*store_, "a"), "2");
    Worker other;
    ASSERT_EQ(other.ask("open " + url_), "ok");
    EXPECT_EQ(other.ask("get a"), "ok 2");
    ASSERT_TRUE(other.ask("set rung x").starts_with("ok"));
    EXPECT_TRUE(watch_.wait(kWait)) << "its watches still fire";
    expect_sound(*store_);
    auto again = Store::open(url_);
    ASSERT_FALSE(again) << "its slot and its lock are still its own";
    EXPECT_EQ(again.error().code, ErrorCode::kInvalidArgument);
  }

  Scratch scratch_;
  std::string url_ = lmdb_url(scratch_ / "store");
  std::optional<Store> store_;
  Watch watch_;
};

TEST_F(Fork, EveryCallInTheChildIsRefusedAndTheParentGoesOn) {
  EXPECT_EQ(in_child([&] { return try_everything(); }), "rrrrrrrr");
  expect_undisturbed();
}

TEST_F(Fork, AChildThatExitsInGoodOrderDisturbsNobody) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    store_.reset();
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_undisturbed();
}

TEST_F(Fork, TheChildMayOpenTheSameDirectoryItself) {
  std::string said = in_child([&]() -> std::string {
    auto own = Store::open(url_);
    if (!own) return to_string(own.error());
    if (get(*own, "a") != "1") return "the parent's rows are not there";
    if (auto done = set(*own, "rung", "by the child"); !done) return to_string(done.error());
    if (letter(set(*store_, "a", "child")) != 'r') return "the parent's store is not refused";
    auto closed = own->close();
    return closed ? "done" : to_string(closed.error());
  });
  EXPECT_EQ(said, "done");
  EXPECT_TRUE(watch_.wait(kWait));
  EXPECT_EQ(get(*store_, "rung"), "by the child");
  watch_ = must(store_->transact([](Transaction& txn) { return txn.watch("rung"); }));
  expect_undisturbed();
}

TEST_F(Fork, InTheMiddleOfWorkTheChildHangsNowhere) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; !stop; ++n) ASSERT_TRUE(set(*store_, "load/" + std::to_string(i), std::to_string(n)));
    });
  for (int turn = 0; turn < 30; ++turn) EXPECT_EQ(in_child([&] { return try_everything(); }), "rrrrrrrr");
  stop = true;
  for (std::thread& thread : threads) thread.join();
  expect_undisturbed();
}

TEST_F(Fork, AStoreThatTheParentHasClosedIsFreeThoughAChildLives) {
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  pid_t child = fork();
  if (child == 0) {
    close(hold[1]);
    char byte;
    (void)!read(hold[0], &byte, 1);
    _exit(0);
  }
  close(hold[0]);
  ASSERT_TRUE(store_->close());
  {
    auto joined = lmdb::Bulletin::join(scratch_ / "store", 1);
    ASSERT_TRUE(joined) << to_string(joined.error());
    EXPECT_TRUE((*joined)->was_first()) << "the child keeps no slot locked";
  }
  store_.emplace(must(Store::open(url_)));
  watch_ = must(store_->transact([](Transaction& txn) { return txn.watch("rung"); }));
  expect_undisturbed();
  close(hold[1]);
  waitpid(child, nullptr, 0);
}

TEST_F(Fork, TheDeathOfAParentIsSeenThoughItsChildLives) {
  Worker other;
  ASSERT_EQ(other.ask("open " + url_), "ok");
  ASSERT_TRUE(other.ask("set a by-the-parent").starts_with("ok"));
  ASSERT_TRUE(other.ask("fork-linger").starts_with("ok "));
  Watch nothing = must(store_->transact([](Transaction& txn) { return txn.watch("nothing it writes"); }));
  other.kill();
  EXPECT_TRUE(nothing.wait(kWait)) << "a death fires every watch";
  EXPECT_EQ(get(*store_, "a"), "by-the-parent");
  expect_undisturbed();
}

/// The bulletin alone: a process joins with `life`, forks a child that lingers, and is killed.
TEST(ForkedBulletin, ALifeIsOverWhenItsProcessIsThoughItsLockIsNot) {
  Scratch scratch;
  constexpr std::uint64_t kLife = 4711;
  int ready[2], hold[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(hold), 0);
  pid_t parent = fork();
  if (parent == 0) {
    close(hold[1]);
    auto joined = lmdb::Bulletin::join(scratch.path(), kLife);
    if (joined) (*joined)->finish_opening();
    char byte = joined ? 'y' : 'n';
    if (fork() == 0) {
      (void)!write(ready[1], &byte, 1);
      (void)!read(hold[0], &byte, 1);
      _exit(0);
    }
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  auto joined = lmdb::Bulletin::join(scratch.path(), 1);
  ASSERT_TRUE(joined) << to_string(joined.error());
  (*joined)->finish_opening();
  EXPECT_FALSE((*joined)->is_over(kLife));
  kill(parent, SIGKILL);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(parent), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE((*joined)->is_over(kLife)) << "while it is not reaped";
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  EXPECT_TRUE((*joined)->is_over(kLife)) << "and afterwards";
  close(hold[1]);
}

}  // namespace
}  // namespace perdure::e2e
