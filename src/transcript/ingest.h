// From lines of a transcript to messages: what one transaction stores of them.
//
// Lines are read and understood outside of any transaction, a few megabytes at a time. A batch is then stored as a
// whole, with the place where reading stopped; so whatever dies, each message is stored once, and reading goes on
// behind the last that was.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "perdure/transaction.h"
#include "transcript/entry.h"
#include "transcript/lines.h"
#include "transcript/rows.h"
#include "transcript/uuids.h"

namespace perdure::transcript {

struct Batch {
  /// For a store whose transactions have room for so many bytes.
  explicit Batch(std::size_t room = Limits().transaction_bytes_max) : room_(room) {}

  std::vector<Entry> entries;
  /// The last title, if there is one.
  std::string title;
  /// Behind all of them.
  Position position;
  std::uint64_t bytes_read = 0;
  /// How many entries of the session were read before these, if that is known.
  std::optional<std::uint64_t> before;
  /// The stretch that was booked and has the entries, if there is one.
  std::shared_ptr<const Stretch> ahead;

  /// One that is not full has room for one more entry, whatever that is: for its message, for a prompt that gets the
  /// text of it, and for a list of things to do that it replaces, a fifth each at most.
  bool full() const { return bytes_ >= room_ / 10 * 3; }
  /// Keeps what is worth keeping of it, within what a row has room for. What a tool answers goes to its call, if that
  /// is in the batch.
  void add(Entry entry);

 private:
  void cut_message(Entry& entry) const;
  void cut_results(Entry& entry) const;
  void note_calls(Entry& entry);
  bool answer(ToolResult& result);
  std::size_t message_bytes_max() const { return std::min<std::size_t>(1'000'000, room_ / 5); }
  /// What tools answered in one entry.
  std::size_t outputs_bytes_max() const { return room_ / 10 * 4; }

  std::size_t room_;
  struct Call {
    std::size_t entry, tool;
    /// If messages have it in common, they find its answer by its id.
    bool shared = false;
  };
  /// By id.
  std::map<std::string, Call> calls_;
  std::size_t bytes_ = 0;
};

/// Stores it for the session with that number. Errors of the transaction: kNotFound if that is gone, kStaleToken if
/// others have been read meanwhile.
void store_batch(Transaction& txn, std::string_view space, const std::string& id, std::uint64_t number,
                 const Batch& batch, WallTime now);

}  // namespace perdure::transcript
