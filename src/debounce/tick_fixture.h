// What the tests of the tick debouncer have in common: a leadership and handlers that record what is asked of them as
// readable lines and are answered by hand, on a simulated node in virtual time. What was asked and not expected fails.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "debounce/tick_impl.h"
#include "debounce/tick_rows.h"
#include "perdure/testing.h"

namespace perdure::debounce {

using namespace std::chrono_literals;
using testing::Node;
using testing::Simulation;
using What = LeadershipEvent::What;

/// One thing that was asked, and how to answer it.
struct Asked {
  std::string text;
  Leadership::Done<std::uint64_t> number = {};
  Leadership::Done<void> nothing = {};
  Leadership::Done<std::optional<LeadershipView>> view = {};
  std::move_only_function<void(Result<Pending>)> pending = {};
  std::shared_ptr<TickRunState> run = {};

  void fail(ErrorCode code) {
    Error error{code, "as the test wants it"};
    if (number) number(std::unexpected(error));
    if (nothing) nothing(std::unexpected(error));
    if (view) view(std::unexpected(error));
    if (pending) pending(std::unexpected(error));
  }
};

struct Script {
  std::deque<Asked> asked;
  /// Keep-alives are answered by themselves, and only counted.
  bool answers_keepalives = true;
  int keepalives = 0;
  Renewal renewal = Renewal::kByOwner;
  /// Whether the store itself knows that the key is another's by now.
  bool fenced_off = false;
  std::map<std::string, Leadership::Watcher> watchers;
};

class FakeLeadership : public Leadership {
 public:
  FakeLeadership(Script& script, Duration max_age) : script_(script), max_age_(max_age) {}
  const std::string& instance_id() const override { return id_; }
  Duration max_age() const override { return max_age_; }
  Renewal renewal() const override { return script_.renewal; }
  Result<void> check_key(std::string_view key) const override {
    if (key.empty()) return perdure::fail(ErrorCode::kInvalidArgument, "the key is empty");
    return {};
  }
  void acquire(const std::string& key, Done<std::uint64_t> done) override {
    add({.text = "acquire " + key, .number = std::move(done)});
  }
  void update(const std::string& key, std::uint64_t revision, LeaderStatus status, Done<std::uint64_t> done) override {
    bool keepalive = statuses_[key] == status;
    if (keepalive && script_.answers_keepalives) {
      ++script_.keepalives;
      return done(revision);
    }
    add({.text = "update " + key + " @" + std::to_string(revision) + " " + std::string(name_of(status)),
         .number = [this, key, status, done = std::move(done)](Result<std::uint64_t> answer) mutable {
           if (answer) statuses_[key] = status;
           done(std::move(answer));
         }});
  }
  void release(const std::string& key, std::uint64_t revision, Done<void> done) override {
    statuses_.erase(key);
    add({.text = "release " + key + " @" + std::to_string(revision), .nothing = std::move(done)});
  }
  void watch(const std::string& key, Watcher watcher) override {
    statuses_.erase(key);
    script_.watchers[key] = std::move(watcher);
    add({.text = "watch " + key});
  }
  void unwatch(const std::string& key) override {
    script_.watchers.erase(key);
    add({.text = "unwatch " + key});
  }
  void look(const std::string& key, Done<std::optional<LeadershipView>> done) override {
    add({.text = "look " + key, .view = std::move(done)});
  }
  void fence(Transaction& txn, const std::string& key) override {
    if (script_.fenced_off) SystemAccess(txn).refuse({ErrorCode::kStaleToken, "'" + key + "' is another's"});
  }

 private:
  void add(Asked asked) { script_.asked.push_back(std::move(asked)); }

  Script& script_;
  const Duration max_age_;
  const std::string id_ = "me";
  std::map<std::string, LeaderStatus> statuses_;
};

class FakeWork : public TickWork {
 public:
  explicit FakeWork(Script& script) : script_(script) {}
  void pending(const std::string& key, std::move_only_function<void(Result<Pending>)> done) override {
    script_.asked.push_back({.text = "pending " + key, .pending = std::move(done)});
  }
  void run(std::shared_ptr<TickRunState> run, std::move_only_function<void(Result<void>)> done) override {
    std::string text = "run " + run->key;
    script_.asked.push_back({.text = std::move(text), .nothing = std::move(done), .run = std::move(run)});
  }
  void ended(TickEnd end) override {
    std::string how = end.result ? "ok" : std::string(end.result.error().name());
    script_.asked.push_back({.text = "ended " + end.key + " " + how});
  }
  void close(Task idle) override { idle(); }
  void leave_behind() override {}
  void join() override {}

