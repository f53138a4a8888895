// Windows: how they are touched, when they fire, and what becomes of them.
//
//     touch        opens a window, or goes into the one that is open
//     come_up      what the timetable has fallen due: fires, is filed for a later time, is held, or goes behind a run
//     run_again    a run that was redriven: as an event anew, or parked until the run that is under way has ended
//     run_ended    lets the parked run follow, or brings back the window behind
//
// Touches never fire: they file what is to fire at once as due now, and so stay small, and can be part of any
// transaction. All of these need system access.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "debounce/rows.h"

namespace perdure::debounce {

/// Payload::kMerge: of two encoded Values, the encoded one that they make. Errors: kInvalidArgument.
using MergeBytes = std::function<Result<Bytes>(BytesView so_far, BytesView next)>;

/// A window that keeps all payloads is full with so many bytes of them; each counts for a little more than it has.
inline constexpr std::size_t kPayloadBytesFull = kAllPayloadBytes;
inline constexpr std::size_t kPayloadOverhead = kPayloadBytesFull / kPayloadsMax;

/// One or several touches of a key, made at once: their payloads, encoded, in their order.
/// Errors of the transaction: kNotFound, kTooLarge, kLimitExceeded, kInvalidArgument.
Window touch(Transaction& txn, const Place& place, std::span<const Bytes> payloads, const MergeBytes& merge,
             WallTime now);

/// Closes it without a run; whether there was one.
bool cancel(Transaction& txn, const Place& place, WallTime now);

/// What a turn does with one window.
enum class CameUp {
  kNothing,  ///< There is no such window, or no such debouncer any more.
  kLater,    ///< It is filed for its due time.
  kAside,    ///< It is held, or behind a run.
  kClosed,   ///< It ended without a run.
  kDamaged,  ///< It cannot be read, so there is no run: the next touch opens another, with what is left of it.
  kFired,
};
struct Outcome {
  CameUp what = CameUp::kNothing;
  /// When it comes up next.
  std::optional<DueTime> next = {};
  /// Of the event.
  std::size_t bytes = 0;
};
/// `filed` is where the timetable has it, if it does. `fresh` is the id of the event if it fires.
Outcome come_up(Transaction& txn, const Place& place, const std::optional<DueTime>& filed, const Uuid& fresh,
                WallTime now);

/// The run `id` of the key has ended.
Outcome run_ended(Transaction& txn, const Place& place, const Uuid& id, const Uuid& fresh, WallTime now);
/// `run` is the value of one that is to be run again; it was encoded for an event before.
Outcome run_again(Transaction& txn, const Place& place, const Uuid& id, BytesView run, const Uuid& fresh, WallTime now);

/// Whether the key has neither a window nor a run, by there being no rows of them: what is in them is not looked at, so
/// this fails for no damage.
bool is_idle(Reader& reader, const Place& place);
/// The window that is open, as it is shown; nothing if there is none.
std::optional<Window> look_at(Reader& reader, const Place& place, const DebounceSettings& settings);

}  // namespace perdure::debounce
