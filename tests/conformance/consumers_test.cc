// Consumers that look for work by snapshot reads and conflict only on what they consume.
#include <algorithm>
#include <mutex>
#include <set>

#include "conformance/conformance.h"

namespace perdure::conformance {
namespace {

constexpr int kPushers = 4, kPushes = 100, kAll = kPushers * kPushes;

struct Consumed {
  std::vector<Bytes> items;
  int runs = 0;
  int looked_again = 0;
  int commits = 0;
};

/// Pushes from kPushers threads while `consumers` threads each take the queue's rows, until all have come.
Consumed push_and_consume(Store& store, int consumers) {
  std::mutex mutex;
  Consumed all;
  std::atomic<int> taken = 0;
  on_threads(kPushers + consumers, [&](int thread) {
    if (thread < kPushers) {
      for (int i = 0; i < kPushes; ++i)
        must(store.transact([&](Transaction& txn) {
          txn.set_stamped(Stamped{"q/", ""}, numbered("item", thread * kPushes + i));
          txn.set("bell", "");
        }));
      return;
    }
    while (taken < kAll) {
      Watch bell;
      int runs = 0, looked_again = 0;
      bool found_nothing = false;
      auto items = must(store.transact(
          [&](Transaction& txn) {
            ++runs;
            looked_again += found_nothing;
            bell = txn.watch("bell");
            std::vector<Bytes> found;
            // To the end of the range, where others are pushing at this moment.
            for (const Row& row : txn.snapshot().get_range(prefix_range("q/"))) {
              txn.add_read_conflict(row.key);
              txn.clear(row.key);
              found.push_back(row.value);
            }
            found_nothing = found.empty();
            return found;
          },
          {.timeout = kSoon}));
      taken += static_cast<int>(items.size());
      {
        std::lock_guard lock(mutex);
        all.items.insert(all.items.end(), items.begin(), items.end());
        all.runs += runs;
        all.looked_again += looked_again;
        ++all.commits;
      }
      if (taken >= kAll) {  // The last one tells those who wait for more.
        must(store.transact([](Transaction& txn) { txn.set("bell", ""); }));
      } else if (items.empty()) {
        EXPECT_TRUE(bell.wait(kSoon));
      }
    }
  });
  return all;
}

void expect_each_once(const Consumed& consumed) {
  std::set<Bytes> unique(consumed.items.begin(), consumed.items.end());
  EXPECT_EQ(consumed.items.size(), static_cast<std::size_t>(kAll)) << "nothing is taken twice";
  EXPECT_EQ(unique.size(), static_cast<std::size_t>(kAll)) << "nothing is lost";
}

TEST_P(Conformance, ConsumerThatReadsToTheEndWhileOthersPushNeverConflicts) {
  Consumed consumed = push_and_consume(store(), 1);
  expect_each_once(consumed);
  int looked_again = capabilities().reads_may_rerun ? consumed.looked_again : 0;
  EXPECT_EQ(consumed.runs, consumed.commits + looked_again) << "pushes do not conflict with the consumer";
  // One consumer takes in the order of the stamps, so what each pusher pushed comes in its order.
  std::vector<Bytes> last(kPushers);
  for (const Bytes& item : consumed.items) {
    auto pusher = static_cast<std::size_t>(std::stoi(item.substr(4)) / kPushes);
    EXPECT_LT(last[pusher], item);
    last[pusher] = item;
  }
}

TEST_P(Conformance, CompetingConsumersTakeEachItemOnceAndRerunBoundedly) {
  Consumed consumed = push_and_consume(store(), 3);
  expect_each_once(consumed);
  EXPECT_LT(consumed.runs, 5 * (consumed.commits + kAll)) << "no conflict storm";
}

}  // namespace
}  // namespace perdure::conformance