 private:
  Script& script_;
};

class TickFixture : public ::testing::Test {
 protected:
  static constexpr const char* kKey = "ws.cs";

  TickFixture() { options_.window = 1s; }
  /// All that was asked has been expected.
  void TearDown() override { EXPECT_EQ(left(), ""); }

  void open() {
    leadership_ = std::make_shared<FakeLeadership>(script_, 5s);
    sim_.on_start([this](Node& node) {
      auto opened = TickImpl::open(node.store(), leadership_, options_,
                                   [this](Scheduler&) { return std::make_unique<FakeWork>(script_); });
      ASSERT_TRUE(opened) << to_string(opened.error());
      auto kept = std::make_shared<Tick>(std::move(*opened));
      tick_ = kept;
      node.keep(kept);
    });
    sim_.run_for(1ms);
  }
  Tick& tick() { return *tick_.lock(); }

  std::string left() {
    std::string text;
    for (const Asked& asked : script_.asked) text += (text.empty() ? "" : ", ") + asked.text;
    return text;
  }
  /// The first thing that was asked, which must be `text`; waits a little for it, as the store takes its time.
  Asked expect(const std::string& text, Duration at_most = 500ms) {
    sim_.run_until([&] { return !script_.asked.empty(); }, at_most);
    EXPECT_FALSE(script_.asked.empty()) << "nobody asked: " << text;
    Asked first;
    if (!script_.asked.empty()) {
      EXPECT_EQ(script_.asked.front().text, text) << "of: " << left();
      first = std::move(script_.asked.front());
      script_.asked.pop_front();
    }
    // A test that has failed goes on, and answers what was not asked.
    if (!first.number) first.number = [](const Result<std::uint64_t>&) {};
    if (!first.nothing) first.nothing = [](const Result<void>&) {};
    if (!first.view) first.view = [](const Result<std::optional<LeadershipView>>&) {};
    if (!first.pending) first.pending = [](const Result<Pending>&) {};
    return first;
  }
  void expect_nothing_for(Duration time) {
    sim_.run_for(time);
    EXPECT_EQ(left(), "");
  }
  void tell(What what, std::uint64_t revision = 0, const std::string& owner = "other") {
    auto found = script_.watchers.find(kKey);
    ASSERT_NE(found, script_.watchers.end());
    auto watcher = found->second;
    watcher({what, revision, owner});
  }
  TickState state() {
    auto info = tick().info(kKey);
    return info ? info->state : TickState::kStopped;
  }
  void answer_look(bool owned) {
    expect(std::string("watch ") + kKey);
    expect(std::string("look ") + kKey)
        .view(owned ? std::optional(LeadershipView{"other", 3, LeaderStatus::kWaiting, 1s}) : std::nullopt);
  }

  /// The last thing that was asked and is still to be answered, when a state has been reached.
  Asked open_;

  /// Brings a new follower into `state`. The key has the revision 5 when it is acquired, 6 when it is running.
  void reach(TickState state) {
    using enum TickState;
    if (state == kWaiting) {
      ASSERT_TRUE(tick().follow(kKey));
      answer_look(true);
    } else if (state == kAttempting) {
      reach(kWaiting);
      tell(What::kGone);
      open_ = expect("acquire ws.cs");
    } else if (state == kLeaderWaiting) {
      reach(kAttempting);
      open_.number(5);
    } else if (state == kCheckingPending) {
      reach(kLeaderWaiting);
      open_ = expect("pending ws.cs", options_.window + 100ms);
    } else if (state == kSettingRunning) {
      reach(kCheckingPending);
      open_.pending(Pending::kWork);
      open_ = expect("update ws.cs @5 running");
    } else if (state == kRunning) {
      reach(kSettingRunning);
      open_.number(6);
      open_ = expect("run ws.cs");
    } else if (state == kDeleting) {
      reach(kRunning);
      open_.nothing({});
      expect("ended ws.cs ok");
      open_ = expect("release ws.cs @6");
    } else if (state == kDraining) {
      reach(kRunning);
      tell(What::kLost);
    } else if (state == kRestarting) {
      reach(kAttempting);
      open_.fail(ErrorCode::kUnavailable);
    }
    ASSERT_EQ(this->state(), state) << name_of(this->state());
  }

  TickOptions options_;
  Script script_;
  Simulation sim_;
  std::shared_ptr<FakeLeadership> leadership_;
  std::weak_ptr<Tick> tick_;
};

}  // namespace perdure::debounce
