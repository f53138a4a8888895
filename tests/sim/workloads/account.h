// Accounts: the actors of the simulation. Each keeps a log of all that it has consumed, so that what became of a
// message can be seen from its state; and money, which only moves.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdure/actor.h"

namespace perdure::sim::accounts {

/// Not that of histories.
using perdure::Value;

/// Fails as long as the attempt is not beyond `fails`.
struct Put {
  using Reply = std::int64_t;  ///< Its place in the log, from 1.
  std::int64_t id = 0;
  int fails = 0;
  PERDURE_DESCRIBE(Put, id, fails)
};
/// Is replied to with the next message.
struct Ask {
  using Reply = std::int64_t;
  std::int64_t id = 0;
  PERDURE_DESCRIBE(Ask, id)
};
/// Sends money to another: by a Deposit with the same id, negative.
struct Transfer {
  using Reply = std::int64_t;
  std::int64_t id = 0;
  std::string to;
  std::int64_t amount = 0;
  std::int64_t delay_ms = 0;
  PERDURE_DESCRIBE(Transfer, id, to, amount, delay_ms)
};
struct Deposit {
  std::int64_t id = 0;
  std::int64_t amount = 0;
  PERDURE_DESCRIBE(Deposit, id, amount)
};
/// Takes the lock, and ends under it.
struct Slow {
  using Reply = std::int64_t;
  std::int64_t id = 0;
  PERDURE_DESCRIBE(Slow, id)
};
/// Past the mailbox: leaves a mark.
struct Mark {
  using Reply = std::int64_t;
  std::int64_t id = 0;
  PERDURE_DESCRIBE(Mark, id)
};
/// Past the mailbox: how long the log is.
struct Length {
  using Reply = std::int64_t;
  PERDURE_DESCRIBE(Length)
};

struct Account {
  static constexpr std::string_view kKind = "account";
  struct State {
    std::int64_t balance = 0;
    std::int64_t sum = 0;
    std::vector<std::int64_t> log;
    /// Who is to be replied to, and with what.
    std::map<std::string, std::int64_t> asking;
    std::map<std::string, std::int64_t> marks;
    /// The message that the lock was last taken for, while neither its end nor another message was seen.
    std::int64_t open = 0;
    /// Those that ended under the lock, and those that lost it: never the same ones.
    std::map<std::string, std::int64_t> ended;
    std::map<std::string, std::int64_t> lost;
    PERDURE_DESCRIBE(State, balance, sum, log, asking, marks, open, ended, lost)
  };
  using Messages = MessageList<Put, Ask, Transfer, Deposit, Slow, Mark, Length>;

  /// Told of each message after its commit.
  std::function<void(std::int64_t)> committed;

  std::int64_t consume(std::int64_t id, State& state, Turn& turn) {
    // Whatever comes after a lock has either been waiting for its end, or comes because it was lost.
    if (state.open != 0) state.lost[std::to_string(std::exchange(state.open, 0))] = 1;
    state.log.push_back(id);
    state.sum += id;
    for (const auto& [from, place] : state.asking) turn.reply(*From::parse(from), place);
    state.asking.clear();
    turn.after_commit([id, tell = committed](const Value&) {
      tell(id);
      return Next::kGoOn;
    });
    return static_cast<std::int64_t>(state.log.size());
  }

  Answer<std::int64_t> handle_call(const Put& put, State& state, Turn& turn) {
    auto place = consume(put.id, state, turn);
    if (turn.attempt() <= put.fails) throw std::runtime_error("not yet");
    return place;
  }
  void handle_cast(const Put& put, State& state, Turn& turn) {
    consume(put.id, state, turn);
    if (turn.attempt() <= put.fails) throw std::runtime_error("not yet");
  }
  Answer<std::int64_t> handle_call(const Ask& ask, State& state, Turn& turn) {
    auto place = consume(ask.id, state, turn);
    state.asking[turn.from()->to_string()] = place;
    return no_reply;
  }
  std::int64_t send(const Transfer& transfer, State& state, Turn& turn) {
    state.balance -= transfer.amount;
    turn.cast({{}, std::string(kKind), transfer.to}, Deposit{-transfer.id, transfer.amount},
              std::chrono::milliseconds(transfer.delay_ms));
    return consume(transfer.id, state, turn);
  }
  Answer<std::int64_t> handle_call(const Transfer& transfer, State& state, Turn& turn) {
    return send(transfer, state, turn);
  }
  void handle_cast(const Transfer& transfer, State& state, Turn& turn) { send(transfer, state, turn); }
  void handle_cast(const Deposit& deposit, State& state, Turn& turn) {
    state.balance += deposit.amount;
    consume(deposit.id, state, turn);
  }
  Answer<std::int64_t> handle_call(const Slow& slow, State& state, Turn& turn) {
    consume(slow.id, state, turn);
    state.open = slow.id;
    return take_lock;
  }
  Answer<> handle_cast(const Slow& slow, State& state, Turn& turn) {
    consume(slow.id, state, turn);
    state.open = slow.id;
    return take_lock;
  }
  Answer<std::int64_t> handle_locked(const Slow& slow, State& state, Turn&) {
    state.open = 0;
    state.ended[std::to_string(slow.id)] = 1;
    return static_cast<std::int64_t>(state.log.size());
  }
  Answer<std::int64_t> handle_call(const Mark& mark, State& state, Turn&) {
    return state.marks[std::to_string(mark.id)] = mark.id;
  }
  Answer<std::int64_t> handle_call(const Length&, State& state, Turn&) {
    return static_cast<std::int64_t>(state.log.size());
  }
};

}  // namespace perdure::sim::accounts
