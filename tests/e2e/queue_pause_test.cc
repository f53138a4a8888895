// Pausing: what waits is not lost, unpausing is quick however much that is, and no claim slips past a pause.
#include <atomic>
#include <random>
#include <thread>

#include "queue_fixture.h"

namespace perdure::e2e {
namespace {

const std::uint64_t kEvents = by_engine(100'000, 10'000);

/// A handler of events that are numbered from 0: are they run in that order?
class InOrder {
 public:
  void note(const Job& job) {
    int expected = ran_++;
    if (*job.value().as_integer() != expected) ++wrong_;
  }
  int ran() const { return ran_; }
  int wrong() const { return wrong_; }

 private:
  std::atomic<int> ran_ = 0;
  std::atomic<int> wrong_ = 0;
};

double median(std::vector<double> measured) {
  std::ranges::sort(measured);
  return measured[measured.size() / 2];
}

class QueuePause : public QueueProcesses {
 protected:
  /// Emits so many numbers, in this order, by batches.
  static void emit_many(Queue& queue, std::uint64_t count) {
    constexpr std::uint64_t kBatch = 1000;
    for (std::uint64_t first = 0; first < count; first += kBatch) {
      std::vector<NewEvent> batch;
      for (std::uint64_t i = first; i < std::min(first + kBatch, count); ++i)
        batch.push_back({std::string(kTasks), Value(i)});
      (void)must(queue.emit_many(std::move(batch)));
    }
  }

  /// Blocked meanwhile, so that it does not begin to run; paused at the end.
  std::vector<double> unpause_again_and_again(const char* what) {
    must(queue_.block(kTasks));
    std::vector<double> took_ms;
    for (int i = 0; i < 21; ++i) {
      must(queue_.pause(kTasks));
      std::int64_t began_ns = steady_ns();
      must(queue_.unpause(kTasks));
      took_ms.push_back(ms_between(began_ns, steady_ns()));
    }
    must(queue_.pause(kTasks));
    must(queue_.unblock(kTasks));
    report_ms(what, took_ms);
    return took_ms;
  }
};

/// DARK-3, DARK-31, DARK-33, DARK-38, DARK-B2: more than the thousand that were once notified.
TEST_F(QueuePause, UnpausingIsQuickHoweverManyEventsWait) {
  std::vector<double> empty_ms = unpause_again_and_again("unpausing with no events");
  must(queue_.pause(kTasks));
  Queue node = must(Queue::open(store_));
  InOrder order;
  must(node.work(kTasks, [&](Job& job) { order.note(job); }, {.concurrency = 1}));
  emit_many(queue_, kEvents);
  EXPECT_EQ(info().ready, kEvents);
  EXPECT_EQ(info().state, WorkerState::kPause);
  std::vector<double> full_ms = unpause_again_and_again("unpausing with all events");
  EXPECT_EQ(order.ran(), 0) << "it was paused or blocked all the time";
  must(queue_.unpause(kTasks));

  // One commit for each would take long: a part of them one after the other, the rest many at once.
  QueueWorker idle;  // Told nothing; to wait on.
  EXPECT_TRUE(wait_until(idle, [&] { return order.ran() >= 500; })) << order.ran() << " have run";
  EXPECT_EQ(order.wrong(), 0);
  must(node.work(kTasks, [](Job&) {}, {.concurrency = 1024}));
  EXPECT_TRUE(wait_until_finished(idle, 3 * kPatience)) << info().total << " are left";
  EXPECT_EQ(info().completed, kEvents);
  EXPECT_TRUE(counts_are_those_of_the_rows());
  // On a disk that takes longer than that for any commit, no longer than with nothing to release.
  EXPECT_LT(median(full_ms), std::max(10.0, 2 * median(empty_ms)));
  EXPECT_TRUE(node.close());
}

/// The same, one at a time from the first to the last, where a commit costs nothing.
TEST_F(QueuePause, AHundredThousandThatWaitedRunInTheirOrder) {
  Store store = must(Store::open("memory:"));
  Queue queue = must(Queue::open(store));
  must(queue.pause(kTasks));
  InOrder order;
  must(queue.work(kTasks, [&](Job& job) { order.note(job); }, {.concurrency = 1}));
  emit_many(queue, kEvents);
  EXPECT_EQ(order.ran(), 0) << "it was paused";
  must(queue.unpause(kTasks));
  QueueWorker idle;
  EXPECT_TRUE(wait_until(
      idle, [&] { return order.ran() == static_cast<int>(kEvents); }, 3 * kPatience))
      << order.ran() << " have run";
  EXPECT_EQ(order.wrong(), 0);
  EXPECT_TRUE(queue.close());
}

/// Claims and pauses by two processes and by hand, all on one store.
class QueuePauseRaces : public QueuePause {
 protected:
  /// From the commit of a pause to that of its end.
  struct Paused {
    Version from, to;
  };

