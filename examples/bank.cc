// Accounts as actors. A transfer is one message to the account that pays: in one transaction the message is gone, the
// balance is smaller and a message to the other account is on its way. So whenever this program is killed, no money is
// lost and none is made: what has left one account and not arrived yet is in a mailbox, and arrives in the next run.
#include <cstdio>
#include <cstdlib>

#include "perdure/actor.h"

using namespace perdure;

struct Deposit {
  std::int64_t amount = 0;
  PERDURE_DESCRIBE(Deposit, amount)
};
/// Answered with whether there was enough.
struct Transfer {
  using Reply = bool;
  std::string to;
  std::int64_t amount = 0;
  PERDURE_DESCRIBE(Transfer, to, amount)
};

struct Balance {
  using Reply = std::int64_t;
  PERDURE_DESCRIBE(Balance)
};

struct Account {
  static constexpr std::string_view kKind = "account";
  struct State {
    std::int64_t balance = 100;  // A present of the bank.
    PERDURE_DESCRIBE(State, balance)
  };
  using Messages = MessageList<Deposit, Transfer, Balance>;

  Answer<bool> handle_call(const Transfer& transfer, State& state, Turn& turn) {
    if (transfer.amount > state.balance) return false;
    state.balance -= transfer.amount;
    turn.cast({turn.actor().space, "account", transfer.to}, Deposit{transfer.amount});
    return true;
  }
  Answer<std::int64_t> handle_call(const Balance&, State& state, Turn&) { return state.balance; }
  void handle_cast(const Deposit& deposit, State& state, Turn&) { state.balance += deposit.amount; }
};

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  Store store = must(Store::open(argc > 1 ? argv[1] : "lmdb:./perdure-data"));
  Actors actors = must(Actors::open(store));
  if (!actors.serve<Account>()) return 1;
  constexpr int kAccounts = 5, kTransfers = 300;
  auto name = [](int i) { return "account-" + std::to_string(i % kAccounts); };

  for (int i = 0; i < kTransfers; ++i)
    (void)must(actors.of<Account>(name(i)).call(Transfer{.to = name(i * 7 + 1), .amount = 1 + i % 20}));

  // A call stands behind all deposits that were sent before it.
  std::int64_t total = 0;
  for (int i = 0; i < kAccounts; ++i) total += must(actors.of<Account>(name(i)).call(Balance{}));
  std::printf("%d accounts with %lld in all\n", kAccounts, static_cast<long long>(total));
}
