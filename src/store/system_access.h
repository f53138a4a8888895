#pragma once

#include <type_traits>
#include <utility>

#include "perdure/error.h"
#include "perdure/metrics.h"
#include "perdure/time.h"
#include "perdure/transaction.h"

namespace perdure {

struct ChangeNote;

/// While it lives, the transaction may read and write perdure's own keys, those from kSystemKeys on. For the parts that
/// keep their rows there; it ends before the user's code goes on with the same transaction.
class SystemAccess {
 public:
  explicit SystemAccess(Reader& txn);
  ~SystemAccess();
  /// Leaves the body, and the transaction fails with `error`, also if the body goes on.
  [[noreturn]] void refuse(Error error);
  /// A number for a row that the commit stamps, not used by any other part of perdure in this transaction; they grow.
  std::uint32_t next_order();
  /// Notes for the feed of changes what the transaction makes of something; see change_notes.h. Does nothing where the
  /// feed is off.
  void note(const ChangeNote& change);
  bool notes() const;
  /// How many bytes the transaction may still write. Engines differ in how much one holds, so work that is done in
  /// parts ends a part by this, and not by what most of them hold.
  std::size_t room() const;
  /// Whether something as large as a row may be, with what is written beside it, might find no room any more.
  bool is_full() const;
  /// For the host's histograms, if the transaction commits.
  void observe(Metric metric, Duration duration);
  SystemAccess(const SystemAccess&) = delete;
  SystemAccess& operator=(const SystemAccess&) = delete;

 private:
  TransactionState& state_;
  const bool before_;
};

/// What is wrong makes the transaction fail.
template <class T>
T in_txn(Reader& txn, Result<T> result) {
  if (!result) SystemAccess(txn).refuse(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace perdure
