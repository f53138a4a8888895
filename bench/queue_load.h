// What the benchmarks of the event queue share: a node, events that can be told apart, and the proof that each of them
// has run once.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "callers.h"
#include "perdure/queue.h"
#include "perdure/store.h"

namespace perdure::bench {

inline constexpr std::string_view kWorker = "bench";
inline constexpr std::size_t kValueBytes = 200;

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

/// A store, and a node that serves nothing yet.
struct QueueNode {
  explicit QueueNode(const std::string& url) : store(must(Store::open(url))), queue(must(Queue::open(store))) {}
  WorkerInfo info() { return must(queue.worker(kWorker)); }

  Store store;
  Queue queue;
};

/// The value of an event: its number, and as much behind it as makes 200 bytes.
inline Value numbered(std::uint64_t number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%012llu;", static_cast<unsigned long long>(number));
  std::string text = digits;
  text.resize(kValueBytes, 'v');
  return text;
}

/// `count` events with numbers from `first` on.
inline std::vector<NewEvent> batch_of(std::uint64_t first, std::uint64_t count) {
  std::vector<NewEvent> events;
  events.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) events.push_back({std::string(kWorker), numbered(first + i)});
  return events;
}

/// Which events have run. A second run of one ends the program.
class Runs {
 public:
  void note(const Job& job) {
    const std::string* text = job.value().as_text();
    std::uint64_t number = text ? std::strtoull(text->c_str(), nullptr, 10) : kMost;
    if (number >= kMost) give_up("an event with a strange value has run");
    std::uint64_t bit = std::uint64_t{1} << number % 64;
    if (seen_[number / 64].fetch_or(bit, std::memory_order_relaxed) & bit)
      give_up("event " + std::to_string(number) + " has run twice");
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t count() const { return count_; }

 private:
  static constexpr std::uint64_t kMost = 1 << 25;
  std::vector<std::atomic<std::uint64_t>> seen_ = std::vector<std::atomic<std::uint64_t>>(kMost / 64);
  std::atomic<std::uint64_t> count_ = 0;
};

/// Serves the worker with a handler that does nothing but that.
void work(QueueNode& node, Runs& runs, unsigned concurrency);

/// Stores `count` events, a thousand at once.
void fill(QueueNode& node, std::uint64_t count);

/// Emits by so many callers, `at_once` events each time; numbers them from 0 without a gap.
Sample emit_for(QueueNode& node, int callers, std::uint64_t at_once, std::chrono::milliseconds duration);

/// Waits until so many events have been completed, durably; the counts say so.
void wait_for_completed(QueueNode& node, std::uint64_t count);

/// Looks that every event has run once, and that the counts know it: `stored` of them are left.
void expect_counts(QueueNode& node, const Runs& runs, std::uint64_t completed, std::uint64_t stored);

}  // namespace perdure::bench
