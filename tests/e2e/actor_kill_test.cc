// Nodes that are killed while they serve: no message is lost, none takes effect twice, and one that kills its node is
// given up.
#include <atomic>
#include <memory>
#include <mutex>
#include <semaphore>

#include "actor_fixture.h"

namespace perdure::e2e {
namespace {

/// No divisor of what says which calls take the lock: each ledger has both.
constexpr std::uint64_t kLedgers = 37;

/// Calls with ids of their own, so many at once, one in ten under the lock; and what became of each.
class Calls {
 public:
  struct Call {
    bool locked = false;
    Result<std::int64_t> result;
    double took_ms = 0;
  };
  Calls(Actors actors, std::uint64_t total) : actors_(std::move(actors)), total_(total) {}

  void start(int chains) {
    running_ = chains;
    for (int i = 0; i < chains; ++i) next();
  }
  bool finished() { return running_ == 0; }
  static std::string ledger(std::uint64_t number) { return ledger_name(number % kLedgers); }
  static std::string id(std::uint64_t number) { return "call-" + std::to_string(number); }
  std::map<std::uint64_t, Call> take() {
    std::lock_guard lock(mutex_);
    return std::move(calls_);
  }

 private:
  void next() {
    std::uint64_t number = begun_++;
    if (number >= total_) {
      --running_;
      return;
    }
    bool locked = number % 10 == 0;
    auto done = [this, number, locked, begun_ns = steady_ns()](Result<std::int64_t> result) {
      {
        std::lock_guard lock(mutex_);
        calls_.insert({number, {locked, std::move(result), ms_between(begun_ns, steady_ns())}});
      }
      next();
    };
    auto actor = actors_.of<Ledger>(ledger(number));
    CallOptions options{.timeout = std::chrono::seconds(3)};
    if (locked)
      actor.call_async(RecordLocked{id(number), 3 + static_cast<std::int64_t>(number % 48)}, options, std::move(done));
    else
      actor.call_async(Record{id(number)}, options, std::move(done));
  }

  Actors actors_;
  const std::uint64_t total_;
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<int> running_ = 0;
  std::mutex mutex_;
  std::map<std::uint64_t, Call> calls_;
};

class ActorKill : public ActorProcesses {
 protected:
  void start(std::unique_ptr<ActorWorker>& worker) {
    worker = std::make_unique<ActorWorker>();
    open(*worker, kQuick);
    std::string load = "load node" + std::to_string(started_++) + " " + std::to_string(kLedgers) + " 2";
    ASSERT_EQ(worker->ask(load), "ok");
  }

  /// The calls of a worker's own that were acknowledged to it.
  void note_acknowledged(Child& worker) {
    for (const std::string& event : worker.take_events()) {
      std::istringstream words(event);
      std::string what, ledger, id;
      words >> what >> ledger >> id;
      if (what == "acked") acknowledged_.emplace_back(ledger, id);
    }
  }

  /// What is wrong with what the ledgers say of `calls`.
  std::vector<std::string> problems(const std::map<std::uint64_t, Calls::Call>& calls) {
    std::vector<std::string> found;
    std::map<std::string, std::map<std::string, std::int64_t>> books;
    for (std::uint64_t i = 0; i < kLedgers; ++i) {
      auto& book = books[ledger_name(i)] = counts(ledger_name(i));
      for (auto& [id, count] : book)
        if (count != 1) found.push_back(id + " counts " + std::to_string(count) + " times");
      if (dead(ledger_name(i)) > 0) found.push_back(ledger_name(i) + " has dead letters");
    }
    auto expect = [&](const std::string& ledger, const std::string& id, bool there, const std::string& why) {
      if (books[ledger].contains(id) != there) found.push_back(id + (there ? " is missing: " : " is there: ") + why);
    };
    for (auto& [ledger, id] : acknowledged_) expect(ledger, id, true, "acknowledged to its node");
    for (auto& [number, call] : calls) {
      std::string why = call.result ? "acknowledged" : to_string(call.result.error());
      ErrorCode code = call.result ? ErrorCode::kReplyTimeout : call.result.error().code;
      if (call.result || (code == ErrorCode::kReplyTimeout && !call.locked))
        expect(Calls::ledger(number), Calls::id(number), true, why);
      if (!call.result && code == ErrorCode::kStaleToken) expect(Calls::ledger(number), Calls::id(number), false, why);
    }
    return found;
  }

