// Prompts in the order of their times: which of them a message belongs to.
//
// That is the last one before it, by the times of the transcript. It is not stored with the message but found out
// whenever messages are read. For the hook of a prompt may come long after the run that has stored its messages, if it
// had to wait in the spool.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "transcript/rows.h"

namespace perdure::transcript {

class Prompts {
 public:
  struct Prompt {
    std::uint64_t n;
    std::int64_t at;
    /// See text_mark.
    Bytes mark;
  };

  Prompts() = default;
  /// Those that messages with times from `first` to `last` may belong to, but the first `most` of them alone, which are
  /// two or more. Needs system access.
  Prompts(Reader& reader, BytesView data, std::int64_t first, std::int64_t last, std::size_t most);

  bool empty() const { return prompts_.empty(); }
  /// Null if nobody knows: there are more than `most`, or none at all. For a message of the time `first` it is known
  /// if there is any.
  const Prompt* of(std::int64_t at, const MessageRow& message) const;

 private:
  /// By time.
  std::vector<Prompt> prompts_;
  /// There may be others behind them.
  bool cut_ = false;
};

/// The session has had so many prompts, and hooks of the last ones may have come after messages were stored. Sees to it
/// that prompts without a text of their own have the right one all the same: what the user said last that belongs to
/// them, or nothing if that is far behind. It is done for some of them; answers whether there are more.
bool see_to_texts(Transaction& txn, BytesView data, std::uint64_t prompts);

}  // namespace perdure::transcript
