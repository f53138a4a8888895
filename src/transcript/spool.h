// The spool: where hook events wait while no daemon takes them.
//
// It is a file that hooks append to, each a line of JSON with a final newline:
//
//   {"at":"2026-01-31T08:15:00.250Z","hook":"{\"session_id\":...}","id":"9f1c...","space":"default"}
//
// `hook` is what the hook was given, as text; what is not UTF-8 is {"$bytes":"<base64>"} instead, so that no byte of it
// changes. `id` is the Idempotency-Key of the request that was tried first: its answer may have been lost, not its
// effect.
//
// A line is written under flock(2) by one write, and a daemon moves the file away under the same lock. So nobody writes
// to a file that was moved, and a daemon may take the spool at any time, not only when it starts.
//
// What was moved has a number, higher than those of all that are left, and whoever takes it has it locked, by fcntl(2).
// So several daemons may take one spool, and each line is taken behind those that were written before it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "perdure/error.h"
#include "perdure/time.h"

namespace perdure::transcript {

struct Spooled {
  std::string id;     ///< A uuid.
  std::string space;  ///< As it was typed: whether that is a name is for the daemon to say.
  std::string hook;   ///< Any bytes.
  WallTime at;        ///< Cut to milliseconds.
};

/// The name of the file in the directory of a store, and the most that it grows to. As much again may wait in files
/// that were moved.
inline constexpr const char* kSpoolName = "hooks.spool";
inline constexpr std::uint64_t kSpoolBytesMax = std::uint64_t{1} << 30;

/// Adds a line to the file `path`, which is made with mode 0600. Blocks while another process writes or moves it. Any
/// number of processes and threads may do so at once.
/// Errors: kStoreFull if the disk is, or the file would have more than kSpoolBytesMax; kUnavailable, also if `path` is
/// no file, or somebody else's. No line then.
/// Crash: there is no line, or a part of one that readers skip. Nothing is synced: a power cut may lose the last lines.
Result<void> append_to_spool(const std::string& path, const Spooled& spooled);

struct SpoolReport {
  std::uint64_t taken = 0, unreadable = 0;
  /// Names that a spool would have, but of something that is no file, or is somebody else's. It stays as it is.
  std::vector<std::string> refused = {};
};

/// Gets hooks in the order in which they were spooled, and answers once they are durable. The same ones may come again
/// after a crash or an error, or from another daemon at the same time: it must take each id once. What it would refuse
/// for good it has to pass over, or all that follows waits behind it.
using TakeSpooled = std::function<Result<void>(std::span<const Spooled>)>;

/// Takes over what hooks left in `path` while no daemon listened: moves the file aside under its lock, hands over what
/// is in it in batches of up to 100, and deletes it once all of them were taken. What a daemon that died in between has
/// left (files `path`.taking.N) comes first. What another one is taking right now, and all behind it, waits for the
/// next time, and so does a file that a hook is writing to. Lines that cannot be read are counted and skipped, a
/// half-written last line too. Blocks. Errors: of `take` (the file stays for the next time), kUnavailable. Crash: the
/// file stays, and is handed over again from its beginning.
Result<SpoolReport> take_spool(const std::string& path, const TakeSpooled& take);

}  // namespace perdure::transcript
