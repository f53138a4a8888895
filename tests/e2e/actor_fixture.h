// What the tests of actors share: their worker, and a node in the test itself that serves nothing.
#pragma once

#include <future>

#include "actor/rows.h"
#include "ledger.h"
#include "session_fixture.h"

namespace perdure::e2e {

/// An actor_worker; see actor_worker.cc for its commands. With PERDURE_SEED_BUG in its environment it makes that bug.
class ActorWorker : public Child {
 public:
  ActorWorker() : Child({PERDURE_E2E_ACTOR_WORKER}) {}
};

/// A call that was answered, and when.
struct Answered {
  Result<std::int64_t> result;
  std::int64_t at_ns = 0;
};

class ActorProcesses : public SessionProcesses {
 protected:
  template <class M>
  std::future<Answered> call(const std::string& ledger, const M& message, Duration timeout = kPatience) {
    auto promise = std::make_shared<std::promise<Answered>>();
    auto future = promise->get_future();
    actors_.of<Ledger>(ledger).call_async(message, {.timeout = timeout}, [promise](Result<std::int64_t> result) {
      promise->set_value({std::move(result), steady_ns()});
    });
    return future;
  }

  std::map<std::string, std::int64_t> counts(const std::string& ledger) {
    auto state = must(actors_.of<Ledger>(ledger).state()).value_or(Ledger::State{});
    std::int64_t sum = 0;
    for (auto& [id, count] : state.counts) sum += count;
    EXPECT_EQ(state.sum, sum) << "something was written over in " << ledger;
    return state.counts;
  }

  std::uint64_t dead(const std::string& ledger) {
    auto info = actors_.actor(Ledger::kKind, ledger).inspect();
    return info ? info->dead : 0;
  }

  /// Rows of waiting callers: placeholders and replies.
  std::size_t waiting() {
    std::size_t count = 0;
    for_each_ledger([&](Reader& reader, const std::string&, const Bytes& prefix) {
      count += reader.get_range(tuple::extensions(actor::waiting_key(prefix))).size();
    });
    return count;
  }

  /// What keeps ledgers from being idle: messages, marks of messages, locks.
  std::vector<std::string> unfinished() {
    std::vector<std::string> found;
    for_each_ledger([&](Reader& reader, const std::string& id, const Bytes& prefix) {
      auto messages = reader.get_range(tuple::extensions(actor::mailbox_key(prefix))).size();
      if (messages > 0) found.push_back(id + " has " + std::to_string(messages) + " messages");
      auto head = actor::read_head(reader, prefix);
      if (head && head->lock) found.push_back(id + " is locked");
      auto info = actors_.actor(Ledger::kKind, id).inspect(reader);
      if (info && info->mailbox_length != messages)
        found.push_back(id + " counts " + std::to_string(info->mailbox_length) + " messages");
    });
    must(store_.read([&](Reader& reader) {
      SystemAccess access(reader);
      for (const Row& row : reader.get_range(tuple::extensions(actor::ready_prefix("default", Ledger::kKind))))
        found.push_back("a mark of messages, written at " + std::to_string(row.version.number));
    }));
    return found;
  }

  /// Waits until `look` is true, reading meanwhile what `worker` says.
  template <class Look>
  static bool wait_until(Child& worker, Look look) {
    std::int64_t until = steady_ns() + std::chrono::nanoseconds(kPatience).count();
    while (steady_ns() < until) {
      if (look()) return true;
      worker.gather(Milliseconds(20));
    }
    return false;
  }
  bool wait_until_finished(Child& worker) {
    return wait_until(worker, [&] { return unfinished().empty(); });
  }
  /// A caller clears its rows after it was answered.
  ::testing::AssertionResult wait_until_nobody_waits(Child& worker) {
    if (wait_until(worker, [&] { return waiting() == 0; })) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << waiting() << " rows of callers are left";
  }

  /// Ends `worker` in good order.
  static void end(Child& worker) {
    worker.end_input();
    worker.gather(kPatience);
    EXPECT_EQ(worker.wait(), 0);
  }

  /// Serves nothing.
  Actors actors_ = must(Actors::open(store_));

 private:
  template <class See>
  void for_each_ledger(See see) {
    must(store_.read([&](Reader& reader) {
      for (const std::string& id : actors_.list(reader, Ledger::kKind, {.limit = 100'000})) {
        SystemAccess access(reader);
        see(reader, id, actor::prefix_of({"default", std::string(Ledger::kKind), id}));
      }
    }));
  }
};

}  // namespace perdure::e2e
