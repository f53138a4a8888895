// Kinds of actors for tests.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdure/actor.h"

namespace perdure::actor {

struct Add {
  using Reply = std::int64_t;
  std::int64_t by = 1;
  PERDURE_DESCRIBE(Add, by)
};
struct Get {
  using Reply = std::int64_t;
  PERDURE_DESCRIBE(Get)
};
/// Fails as long as the attempt is not beyond `times`.
struct Fail {
  using Reply = std::int64_t;
  int times = 1;
  PERDURE_DESCRIBE(Fail, times)
};
/// Adds, but under the lock.
struct Slow {
  using Reply = std::int64_t;
  std::int64_t by = 1;
  PERDURE_DESCRIBE(Slow, by)
};
struct Finish {
  using Reply = std::string;
  std::string reason;
  PERDURE_DESCRIBE(Finish, reason)
};
/// A reply of so many bytes.
struct Big {
  using Reply = std::string;
  std::uint64_t bytes = 0;
  PERDURE_DESCRIBE(Big, bytes)
};
/// Replies later: to be told by Tell.
struct Ask {
  using Reply = std::int64_t;
  PERDURE_DESCRIBE(Ask)
};
struct Tell {
  std::int64_t what = 0;
  PERDURE_DESCRIBE(Tell, what)
};
/// Casts Add to another counter.
struct Pass {
  std::string to;
  std::int64_t by = 1;
  std::int64_t delay_ms = 0;
  PERDURE_DESCRIBE(Pass, to, by, delay_ms)
};

/// What a locked handler of a test is told to do, by its thread: set before the call.
struct Hooks {
  std::function<void(Turn&)> locked = {};
  std::function<void(Turn&)> call = {};
};

struct Counter {
  static constexpr std::string_view kKind = "counter";
  struct State {
    std::int64_t count = 0;
    std::vector<std::string> asking;
    PERDURE_DESCRIBE(State, count, asking)
  };
  using Messages = MessageList<Add, Get, Fail, Slow, Finish, Big, Ask, Tell, Pass>;

  std::shared_ptr<Hooks> hooks = std::make_shared<Hooks>();

  Answer<std::int64_t> handle_call(const Add& add, State& state, Turn& turn) {
    if (hooks->call) hooks->call(turn);
    return state.count += add.by;
  }
  void handle_cast(const Add& add, State& state, Turn& turn) {
    if (hooks->call) hooks->call(turn);
    state.count += add.by;
  }
  void handle_info(const Add& add, State& state, Turn&) { state.count += add.by; }
  Answer<std::int64_t> handle_call(const Get&, State& state, Turn&) { return state.count; }
  Answer<std::int64_t> handle_call(const Fail& fail, State& state, Turn& turn) {
    state.count += 1000;
    if (turn.attempt() <= fail.times) throw std::runtime_error("not yet");
    return turn.attempt();
  }
  void handle_cast(const Fail& fail, State& state, Turn& turn) {
    state.count += 1000;
    if (turn.attempt() <= fail.times) throw std::runtime_error("not yet");
  }
  Answer<std::int64_t> handle_call(const Slow&, State&, Turn&) { return take_lock; }
  Answer<> handle_cast(const Slow&, State&, Turn&) { return take_lock; }
  Answer<> handle_info(const Slow&, State&, Turn&) { return take_lock; }
  Answer<std::int64_t> handle_locked(const Slow& slow, State& state, Turn& turn) {
    if (hooks->locked) hooks->locked(turn);
    return state.count += slow.by;
  }
  Answer<std::string> handle_call(const Finish& finish, State&, Turn&) {
    return Answer<std::string>("bye").and_stop(finish.reason);
  }
  Answer<std::string> handle_call(const Big& big, State&, Turn&) { return std::string(big.bytes, 'x'); }
  Answer<std::int64_t> handle_call(const Ask&, State& state, Turn& turn) {
    state.asking.push_back(turn.from()->to_string());
    return no_reply;
  }
  void handle_cast(const Tell& tell, State& state, Turn& turn) {
    for (const std::string& from : state.asking) turn.reply(*From::parse(from), tell.what);
    state.asking.clear();
  }
  void handle_cast(const Pass& pass, State& state, Turn& turn) {
    state.count -= pass.by;
    turn.cast({{}, "counter", pass.to}, Add{pass.by}, std::chrono::milliseconds(pass.delay_ms));
  }
};

}  // namespace perdure::actor
