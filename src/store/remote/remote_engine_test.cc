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
    std::function<void()> after_append = [] {};
    std::function<void()> before_read = [] {};
    std::function<std::optional<Error>()> read_fails = [] { return std::nullopt; };
    std::function<std::optional<Error>()> fold_fails = [] { return std::nullopt; };
    std::function<void()> asked_for_turn = [] {};
  };
  HookedServer(std::shared_ptr<MemoryStore> store, const Hooks& hooks) : server_(std::move(store)), hooks_(hooks) {}

  const ServerLimits& limits() const override { return server_.limits(); }
  Result<Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) override {
    hooks_.before_read();
    if (auto error = hooks_.read_fails()) return std::unexpected(std::move(*error));
    return server_.read(since, keys, ranges);
  }
  Result<Appended> append(const LogEnd& expected, const LogEntry& entry) override {
    hooks_.before_append();
    auto answer = server_.append(expected, entry);
    hooks_.after_append();
    return answer;
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
  void open(const RemoteOptions& options = {}, const StoreOptions& store_options = {}) {
    auto opened = RemoteEngine::open(std::make_unique<HookedServer>(store_, hooks_), pool_, store_options, options);
    ASSERT_TRUE(opened) << to_string(opened.error());
    engine_ = std::move(*opened);
  }
  ~RemoteEngineTest() override { engine_.reset(); }

  /// An append of another process.
  Version other_appends() {
    LogEnd end = store_->log.read({}, {}, {}).end;
    Version next{end.version.number + 1};
    EXPECT_TRUE(other_.append(end, {next, encode_batch({{"other", Versioned{"x", next}}}, next, end.link)})->done);
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
  EXPECT_EQ(store_->log.read({}, {}, {}).end.version.number, others.number + 1);
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
  std::atomic<int> asked = 0;
  hooks_.before_read = hooks_.before_append = [&] { ++asked; };
  Job job([](CommitView&) -> Result<Applied> { return Applied::kNothingToTell; });
  EXPECT_EQ(commit(job), "ok");
  EXPECT_EQ(asked, 0);
}

TEST_F(RemoteEngineTest, ALogThatCannotBeFoldedDoesNotGrowForEver) {
  std::atomic<bool> fails = true;
  std::atomic<int> attempts = 0, warnings = 0;
  hooks_.fold_fails = [&] {
    ++attempts;
    return fails ? std::optional(Error{ErrorCode::kUnavailable, "the rows are on strike"}) : std::nullopt;
  };
  open({.fold_bytes = 2'000, .unfolded_bytes_max = 4'000},
       {.log = [&](const LogRecord& record) { warnings += record.level == LogLevel::kWarning; }});
  const SteadyTime begun = steady_now();
  std::string outcome;
  for (int i = 0; i < 50 && (outcome.empty() || outcome == "ok"); ++i) outcome = commit_value(1'000);
  EXPECT_EQ(outcome,
            "unavailable: the log of the store on memory log has grown too long and could not be folded into rows: "
            "unavailable: the rows are on strike");
  for (SteadyTime until = begun + kPatience; attempts < 4 && steady_now() < until;) commit_value(1'000);
  // Each copies all that is not folded, and so must not be made for each commit.
  EXPECT_LE(attempts, 1 + (steady_now() - begun) / std::chrono::milliseconds(50));
  EXPECT_EQ(warnings, 1) << "the reason is the same each time";
  fails = false;
  for (SteadyTime until = steady_now() + kPatience; outcome != "ok" && steady_now() < until;)
    outcome = commit_value(1'000);
  EXPECT_EQ(outcome, "ok") << "it heals by itself";
}

/// Waits for word of a change.
class Listening final : public ChangeListener {
 public:
  void keys_changed(std::span<const std::uint64_t>) override { changed.set(); }
  void anything_changed() override { changed.set(); }
  Latch changed;
};

TEST_F(RemoteEngineTest, WhatTheBellRangForIsAskedForUntilItIsKnown) {
  open();
  std::atomic<int> failures = 0;
  hooks_.read_fails = [&]() -> std::optional<Error> {
    if (++failures > 2) return std::nullopt;
    return Error{ErrorCode::kUnavailable, "the server is away"};
  };
  Listening listener;
  engine_->listen(&listener);
  other_appends();
  EXPECT_TRUE(listener.changed.wait_for(kPatience));
  EXPECT_GT(failures, 2);
  engine_->listen(nullptr);
}

TEST_F(RemoteEngineTest, WhatItHasWrittenItselfIsNoNews) {
  open();
  Listening listener;
  engine_->listen(&listener);
  Latch known;
  hooks_.after_append = [&] {
    // The answer to this has the entry, and comes before that to the append.
    engine_->when_durable(1, [&](const Result<void>&) { known.set(); });
    EXPECT_TRUE(known.wait_for(kPatience));
  };
  EXPECT_EQ(commit_value(10), "ok");
  EXPECT_FALSE(listener.changed.wait_for(Duration::zero()));
  other_appends();
  EXPECT_TRUE(listener.changed.wait_for(kPatience));
  engine_->listen(nullptr);
}

TEST_F(RemoteEngineTest, WhatOthersHaveWrittenIsNewsThoughItIsTheSame) {
  open();
  Listening listener;
  engine_->listen(&listener);
  hooks_.before_append = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    Bytes same = encode_batch({{"k", Versioned{Bytes(10, 'v'), {1}}}}, {1});
    EXPECT_TRUE(other_.append({}, {{1}, same})->done);
    Latch known;
    engine_->when_durable(1, [&](const Result<void>&) { known.set(); });
    EXPECT_TRUE(known.wait_for(kPatience));
  };
  EXPECT_EQ(commit_value(10), "ok");
  EXPECT_TRUE(listener.changed.wait_for(kPatience));
  engine_->listen(nullptr);
}

class LostHistory : public RemoteEngineTest {
 protected:
  /// Two commits, of which a copy of the server has only the first; then the server is as its copy.
  void lose_a_commit(const RemoteOptions& options = {}) {
    open(options);
    ASSERT_EQ(commit_value(10), "ok");
    MemoryLog earlier;
    earlier.restore(store_->log);
    ASSERT_EQ(commit_value(10), "ok");
    store_->log.restore(earlier);
  }
  static bool is_told(const std::string& outcome) {
    return outcome.starts_with("store_failed: the server of the store has lost commits that this process knows of");
  }
};

TEST_F(LostHistory, FailsTheCommitThatMeetsItAndAllThatFollow) {
  lose_a_commit();
  for (int i = 0; i < 2; ++i) {
    std::string outcome = commit_value(10);
    EXPECT_TRUE(is_told(outcome)) << outcome;
  }
  EXPECT_EQ(store_->log.read({}, {}, {}).end.version.number, 1u) << "nothing is written on top of it";
}

TEST_F(LostHistory, FailsAnAnswerThatWaitsToBeConfirmed) {
  lose_a_commit();
  Latch told;
  Result<void> durable;
  engine_->when_durable(2, [&](Result<void> outcome) {
    durable = std::move(outcome);
    told.set();
  });
  ASSERT_TRUE(told.wait_for(kPatience));
  ASSERT_FALSE(durable);
  EXPECT_EQ(durable.error().code, ErrorCode::kStoreFailed);
}

TEST_F(LostHistory, FailsAReadOfWhatIsNotInMemory) {
  lose_a_commit();
  auto snapshot = engine_->snapshot();
  ASSERT_TRUE(snapshot);
  auto read = (*snapshot)->get("unknown");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kStoreFailed);
}

TEST_F(LostHistory, IsNoticedAlsoWhenOthersHaveGoneOnWithoutIt) {
  lose_a_commit();
  for (int i = 0; i < 3; ++i) other_appends();
  for (int i = 0; i < 2; ++i) {
    std::string outcome = commit_value(10);
    EXPECT_TRUE(is_told(outcome)) << outcome;
    EXPECT_NE(outcome.find("its entry 3 is on top of others"), std::string::npos) << outcome;
  }
  EXPECT_EQ(store_->log.read({}, {}, {}).end.version.number, 4u) << "nothing is written on top of it";
}

TEST_F(LostHistory, IsNoticedAlsoWhereOthersHaveComeToTheSameVersion) {
  lose_a_commit();
  other_appends();
  for (int i = 0; i < 2; ++i) {
    std::string outcome = commit_value(10);
    EXPECT_TRUE(is_told(outcome)) << outcome;
    EXPECT_NE(outcome.find("its entry 2 is another one"), std::string::npos) << outcome;
  }
  EXPECT_EQ(store_->log.read({}, {}, {}).end.version.number, 2u) << "nothing is written on top of it";
}

TEST_F(LostHistory, OfWhichNobodyIsToldYetIsNotFolded) {
  lose_a_commit();
  Replica stale(std::make_unique<DirectLink>(std::make_unique<MemoryServer>(store_)), 1 << 20);
  // Two entries of a past that the server does not have.
  Moment moment = store_->log.read({}, {}, {});
  const LogEntry lost{{2}, encode_batch({{"k", Versioned{"lost", {2}}}}, {2}, moment.end.link)};
  moment.log.push_back(lost);
  moment.end = {lost.version, link_of(lost.batch)};
  ASSERT_TRUE(stale.take_in(*stale.about_to_ask(), moment));
  EXPECT_FALSE(store_->log.fold(stale.next_fold())) << "the log ends before it";
  other_appends();
  EXPECT_FALSE(store_->log.fold(stale.next_fold())) << "it has another entry there";
  EXPECT_EQ(store_->log.read({}, {}, {}).folded.number, 0u);
}

TEST_F(LostHistory, IsNoticedByTheRows) {
  for (int i = 0; i < 2; ++i) other_appends();
  Replica replica(std::make_unique<DirectLink>(std::make_unique<MemoryServer>(store_)), 1 << 20);
  ASSERT_TRUE(replica.follow());
  auto asked = replica.about_to_ask();
  ASSERT_TRUE(asked);
  Moment moment = store_->log.read(asked->since.version, {}, {});
  moment.folded = Version{asked->folded.number + 1};
  ASSERT_TRUE(replica.take_in(*asked, moment));
  asked = replica.about_to_ask();
  --moment.folded.number;
  auto taken = replica.take_in(*asked, moment);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kStoreFailed);
}

TEST_F(LostHistory, IsNotWhatALateAnswerTellsOf) {
  open();
  Moment late = store_->log.read({}, {}, {});
  Replica replica(std::make_unique<DirectLink>(std::make_unique<MemoryServer>(store_)), 1 << 20);
  auto asked = replica.about_to_ask();
  ASSERT_TRUE(asked);
  ASSERT_EQ(commit_value(10), "ok");
  ASSERT_TRUE(replica.follow());
  EXPECT_TRUE(replica.take_in(*asked, late)) << "asked before the commit, arrived after it";
  EXPECT_EQ(replica.version().number, 1u);
}

}  // namespace
}  // namespace perdure::remote
