// What the tests of the queue have in common: a store of their own, and looks at it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "perdure/queue.h"
#include "queue/queue_test_check.h"
#include "store/store_test_util.h"

namespace perdure::queue {

using namespace std::chrono_literals;

class QueueFixture : public ::testing::Test {
 protected:
  Store store = fresh_store();

  void TearDown() override {
    auto wrong = store.read([](Reader& reader) { return RowCheck::run(reader); });
    EXPECT_EQ(wrong.value_or(std::vector<std::string>()), std::vector<std::string>()) << "what must hold between rows";
  }

  Queue open(QueueOptions options = {}) { return *Queue::open(store, std::move(options)); }
  static RetryPolicy at_once(int max = 2) { return {.delay = 0ms, .max = max}; }

  /// Nothing if it succeeded; error() of what succeeded is undefined, and may well look as expected.
  template <class R>
  static std::optional<ErrorCode> code_of(const R& result) {
    if (result) return std::nullopt;
    return result.error().code;
  }
  /// Its result; nothing, with what was wrong, if it did not end that way.
  static EndedEvent ended(Queue& queue, const Uuid& id) {
    auto end = queue.wait(id, 20s);
    if (end) return *end;
    ADD_FAILURE() << to_string(end.error());
    return {};
  }
  /// One event, claimed by hand.
  static Claimed claim_one(Queue& queue, std::string_view worker, ClaimOptions options = {.max = 1, .wait = 20s}) {
    auto claimed = queue.claim(worker, options);
    if (claimed && claimed->size() == 1) return (*claimed)[0];
    ADD_FAILURE() << (claimed ? "claimed " + std::to_string(claimed->size()) : to_string(claimed.error()));
    return {};
  }
  /// What others do to the sessions of that name when they take them for dead.
  void end_sessions(std::string_view name) {
    auto done = store.transact([&](Transaction& txn) {
      for (const SessionInfo& session : Session::list(txn)) {
        SystemAccess access(txn);
        if (session.name == name) session::end_rows(txn, session.id);
      }
    });
    ASSERT_TRUE(done) << to_string(done.error());
  }
  std::vector<Event> list(Queue& queue, EventFilter filter) {
    auto page = queue.list(filter);
    if (page) return page->events;
    ADD_FAILURE() << to_string(page.error());
    return {};
  }
  std::vector<AttemptRecord> attempts(Queue& queue, std::string_view worker) {
    return *store.read([&](Reader& reader) { return queue.attempts(reader, worker); });
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
