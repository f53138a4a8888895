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

  bool full() const { return bytes_ >= (std::size_t{3} << 20); }
  /// Keeps what is worth keeping of it, within what a row has room for.
  void add(Entry entry);

 private:
  std::size_t bytes_ = 0;
};

/// Stores it for the session with that number. Errors of the transaction: kNotFound if that is gone.
void store_batch(Transaction& txn, std::string_view space, const std::string& id, std::uint64_t number,
                 const Batch& batch, WallTime now);

}  // namespace perdure::transcript
