// What the tests of elections among processes share: five workers on one key and one store.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scratch.h"
#include "session_fixture.h"
#include "worker.h"

namespace perdure::e2e {

class TickProcesses : public ::testing::Test {
 protected:
  static constexpr const char* kKey = "ws.cs";
  static constexpr int kProcesses = 5;

  struct Times {
    int max_age_ms = 2000, window_ms = 300, run_ms = 300;
    /// As the max_age says, if it is 0.
    int missing_check_ms = 0;
  };
  /// So rare that what does not wake those who wait keeps them waiting.
  static constexpr int kNeverMs = 1'000'000;

  /// `elects` is "store" or the URL of NATS.
  std::unique_ptr<Child> start(const std::string& elects, const Times& times) {
    auto worker = std::make_unique<Child>(std::vector<std::string>{PERDURE_E2E_TICK_WORKER});
    std::string opened = worker->ask("open " + url_ + " " + elects + " " + std::to_string(times.max_age_ms) + " " +
                                     std::to_string(times.window_ms) + " " + std::to_string(times.run_ms) +
                                     (times.missing_check_ms > 0 ? " " + std::to_string(times.missing_check_ms) : ""));
    EXPECT_TRUE(opened.starts_with("ok ")) << opened;
    EXPECT_EQ(worker->ask(std::string("follow ") + kKey), "ok");
    return worker;
  }
  void start_all(const std::string& elects, const Times& times) {
    for (int i = 0; i < kProcesses; ++i) workers_.push_back(start(elects, times));
  }

  std::string state(Child& worker) {
    std::string answer = worker.ask(std::string("state ") + kKey);
    return answer.substr(std::min<std::size_t>(3, answer.size()));
  }
  bool leads(Child& worker) {
    static const std::set<std::string> kLeads = {"leader_waiting", "checking_pending", "setting_running", "running",
                                                 "deleting"};
    return kLeads.contains(state(worker));
  }
  std::size_t leaders() {
    return static_cast<std::size_t>(std::ranges::count_if(workers_, [&](auto& worker) { return leads(*worker); }));
  }
  /// Which of them leads; waits for one.
  std::size_t leader() {
    std::size_t found = workers_.size();
    EXPECT_TRUE(wait_until([&] {
      for (found = 0; found < workers_.size(); ++found)
        if (leads(*workers_[found])) return true;
      return false;
    })) << "nobody leads";
    return found;
  }
  /// Asks again and again, with a moment in between that costs others nothing.
  bool wait_until(const std::function<bool()>& holds, Milliseconds patience = kPatience) {
    std::int64_t until = steady_ns() + std::chrono::nanoseconds(patience).count();
    while (!holds()) {
      if (steady_ns() > until) return false;
      workers_.back()->gather(Milliseconds(1));
    }
    return true;
  }
  void let_pass(Milliseconds time) { workers_.back()->gather(time); }

  void touch() {
    must(store_.transact([](Transaction& txn) { txn.add(std::string("pending/") + kKey, 1); }));
    ++touched_;
  }
  std::int64_t count(const std::string& what) {
    return must(store_.read([&](Reader& reader) { return decode_counter(reader.get(what + "/" + kKey)); }));
  }
  bool wait_until_done() {
    return wait_until([&] { return count("pending") == 0 && count("done") == touched_; });
  }
  /// Of the runs that had an effect, in the order of their ends.
  std::vector<std::string> tokens() {
    auto text = must(store_.read([](Reader& reader) { return reader.get(std::string("tokens/") + kKey); }));
    std::istringstream lines(text.value_or(""));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    return all;
  }
  void expect_tokens_grow() {
    auto all = tokens();
    EXPECT_FALSE(all.empty());
    EXPECT_TRUE(std::ranges::is_sorted(all)) << "tokens only grow";
    EXPECT_TRUE(std::ranges::adjacent_find(all) == all.end());
  }

  /// Kills the leader, and answers how long it took until another led.
  double kill_leader(const std::string& elects, const Times& times) {
    std::size_t victim = leader();
    auto killed = std::move(workers_[victim]);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(victim));
    std::int64_t from = steady_ns();
    killed->kill();
    leader();
    double took = ms_between(from, steady_ns());
    workers_.push_back(start(elects, times));
    return took;
  }

  /// No two lead, and each touch is served, for a while.
  void expect_one_leader_who_works() {
    leader();
    for (int i = 0; i < 100; ++i) {
      ASSERT_LE(leaders(), 1u);
      if (i % 25 == 0) touch();
      let_pass(Milliseconds(20));
    }
    EXPECT_TRUE(wait_until_done());
    expect_tokens_grow();
  }

  Scratch scratch_;
  std::string url_ = fresh_store_url(lmdb_url(scratch_ / "store"));
  Store store_ = must(Store::open(url_));
  std::vector<std::unique_ptr<Child>> workers_;
  std::int64_t touched_ = 0;
};

}  // namespace perdure::e2e
