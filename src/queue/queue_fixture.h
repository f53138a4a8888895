// What the tests of the queue have in common: a store in memory, and looks at it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "perdure/queue.h"
#include "queue/worker_table.h"

namespace perdure::queue {

using namespace std::chrono_literals;

class QueueFixture : public ::testing::Test {
 protected:
  Store store = *Store::open("memory:");

  Queue open(QueueOptions options = {}) { return *Queue::open(store, std::move(options)); }
  static RetryPolicy at_once(int max = 2) { return {.delay = 0ms, .max = max}; }

  /// Nothing if it succeeded; error() of what succeeded is undefined, and may well look as expected.
  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
  /// Looks until it is so; the tests' own patience.
  template <class F>
  bool eventually(F holds) {
    for (int i = 0; i < 100'000; ++i) {
      if (holds()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  WorkerInfo info(Queue& queue, std::string_view worker) { return *queue.worker(worker); }
  /// The rows of perdure's own that begin with `prefix`.
  std::vector<Row> rows(const Bytes& prefix) {
    return *store.transact([&](Transaction& txn) {
      SystemAccess access(txn);
      return txn.get_range(tuple::extensions(prefix));
    });
  }
};

}  // namespace perdure::queue
