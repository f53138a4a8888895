// Many reads of one moment, however many there are and however long their answers.
//
// etcd takes a bounded number of operations in a Txn, and an answer is one message, in memory and within one deadline.
// It can be asked for so many rows, but not for so many bytes. So reads go out in as many Txns as they need, ranges
// page by page, all but the first at the revision that the first has found; and each asks for as many rows as will make
// an answer of a few megabytes, going by those that were seen. Of rows that were not, the first Txn asks for few enough
// that they may be large, and no Txn for many more than the one before.
//
// A network may be too slow even for that. Then the next read asks for less: otherwise it would fail for ever.
#pragma once

#include <functional>
#include <vector>

#include "perdure/error.h"
#include "perdure/time.h"
#include "runtime/mutex.h"
#include "store/etcd/etcd_ops.h"

namespace perdure::etcd {

/// How large rows are taken to be at least, which bounds how many are asked for at once. Thread-safe.
class Pace {
 public:
  /// A read that fails after so long had an answer on its way that was too long, perhaps; one that fails sooner was
  /// refused, or found nobody.
  explicit Pace(Duration late_after = std::chrono::milliseconds(500)) : late_after_(late_after) {}

  std::size_t row_bytes_min() PERDURE_EXCLUDES(mutex_);
  /// A read with rows of `row_bytes_min` has failed after `took`. For a while, others are more modest.
  void failed(std::size_t row_bytes_min, Duration took) PERDURE_EXCLUDES(mutex_);

 private:
  const Duration late_after_;
  Mutex mutex_;
  std::size_t row_bytes_min_ PERDURE_GUARDED_BY(mutex_) = 0;
  SteadyTime slow_until_ PERDURE_GUARDED_BY(mutex_) = {};
};

/// Client::read, or what a test has in its place.
using Ask = std::function<Result<TxnAnswer>(const Txn&)>;

/// The answers are whole: as many rows as there are, up to the limit. A revision in `reads` is of no effect.
/// Errors: those of `ask`; kUnavailable also if etcd was compacted again and again meanwhile.
Result<std::vector<RangeAnswer>> read_at_once(const Ask& ask, Pace& pace, const std::vector<Range>& reads);

}  // namespace perdure::etcd