  /// Two nodes serve the same actors and call them too, and `disturb` does something to one of them again and again
  /// while the calls of this process run.
  void expect_each_counted_once(std::uint64_t total,
                                const std::function<void(std::unique_ptr<ActorWorker>&)>& disturb) {
    std::array<std::unique_ptr<ActorWorker>, 2> workers;
    for (auto& worker : workers) start(worker);
    Calls calls(actors_, total);
    std::int64_t began_ns = steady_ns();
    calls.start(64);
    std::size_t times = 0;
    for (; !calls.finished(); ++times) {
      ASSERT_LT(times, 300u) << "the calls do not come to an end";
      auto& victim = workers[times % 2];
      victim->gather(Milliseconds(100 + times % 7 * 20));
      disturb(victim);
      for (auto& worker : workers) note_acknowledged(*worker);
    }
    double seconds = ms_between(began_ns, steady_ns()) / 1000;
    for (auto& worker : workers) EXPECT_EQ(worker->ask("rest"), "ok");
    EXPECT_TRUE(wait_until_finished(*workers[0])) << unfinished().size() << ": " << unfinished().front();
    for (auto& worker : workers) {
      end(*worker);
      note_acknowledged(*worker);
    }
    EXPECT_EQ(unfinished(), std::vector<std::string>());
    std::printf("disturbed %zu times in %.1f s; %zu calls were acknowledged to the nodes themselves\n", times, seconds,
                acknowledged_.size());
    EXPECT_GE(times, 3u) << "too little happened to show anything";
    check_answers(calls.take(), total);

    // Those who waited in the nodes that died: DGEN-13.
    ActorWorker idle;
    if (on_test_server()) wait_until(idle, [&] { return sessions() == 1; });  // Those who died last are not known yet.
    EXPECT_EQ(sessions(), 1u);
    EXPECT_TRUE(wait_until(idle, [&] { return must(actors_.collect(Duration::zero())) == 0 && waiting() == 0; }))
        << waiting() << " rows of callers are left";
    expect_sound(store_);
  }

  void check_answers(const std::map<std::uint64_t, Calls::Call>& answered, std::uint64_t total) {
    ASSERT_EQ(answered.size(), total);
    auto found = problems(answered);
    EXPECT_TRUE(found.empty()) << found.size() << " problems, the first: " << found.front();
    std::map<std::string_view, std::uint64_t> results;
    std::vector<double> took;
    for (auto& [number, call] : answered) {
      ++results[call.result ? "acknowledged" : call.result.error().name()];
      took.push_back(call.took_ms);
    }
    report_ms("from a call to its answer", took);
    for (auto& [name, count] : results) std::printf("%s: %d\n", name.data(), static_cast<int>(count));
    EXPECT_GT(results["acknowledged"], total * 9 / 10);
  }

  int started_ = 0;
  std::vector<std::pair<std::string, std::string>> acknowledged_;
};

/// DGEN-2, DGEN-3, DGEN-7, DGEN-16, DGEN-20, DGEN-26, DGEN-30, DGEN-U9, DGEN-U15, DGEN-U16, DGEN-B1.
TEST_F(ActorKill, WhatWasAcknowledgedCountsOnceWhenNodesAreKilled) {
  expect_each_counted_once(by_engine(10'000, 1'000), [&](std::unique_ptr<ActorWorker>& worker) {
    worker->kill();
    worker->gather(kPatience);
    note_acknowledged(*worker);
    start(worker);
  });
}

/// The same for nodes that come back after others took over: DGEN-3, DGEN-U14, DGEN-B1, DGEN-B3.
TEST_F(ActorKill, WhatWasAcknowledgedCountsOnceWhenNodesArePaused) {
  expect_each_counted_once(by_engine(8'000, 3'000), [&](std::unique_ptr<ActorWorker>& worker) {
    stop_outside_of_a_commit(*worker);
    worker->gather(Milliseconds(1300));  // Longer than its TTL.
    worker->signal(SIGCONT);
  });
}

/// DGEN-B6: a message that kills its node does so five times, and no more.
TEST_F(ActorKill, AMessageThatKillsItsNodeIsGivenUp) {
  auto poison = call("a", Poison{}, std::chrono::minutes(1));
  auto one = std::make_unique<ActorWorker>();
  ASSERT_TRUE(wait_until(*one, [&] { return !unfinished().empty(); })) << "it has to be in front";
  auto behind = call("a", Record{"behind"}, std::chrono::minutes(1));
  auto given_up = [&] { return poison.wait_for(Duration::zero()) == std::future_status::ready; };
  int deaths = 0;
  for (;; one = std::make_unique<ActorWorker>()) {
    one->say("open " + url_ + kMortal);
    ASSERT_TRUE(wait_until(*one, [&] { return one->wait(Milliseconds(0)) || given_up(); }));
    if (given_up()) break;
    ASSERT_LT(++deaths, 10) << "it goes on for ever";
  }
  EXPECT_EQ(deaths, 5);
  Answered answered = poison.get();
  ASSERT_FALSE(answered.result);
  EXPECT_EQ(answered.result.error().code, ErrorCode::kHandlerFailed) << to_string(answered.result.error());
  EXPECT_EQ(behind.get().result, 1);
  EXPECT_EQ(dead("a"), 1u);
  auto letters =
      must(store_.read([&](Reader& reader) { return actors_.actor(Ledger::kKind, "a").dead_letters(reader); }));
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].attempts, 5);
  EXPECT_EQ(letters[0].message, internal::message_value(Poison{}));
  EXPECT_TRUE(wait_until_finished(*one)) << unfinished().front();
  EXPECT_TRUE(wait_until_nobody_waits(*one));
}

}  // namespace
}  // namespace perdure::e2e
