// Folding on a server that cannot write it all at once.
//
// The rows go out in chunks, each a Txn, and only the last Txn moves `folded`. A row that is written early harms
// nobody, since the log still has what made it, and goes before the rows. What must not be is that a chunk arrives
// late, when another has folded further: it would put old rows over new ones. So whoever folds puts its mark into the
// key `folder` first, and each chunk compares it. A mark is of one fold, not of one process: also a chunk of this very
// object may be on its way yet when it tries anew.
//
// A mark is left alone while it is seen to change, which it does with each chunk; one that stays the same for a while
// is of somebody who died, or is slow enough to be beaten: that costs work, never rows.
//
// How much a server takes in one request it does not say, other than by a refusal. Appends may all be smaller than what
// it takes and chunks not: then they become smaller, or the log would never be folded again.
#pragma once

#include <span>

#include "perdure/time.h"
#include "store/etcd/etcd_client.h"
#include "store/etcd/etcd_layout.h"

namespace perdure::etcd {

/// One call at a time.
class Folder {
 public:
  enum class Compaction { kOn, kOff };
  Folder(Client& client, const Layout& layout, Compaction compaction);

  /// As RowServer::fold.
  Result<bool> fold(const remote::Fold& fold);

 private:
  /// Puts our mark there; false if another is at work or has folded.
  Result<bool> begin(const remote::Fold& fold);
  /// Whether the mark that is there may be taken away.
  bool is_abandoned(const KeyValue& mark);
  struct Chunk {
    Txn txn;
    std::size_t rows = 0;
    std::size_t bytes = 0;  ///< Of their keys and values.
  };
  /// The first of these rows, as many as go out together: at least one.
  Chunk chunk_of(std::span<const remote::FoldedRow> rows) const;
  Result<bool> write_rows(const remote::Fold& fold);
  Result<bool> finish(const remote::Fold& fold);
  Result<TxnAnswer> write(const Txn& txn);
  void compact(Revision folded_at);

  Client& client_;
  const Layout& layout_;
  const Compaction compaction_;
  /// What all marks of this object begin with.
  const Bytes name_;
  std::uint64_t folds_ = 0;
  Bytes mark_;
  /// Of a chunk; a row that is larger goes alone. Smaller once the server has refused one.
  std::size_t chunk_bytes_ = 1 << 20;
  /// As it was when our mark was put there; entries that are gone are never said to be there again.
  Version trimmed_ = {};
  /// The mark of another, as it was seen last and since when.
  Revision seen_ = 0;
  SteadyTime seen_since_ = {};
  /// Of our last fold: what is older is of no use to readers and watches that are at work.
  Revision last_fold_ = 0;
};

}  // namespace perdure::etcd
