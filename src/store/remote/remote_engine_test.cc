// What the remote engine does beside others who append, on a server whose calls the test can come before.
#include "store/remote/remote_engine.h"

#include <gtest/gtest.h>

#include "runtime/latch.h"
#include "runtime/thread_pool.h"
#include "store/remote/memory_server.h"

namespace perdure::remote {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);
/// For what must not happen.
constexpr Duration kAWhile = std::chrono::milliseconds(50);

/// Calls the hooks before it does what it is asked for.
class HookedServer final : public RowServer {
 public:
  struct Hooks {
    std::function<void()> before_append = [] {};
    std::function<void()> before_read = [] {};
    std::function<std::optional<Error>()> fold_fails = [] { return std::nullopt; };
    std::function<void()> asked_for_turn = [] {};
  };
  HookedServer(std::shared_ptr<MemoryStore> store, const Hooks& hooks) : server_(std::move(store)), hooks_(hooks) {}

  const ServerLimits& limits() const override { return server_.limits(); }
  Result<Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override {
    hooks_.before_read();
    return server_.read(since, keys, ranges);
  }
  Result<Appended> append(Version expected, const LogEntry& entry) override {
    hooks_.before_append();
    return server_.append(expected, entry);
  }
  Result<bool> fold(const Fold& fold) override {
    if (auto error = hooks_.fold_fails()) return std::unexpected(std::move(*error));
    return server_.fold(fold);
  }
  void ask_for_turn() override {
    hooks_.asked_for_turn();
    server_.ask_for_turn();
  }
  void listen(Bell bell) override { server_.listen(std::move(bell)); }

 private:
  MemoryServer server_;
  const Hooks& hooks_;
};

/// Does the same at each apply.
class Job final : public CommitJob {
 public:
  using Apply = std::function<Result<Applied>(CommitView&)>;
  explicit Job(Apply apply) : apply_(std::move(apply)) {}

  Result<Applied> apply(CommitView& view) override {
    ++applied_;
    return apply_(view);
  }
  std::span<const std::uint64_t> changed_keys() const override { return {}; }
  void done(Result<void> outcome) override {
    outcome_ = std::move(outcome);
    done_.set();
  }

  /// What came of it, or that nothing did in time.
  std::string outcome() {
    if (!done_.wait_for(kPatience)) return "nothing";
    return outcome_ ? "ok" : std::string(outcome_.error().name()) + ": " + outcome_.error().message;
  }
  int times_applied() const { return applied_; }

 private:
  const Apply apply_;
  std::atomic<int> applied_ = 0;
  Result<void> outcome_;
  Latch done_;
};

Job::Apply putting(Bytes key, Bytes value) {
  return [=](CommitView& view) -> Result<Applied> {
    auto put = view.put(key, value, Version{view.last_version().number + 1});
    if (!put) return std::unexpected(std::move(put.error()));
    return Applied::kSomething;
  };
}

class RemoteEngineTest : public ::testing::Test {
 protected:
  void open(const RemoteOptions& options = {}) {
    auto opened = RemoteEngine::open(std::make_unique<HookedServer>(store_, hooks_), pool_, StoreOptions{}, options);
    ASSERT_TRUE(opened) << to_string(opened.error());
    engine_ = std::move(*opened);
  }
  ~RemoteEngineTest() override { engine_.reset(); }

