// The part of a store that this process knows, and the server that knows the rest.
//
// All reads are of a view: what was shown when it was opened. What is not known is asked for, and the answer always
// brings along what else has happened, so that the replica moves on; views stay where they are for as long as what they
// show can be told.
#pragma once

#include <memory>
#include <span>
#include <type_traits>

#include "runtime/mutex.h"
#include "store/remote/row_cache.h"
#include "store/remote/server_link.h"

namespace perdure::remote {

/// How far the server was known to be when it was asked. It answers no earlier than that, so an answer that falls short
/// of it is of a server that has lost commits; one that is merely late does not.
struct Asked {
  LogEnd since;
  Version folded;
};

/// Thread-safe. Reads may block for a round trip. kStoreFailed: the server has lost commits that this replica knows of;
/// from then on, for good.
class Replica {
 public:
  Replica(std::unique_ptr<ServerLink> server, std::size_t cache_bytes);
  ~Replica();

  ServerLink& server() { return *server_; }
  Version version() PERDURE_EXCLUDES(mutex_);
  /// A view of what is shown now; each is to be closed.
  Version open_view() PERDURE_EXCLUDES(mutex_);
  void close_view(Version at) PERDURE_EXCLUDES(mutex_);

  /// Reads of a view. kConflict: what it showed is lost.
  Result<std::optional<Versioned>> get(Version at, BytesView key) PERDURE_EXCLUDES(mutex_);
  Result<Version> version_of(Version at, BytesView key) PERDURE_EXCLUDES(mutex_);
  /// Sees to it that these keys and the beginnings of these ranges are known, in one round trip.
  Result<void> fetch(Version at, std::span<const Bytes> keys, std::span<const RangeRead> reads)
      PERDURE_EXCLUDES(mutex_);
  /// Calls `visit(key, row)` for the rows of `range` in order until it returns false, once for each. `visit` must not
  /// use the replica.
  Result<void> scan(Version at, KeyRange range, const RangeOptions& wanted, const RowCache::Visit& visit)
      PERDURE_EXCLUDES(mutex_);

  /// To be taken before a question is sent.
  Result<Asked> about_to_ask() PERDURE_EXCLUDES(mutex_);
  /// Asks for what is new; answers where the log ended some time during this call.
  Result<Version> follow() PERDURE_EXCLUDES(mutex_);
  /// What the server said when it was asked for what came after `asked.since`.
  Result<void> take_in(const Asked& asked, const Moment& moment) PERDURE_EXCLUDES(mutex_);
  /// What this process is about to append; it may come with an answer of the server before it is known to be appended.
  void about_to_append(const LogEntry& entry) PERDURE_EXCLUDES(mutex_);
  /// It was not appended, or nobody knows: what came in its place was of others.
  void not_appended() PERDURE_EXCLUDES(mutex_);
  /// This process has appended this to what was shown.
  void appended(Writes writes, const LogEntry& entry) PERDURE_EXCLUDES(mutex_);

  std::size_t unfolded_bytes() PERDURE_EXCLUDES(mutex_);
  /// Everything that is not folded.
  Fold next_fold() PERDURE_EXCLUDES(mutex_);
  void folded(Version to) PERDURE_EXCLUDES(mutex_);

  void listen(ChangeListener* listener) PERDURE_EXCLUDES(listener_mutex_);

 private:
  /// Calls `use` with what is found, asking the server if need be.
  template <class F>
  Result<std::invoke_result_t<F, const Versioned*>> find(Version at, BytesView key, F use) PERDURE_EXCLUDES(mutex_);
  /// Reads from the server what is asked for, and keeps it.
  Result<void> load(std::span<const Bytes> keys, std::span<const RangeRead> reads) PERDURE_EXCLUDES(mutex_);
  Result<void> keep(Moment& moment, std::span<const Bytes> keys, std::span<const RangeRead> reads)
      PERDURE_REQUIRES(mutex_);

  const std::unique_ptr<ServerLink> server_;
  Mutex mutex_;
  RowCache cache_ PERDURE_GUARDED_BY(mutex_);
  LogEnd appending_ PERDURE_GUARDED_BY(mutex_);
  /// The keys of that entry, if it has come already.
  std::vector<std::uint64_t> withheld_ PERDURE_GUARDED_BY(mutex_);
  /// Why nothing that is known here can be relied on any more.
  std::optional<Error> failure_ PERDURE_GUARDED_BY(mutex_);
  Mutex listener_mutex_;
  ChangeListener* listener_ PERDURE_GUARDED_BY(listener_mutex_) = nullptr;
};

}  // namespace perdure::remote
