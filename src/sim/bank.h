// The bank: n accounts, money moves between them, and none is made or lost.
//
// Any lost or torn transfer changes the total; write skew between two withdrawals makes a balance negative. A reader of
// all accounts in one transaction must see the total at every moment, not only at the end.
//
// Binding to a store, inside one transaction: read the balances of `from` and `to`, call `bank_apply`, and write both
// of what it returns, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "perdure/error.h"

namespace perdure::sim {

using Account = std::uint32_t;
using Money = std::int64_t;

struct Transfer {
  Account from;
  Account to;
  Money amount;
  bool operator==(const Transfer&) const = default;
};

/// What the two accounts of a transfer hold.
struct Balances {
  Money from;
  Money to;
  bool operator==(const Balances&) const = default;
};

/// The balances at the beginning: the total, spread as evenly as it goes.
inline std::vector<Money> bank_initial(Account n, Money total) {
  std::vector<Money> balances(n, total / n);
  for (Money i = 0; i < total % n; ++i) ++balances[static_cast<std::size_t>(i)];
  return balances;
}

struct BankOptions {
  Account accounts;  ///< At least 2.
  Money amount_max;  ///< At least 1.
};

/// A transfer between two different accounts, from any random number.
inline Transfer bank_draw(const BankOptions& options, std::uint64_t random) {
  check(options.accounts >= 2 && options.amount_max >= 1, "a bank without anything to transfer");
  auto from = static_cast<Account>(random % options.accounts);
  random /= options.accounts;
  auto step = static_cast<Account>(random % (options.accounts - 1));
  random /= options.accounts - 1;
  auto amount = static_cast<Money>(random % static_cast<std::uint64_t>(options.amount_max)) + 1;
  return {from, static_cast<Account>((std::uint64_t{from} + 1 + step) % options.accounts), amount};
}

/// The balances after the transfer; nothing if the account does not hold enough or there is nothing to move.
inline std::optional<Balances> bank_apply(const Transfer& transfer, const Balances& current) {
  if (transfer.from == transfer.to || transfer.amount <= 0 || current.from < transfer.amount) return std::nullopt;
  return Balances{current.from - transfer.amount, current.to + transfer.amount};
}

/// Whether the balances, read in one transaction, add up to the total and none is negative; kCorrupt says what is not.
inline Result<void> check_bank(std::span<const Money> balances, Money total) {
  Money sum = 0;
  for (std::size_t i = 0; i < balances.size(); ++i) {
    if (balances[i] < 0)
      return fail(ErrorCode::kCorrupt, "account " + std::to_string(i) + " holds " + std::to_string(balances[i]));
    if (__builtin_add_overflow(sum, balances[i], &sum))
      return fail(ErrorCode::kCorrupt, "the balances up to account " + std::to_string(i) + " are too large to add");
  }
  if (sum != total)
    return fail(ErrorCode::kCorrupt, "the accounts hold " + std::to_string(sum) + " instead of " +
                                         std::to_string(total) + (sum < total ? ": lost " : ": made ") +
                                         std::to_string(sum < total ? total - sum : sum - total));
  return {};
}

}  // namespace perdure::sim