  /// An append of another process.
  Version other_appends() {
    Version end = store_->log.read({}, {}, {}).version;
    Version next{end.number + 1};
    EXPECT_TRUE(other_.append(end, {next, encode_batch({{"other", Versioned{"x", next}}}, next)})->done);
    return next;
  }
  std::string commit(Job& job) {
    engine_->commit(job);
    return job.outcome();
  }
  std::string commit_value(std::size_t size) {
    Job job(putting("k", Bytes(size, 'v')));
    return commit(job);
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  MemoryServer other_{store_};
  HookedServer::Hooks hooks_;
  ThreadPool pool_{"test", 2};
  std::unique_ptr<Engine> engine_;
};

TEST_F(RemoteEngineTest, WhoeverLosesForLongAsksForATurn) {
  std::atomic<int> asked = 0, losses = 0;
  const SteadyTime give_up = steady_now() + kPatience;
  hooks_.asked_for_turn = [&] { ++asked; };
  hooks_.before_append = [&] {
    if (asked > 0 || steady_now() > give_up) return;
    ++losses;
    other_appends();
  };
  open();
  const SteadyTime began = steady_now();
  Job job(putting("k", "v"));
  EXPECT_EQ(commit(job), "ok");
  EXPECT_EQ(asked, 1);
  EXPECT_GE(losses, static_cast<int>(Turns::kLossesMin));
  EXPECT_GE(steady_now() - began, Turns::kLosingMin) << "losing now and then is nothing to complain of";
}

TEST_F(RemoteEngineTest, WhoeverIsAskedForATurnLetsAnotherAppendFirst) {
  open({.courtesy = 2 * kPatience});
  Latch appends;
  hooks_.before_append = [&] { appends.set(); };
  other_.ask_for_turn();
  Job job(putting("k", "v"));
  engine_->commit(job);
  EXPECT_FALSE(appends.wait_for(kAWhile));
  Version others = other_appends();
  EXPECT_EQ(job.outcome(), "ok");
  EXPECT_EQ(store_->log.read({}, {}, {}).version.number, others.number + 1);
}

TEST_F(RemoteEngineTest, ATurnThatNobodyTakesIsOverSoon) {
  open({.courtesy = std::chrono::milliseconds(20)});
  other_.ask_for_turn();
  const SteadyTime asked = steady_now();
  Job job(putting("k", "v"));
  EXPECT_EQ(commit(job), "ok");
  EXPECT_GE(steady_now() - asked, std::chrono::milliseconds(15));
}

TEST_F(RemoteEngineTest, WhoeverWantsATurnDoesNotWaitForAnother) {
  open({.courtesy = 2 * kPatience});
  std::atomic<bool> asked = false;
  // Both want it, and neither is to wait until the other has had it.
  hooks_.asked_for_turn = [&] {
    asked = true;
    other_.ask_for_turn();
  };
  hooks_.before_append = [&] {
    if (!asked) other_appends();
  };
  Job job(putting("k", "v"));
  EXPECT_EQ(commit(job), "ok");
  EXPECT_TRUE(asked);
}

TEST_F(RemoteEngineTest, ARefusalIsToldThoughOthersCommitAllTheTime) {
  open();
  hooks_.before_read = [&] { other_appends(); };
  bool was_confirmed = false;
  Job job([&](CommitView& view) -> Result<Applied> {
    was_confirmed = view.confirmed();
    return Applied::kNothing;
  });
  EXPECT_EQ(commit(job), "ok");
  EXPECT_TRUE(was_confirmed);
  EXPECT_EQ(job.times_applied(), 2);
}

TEST_F(RemoteEngineTest, WhatAnswersNobodyAsksNobody) {
  open();
  std::atomic<int> reads = 0;
  hooks_.before_read = [&] { ++reads; };
  Job job([](CommitView&) -> Result<Applied> { return Applied::kNothingToTell; });
  EXPECT_EQ(commit(job), "ok");
  EXPECT_EQ(reads, 0);
}

TEST_F(RemoteEngineTest, ALogThatCannotBeFoldedDoesNotGrowForEver) {
  std::atomic<bool> fails = true;
  hooks_.fold_fails = [&] {
    return fails ? std::optional(Error{ErrorCode::kUnavailable, "the rows are on strike"}) : std::nullopt;
  };
  open({.fold_bytes = 2'000, .unfolded_bytes_max = 4'000});
  std::string outcome;
  for (int i = 0; i < 50 && (outcome.empty() || outcome == "ok"); ++i) outcome = commit_value(1'000);
  EXPECT_EQ(outcome,
            "unavailable: the log of the store on memory log has grown too long and could not be folded into rows: "
            "unavailable: the rows are on strike");
  fails = false;
  for (int i = 0; i < 1000 && outcome != "ok"; ++i) outcome = commit_value(1'000);
  EXPECT_EQ(outcome, "ok") << "it heals by itself";
}

}  // namespace
}  // namespace perdure::remote
