// From lines of a transcript to messages: what one transaction stores of them.
//
// Lines are read and understood outside of any transaction, a few megabytes at a time. A batch is then stored as a
// whole, with the place where reading stopped; so whatever dies, each message is stored once, and reading goes on
// behind the last that was.
#pragma once

#include <string>
#include <vector>

#include "perdure/transaction.h"
#include "transcript/entry.h"
#include "transcript/lines.h"
#include "transcript/rows.h"

namespace perdure::transcript {

struct Batch {
  std::vector<Entry> entries;
  /// The last title, if there is one.
  std::string title;
  /// Behind all of them.
  Position position;
  std::uint64_t bytes_read = 0;

  /// For transactions that hold so much: each bound is a part of that, where it is little.
  explicit Batch(std::size_t transaction_bytes_max = Limits{}.transaction_bytes_max);

  bool full() const { return bytes_ >= full_bytes_; }
  std::size_t message_bytes_max() const { return message_bytes_max_; }
  /// Keeps what is worth keeping of it, within what a row has room for.
  void add(Entry entry);

 private:
  std::size_t full_bytes_ = std::size_t{3} << 20;
  /// What tools answered in one entry: it is stored in one transaction, with what is in the same batch.
  std::size_t outputs_bytes_max_ = std::size_t{4} << 20;
  std::size_t message_bytes_max_ = 1'000'000;
  std::size_t bytes_ = 0;
};

/// Stores it for the session with that number. Errors of the transaction: kNotFound if that is gone.
void store_batch(Transaction& txn, std::string_view space, const std::string& id, std::uint64_t number,
                 const Batch& batch, WallTime now);

}  // namespace perdure::transcript
