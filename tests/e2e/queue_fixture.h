// What the tests of the event queue share: their worker, and a node in the test itself that runs nothing.
#pragma once

#include <map>

#include "session_fixture.h"
#include "task.h"

namespace perdure::e2e {

/// A queue_worker; see queue_worker.cc for its commands. With PERDURE_SEED_BUG in its environment it makes that bug.
class QueueWorker : public Child {
 public:
  QueueWorker() : Child({PERDURE_E2E_QUEUE_WORKER}) {}
};

class QueueProcesses : public SessionProcesses {
 protected:
  Uuid emit(Task task, EmitOptions options = {}) {
    task.emitted_ns = steady_ns();
    return must(queue_.emit(kTasks, task, std::move(options))).id;
  }

  WorkerInfo info() { return must(queue_.worker(kTasks)); }

  std::int64_t effects(const std::string& id) { return decode_counter(get(store_, effect_key(id))); }
  /// All of them, by the ids of their tasks.
  std::map<std::string, std::int64_t> effects() { return counters("effect/"); }
  std::map<std::string, std::int64_t> counters(const std::string& prefix) {
    std::map<std::string, std::int64_t> found;
    auto rows = must(store_.read([&](Reader& reader) { return reader.get_range({prefix, prefix + "\xfe"}); }));
    for (const Row& row : rows) found[row.key.substr(prefix.size())] = decode_counter(row.value);
    return found;
  }

  /// Counts the rows of a state by listing them, in the same snapshot as the counts that they must equal.
  ::testing::AssertionResult counts_are_those_of_the_rows() {
    return must(store_.read([&](Reader& reader) -> ::testing::AssertionResult {
      WorkerInfo counted = queue_.worker(reader, kTasks);
      auto rows = [&](std::optional<EventState> state) {
        std::uint64_t count = 0;
        EventFilter filter{.worker = std::string(kTasks), .state = state, .limit = 1000};
        do {
          EventPage page = must(queue_.list(reader, filter));
          count += page.events.size();
          filter.after = page.next;
        } while (!filter.after.empty());
        return count;
      };
      std::uint64_t ready = rows(EventState::kReady), scheduled = rows(EventState::kScheduled),
                    running = rows(EventState::kRunning), dead = rows(EventState::kDead);
      if (counted.ready == ready && counted.scheduled == scheduled && counted.running == running &&
          counted.dead == dead && counted.total == ready + scheduled + running)
        return ::testing::AssertionSuccess();
      return ::testing::AssertionFailure()
             << "counted and found: ready " << counted.ready << " " << ready << ", scheduled " << counted.scheduled
             << " " << scheduled << ", running " << counted.running << " " << running << ", dead " << counted.dead
             << " " << dead << ", total " << counted.total;
    }));
  }

  /// Waits until `look` is true, reading meanwhile what `worker` says.
  template <class Look>
  static bool wait_until(Child& worker, Look look, Milliseconds patience = kPatience) {
    std::int64_t until = steady_ns() + std::chrono::nanoseconds(patience).count();
    do {
      if (look()) return true;
      worker.gather(Milliseconds(10));
    } while (steady_ns() < until);
    return false;
  }
  /// Until nothing is stored any more but dead letters.
  bool wait_until_finished(Child& worker, Milliseconds patience = kPatience) {
    return wait_until(worker, [&] { return info().total == 0; }, patience);
  }

  /// Ends `worker` in good order.
  static void end(Child& worker) {
    worker.end_input();
    worker.gather(kPatience);
    EXPECT_EQ(worker.wait(), 0);
  }

  /// Emits, claims by hand and looks, but runs nothing.
  Queue queue_ = must(Queue::open(store_, {.dispatch = false}));
};

}  // namespace perdure::e2e