  Version commit(const std::function<void(Transaction&)>& body) {
    Receipt receipt;
    must(store_.transact(body, {}, &receipt));
    return receipt.version;
  }

  /// Pauses and unpauses at moments of chance.
  std::vector<Paused> race(int times, const std::function<void()>& feed) {
    std::vector<Paused> pauses;
    std::mt19937 chance(29);
    auto spin = [&](std::uint32_t us_max) {
      std::int64_t until = steady_ns() + chance() % us_max * 1000;
      while (steady_ns() < until) std::this_thread::yield();
    };
    for (int i = 0; i < times; ++i) {
      feed();
      spin(3000);
      Version from = commit([&](Transaction& txn) { queue_.add_rule(txn, kTasks, Rule::Type::kPause); });
      spin(1500);
      Version to = commit([&](Transaction& txn) { queue_.remove_rule(txn, kTasks, Rule::Type::kPause); });
      pauses.push_back({from, to});
    }
    return pauses;
  }

  /// Claims by hand and completes until told to stop.
  void claim_by_hand(const std::atomic<bool>& stop) {
    Queue other = must(Queue::open(store_, {.dispatch = false}));
    while (!stop) {
      auto claimed = must(other.claim(kTasks, {.max = 2, .wait = std::chrono::milliseconds(20)}));
      for (const Claimed& event : claimed) {
        claims_.push_back(event.token->stamp.version);
        must(other.complete(event.id, *event.token));
      }
    }
  }

  std::vector<Version> claims_;
};

/// DARK-B6, DARK-U4, DARK-32: rules are looked at in the transaction that claims.
TEST_F(QueuePauseRaces, NoEventIsClaimedBetweenAPauseAndItsEnd) {
  constexpr int kFed = 8;
  const int kRaces = by_engine(1000, 200);
  QueueWorker worker;
  open(worker, " concurrency=4");
  std::atomic<bool> stop = false;
  int fed = 0;
  auto feed = [&] {
    for (int i = 0; i < kFed; ++i, ++fed)
      queue_.emit_async(kTasks, to_value(Task{.id = std::to_string(fed), .what = "note", .emitted_ns = steady_ns()}),
                        {}, [](Result<Emitted> emitted) { must(std::move(emitted)); });
  };
  std::vector<Paused> pauses;
  {
    std::jthread by_hand([&] { claim_by_hand(stop); });
    pauses = race(kRaces, feed);
    EXPECT_TRUE(wait_until_finished(worker)) << info().total << " are left";
    stop = true;
  }
  std::vector<Version> claims = claims_;
  auto noted = must(store_.read([](Reader& reader) { return reader.get_range({"claim/", "claim/\xfe"}); }));
  for (const Row& row : noted) claims.push_back({std::stoull(row.value)});
  EXPECT_EQ(claims.size(), static_cast<std::size_t>(fed));
  std::printf("%d races with %zu claims, %zu of them by hand\n", kRaces, claims.size(), claims_.size());
  EXPECT_GT(noted.size(), static_cast<std::size_t>(kRaces));
  EXPECT_GT(claims_.size(), static_cast<std::size_t>(kRaces));

  std::size_t slipped = 0, close = 0;
  for (Version claim : claims) {
    auto next = std::ranges::upper_bound(pauses, claim, {}, &Paused::from);
    if (next == pauses.begin()) continue;
    auto& last = *std::prev(next);
    slipped += claim < last.to ? 1 : 0;
  }
  for (const Paused& pause : pauses)
    close += std::ranges::any_of(
        claims, [&](Version claim) { return claim.number + 3 > pause.from.number && claim < pause.from; });
  EXPECT_EQ(slipped, 0u) << "claims while it was paused";
  EXPECT_GT(close, static_cast<std::size_t>(kRaces / 20)) << "too few claims were close to a pause to show anything";
  end(worker);
  EXPECT_EQ(info().completed, static_cast<std::uint64_t>(fed));
}

}  // namespace
}  // namespace perdure::e2e
