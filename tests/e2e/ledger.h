// The kind of actors of these tests: a ledger that notes how often each id was recorded, and the sum. What is recorded
// twice, or not at all, shows; and so does what was written over, for ids have rows of their own, but share the sum.
#pragma once

#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <string>

#include "perdure/actor.h"

namespace perdure::e2e {

/// Answered with how often the id has been recorded.
struct Record {
  using Reply = std::int64_t;
  std::string id;
  PERDURE_DESCRIBE(Record, id)
};
/// The same under the lock, after so much work.
struct RecordLocked {
  using Reply = std::int64_t;
  std::string id;
  std::int64_t work_ms = 0;
  PERDURE_DESCRIBE(RecordLocked, id, work_ms)
};
struct Big {
  using Reply = std::string;
  std::uint64_t bytes = 0;
  PERDURE_DESCRIBE(Big, bytes)
};
/// Kills the process that handles it.
struct Poison {
  using Reply = std::int64_t;
  PERDURE_DESCRIBE(Poison)
};

struct Ledger {
  static constexpr std::string_view kKind = "ledger";
  struct State {
    std::map<std::string, std::int64_t> counts;
    std::int64_t sum = 0;
    PERDURE_DESCRIBE(State, counts, sum)
  };
  using Messages = MessageList<Record, RecordLocked, Big, Poison>;

  /// Is told "locked ID" and "worked ID" when work under the lock begins and ends, if there is somebody to tell.
  std::function<void(const std::string&)> tell = {};

  Answer<std::int64_t> handle_call(const Record& record, State& state, Turn&) { return count(record.id, state); }
  void handle_cast(const Record& record, State& state, Turn&) { count(record.id, state); }
  Answer<std::int64_t> handle_call(const RecordLocked&, State&, Turn&) { return take_lock; }
  Answer<std::int64_t> handle_locked(const RecordLocked& record, State& state, Turn&) {
    if (tell) tell("locked " + record.id);
    usleep(static_cast<useconds_t>(record.work_ms * 1000));
    if (tell) tell("worked " + record.id);
    return count(record.id, state);
  }
  Answer<std::string> handle_call(const Big& big, State&, Turn&) { return std::string(big.bytes, 'b'); }
  Answer<std::int64_t> handle_call(const Poison&, State&, Turn&) {
    ::kill(getpid(), SIGKILL);
    for (;;) pause();
  }

 private:
  static std::int64_t count(const std::string& id, State& state) {
    ++state.sum;
    return ++state.counts[id];
  }
};

inline std::string ledger_name(std::uint64_t number) {
  return "ledger-" + std::to_string(number);
}

}  // namespace perdure::e2e
