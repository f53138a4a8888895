// What a remote engine asks of the server that keeps its rows.
//
// The server has three things: a log of batches, rows, and a little about both. To commit is to append a batch to the
// log, on the one condition that the log still ends where the writer believes it ends: that is the only compare, it
// fences everything, and it costs one round trip however many rows the batch has. The rows follow behind: now and then
// somebody folds what the log says into them and trims the log. So a row that came and went in between, as most of a
// queue's do, is never written at all, and no limit on the operations of one request is in the way.
//
// Whoever reads gets one moment of the server: its rows, and the part of the log that they do not know of yet. What is
// in the log goes before what is in the rows.
//
// Batches are opaque here (remote/batch.h) but for their last bytes, which entries are told apart by. So are keys and
// values: bytes, keys ordered as unsigned bytes. Values carry checksums of the engine's own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/endian.h"
#include "perdure/log.h"
#include "perdure/transaction.h"
#include "store/engine.h"

namespace perdure::remote {

struct LogEntry {
  Version version;  ///< Of its last transaction: where the log ends with it.
  Bytes batch;
};

/// What an entry is known by to the one after it: the last bytes of its batch, which are the checksum of the rest.
using Link = std::uint64_t;
inline Link link_of(BytesView batch) {
  return batch.size() < sizeof(Link) ? 0 : load_little<Link>(batch.data() + batch.size() - sizeof(Link));
}

/// A place where the log ends, or did so once. A server that lost commits, and was written to since, may have come to
/// the same version again; its link is another one then.
struct LogEnd {
  Version version;
  Link link = 0;  ///< Of the entry with that version; 0 in a new store.
  bool operator==(const LogEnd&) const = default;
};

/// The server at one moment: all of it is of one snapshot, which is not older than the call that asked for it.
struct Moment {
  LogEnd end;       ///< Of the newest commit, 0 in a new store.
  Version folded;   ///< The rows know of every entry up to here, and perhaps of newer ones.
  Version trimmed;  ///< Entries up to here are gone; never above `folded`.
  /// The entries after `since` in their order; if `since` is below `trimmed`, those after `folded`.
  std::vector<LogEntry> log;
  std::vector<std::optional<Versioned>> values;  ///< One for each key that was asked for.
  std::vector<std::vector<Row>> ranges;          ///< One for each range.
};

struct Appended {
  bool done = false;
  /// If it was not: what is there instead, after the version that was expected, if the server can tell that in the same
  /// round trip. Without it, ask.
  std::optional<Moment> instead = {};
};

/// A row as the log has left it; nothing if it was erased.
struct FoldedRow {
  Bytes key;
  std::optional<Versioned> row;
};

struct Fold {
  Version from;  ///< What `folded` must still be.
  LogEnd to;     ///< What it becomes, and of which entry that is: the log must have it, or `from` be the same.
  Version trim;  ///< What `trimmed` becomes, at most `from`.
  std::vector<FoldedRow> rows;
};

/// What a bell says.
struct Ring {
  Version reached = {};      ///< Where the log was seen to end; 0 after anything may have been missed.
  bool turn_wanted = false;  ///< Somebody else asks for a turn (turns.h). Nothing is said of the log then.
};
using Bell = std::function<void(Ring)>;

struct ServerLimits {
  std::string name;                              ///< "postgres", "etcd": for messages.
  std::size_t entry_bytes_max = 64 << 20;        ///< Of one batch in the log.
  std::size_t transaction_bytes_max = 10 << 20;  ///< What perdure promises to its users of it.
  std::size_t clear_range_rows_max = 10'000;
  /// See Capabilities::what_is_read_lasts.
  bool what_is_read_lasts = true;
};

/// How a server is reached and what it may say meanwhile.
struct ServerOptions {
  std::string url;
  LogSink log = {};
};

/// Thread-safe, but for what each call says. Calls block, though never for long on a server that is silent (a few
/// seconds), and not at all on one that was found away a moment ago: they fail with kUnavailable, and a later call
/// connects again. Connections are made again by themselves; going away and coming back is told to the log once.
///
/// Errors of every call: kUnavailable (no effect; try again), kPermissionDenied, kCorrupt, kUnsupportedFormat,
/// kInvalidArgument, each with what to do about it.
class RowServer {
 public:
  virtual ~RowServer() = default;
  virtual const ServerLimits& limits() const = 0;

  /// Linearizable: it sees every commit that was acknowledged, to anybody, before the call. Any thread.
  virtual Result<Moment> read(Version since, std::span<const Bytes> keys, std::span<const RangeRead> ranges) = 0;

  /// Appends `entry`, durably, if the log ends at `expected`. One call at a time.
  /// Errors: kCommitUnknown if it may have been appended or may still be (a connection lost after it was sent);
  /// kStoreFull; kTooLarge.
  virtual Result<Appended> append(const LogEnd& expected, const LogEntry& entry) = 0;

  /// Writes the rows, moves `folded` and `trimmed`, and drops the trimmed entries; true if this call did it, false if
  /// somebody else has folded meanwhile or is about to, or the log has no such entry.
  /// Readers never see a moment in which log and rows together are not the whole. One call at a time, beside `append`.
  /// Crash: rows may have been written in part; that harms nobody, since the log still has all of them.
  virtual Result<bool> fold(const Fold& fold) = 0;

  /// Asks all others for a turn: their bells ring. They may miss it. One call at a time, and none beside `append`.
  virtual void ask_for_turn() = 0;

  /// Rings when the log was seen to end at a version, soon after each append of anybody, with 0 after anything may
  /// have been missed, and when others ask for a turn. Replaces an earlier bell; an empty one silences it and waits for
  /// one that is ringing. The bell does not block.
  virtual void listen(Bell bell) = 0;
};

/// How a server is opened (remote/server_library.h). Makes what is missing there. Errors: as above, at once and
/// clearly, for a server that is down, too old, not writable, of a newer perdure, or refuses us.
using OpenServer = void(const ServerOptions& options, Result<std::unique_ptr<RowServer>>& opened);

}  // namespace perdure::remote
