// Debouncers: one run for a burst of touches.
//
//     auto debouncers = Debouncers::open(store);
//     debouncers->set("save", {.quiet = 500ms, .max_wait = 5s});
//     debouncers->handle(queue, "save", [](DebounceRun& run) { save(run.key(), run.payload()); });
//     debouncers->touch("save", "document-7", Value("the text"));
//
// The first touch of a key opens its window; later ones go into the same. A window fires when no touch has come for
// `quiet`, but no later than `max_wait` after its first, or with its `max_count`th touch; a fixed window fires so long
// after its first touch, whatever comes meanwhile. What was touched is then run, once, and the next touch opens the
// next window.
//
// Touching, firing and the end of a run are transactions: a touch that was acknowledged is covered by a run that begins
// after it, whatever dies. Of each key no more than one run is under way and one window open: a touch during a run
// opens the window behind it, which fires when that run has ended.
//
// A run is an event of the queue, for the debouncer's worker. So it is claimed by one node at a time with a token that
// fences it, taken over at once when that node is gone, tried again with the debouncer's back-off when it fails, and
// can be paused, looked at and redriven as any event. One that is redriven waits for its turn.
//
// An open window is a few rows and costs no thread and no timer; those that are due are found by a seek.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perdure/cancel.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/queue.h"
#include "perdure/schedule.h"
#include "perdure/store.h"
#include "perdure/time.h"
#include "perdure/value.h"

namespace perdure {

/// When a burst of touches is run.
enum class Edge {
  kTrailing,  ///< At its end.
  kLeading,   ///< With its first touch; the others, until the window ends, are counted and cause no run.
  kBoth,      ///< With its first touch, and at its end if others came.
};
PERDURE_EXPORT std::string_view name_of(Edge edge);

/// What a run gets of the payloads of its touches.
enum class Payload {
  kLast,
  kFirst,
  kAll,    ///< In the order of the touches; a window that can take no more of them fires.
  kMerge,  ///< Merged one into the other: as RFC 7396 has it, or by a function, see Debouncers::merge_by.
};
PERDURE_EXPORT std::string_view name_of(Payload payload);

struct DebounceSettings {
  /// Without a touch for so long, the window fires.
  Duration quiet = std::chrono::seconds(2);
  /// But no later than so long after its first touch. At least `quiet`.
  std::optional<Duration> max_wait = {};
  /// A fixed window, in the place of the two.
  std::optional<Duration> window = {};
  /// With so many touches it fires at once; 0 for no such bound.
  std::uint64_t max_count = 0;
  Edge edge = Edge::kTrailing;
  Payload payload = Payload::kLast;
  /// Whose events the runs are; by default, the worker with the name of the debouncer.
  std::string worker = {};
  /// Of runs that fail. What was touched meanwhile waits for the end of it.
  RetryPolicy back_off = {.delay = std::chrono::seconds(1),
                          .factor = 2,
                          .max_delay = std::chrono::minutes(5),
                          .jitter = std::chrono::milliseconds(250),
                          .max = 1'000'000};
  bool operator==(const DebounceSettings&) const = default;
};

/// The payload of a touch, encoded. Lists and maps in it may be 62 deep.
inline constexpr std::size_t kPayloadBytesMax = 1 << 20;
/// Payloads with which a window with Payload::kAll fires, and bytes of them; no single one has more bytes than that.
inline constexpr std::uint64_t kPayloadsMax = 1'000;
inline constexpr std::size_t kAllPayloadBytes = 450'000;

struct DebouncerInfo {
  std::string space;
  std::string name;
  DebounceSettings settings;
  std::optional<SchedulePause> paused;
};

/// An open window.
struct Window {
  WallTime first;   ///< When it was opened.
  WallTime latest;  ///< Its last touch.
  std::uint64_t count = 0;
  /// When it fires if no other touch comes; behind a run that is under way, not before that has ended.
  WallTime fires_at;
};

enum class KeyStatus {
  kIdle,     ///< Nothing is to be done: also a key that was never touched.
  kWaiting,  ///< A window is open, or has fired and waits for a node to take it.
  kRunning,  ///< A node runs it.
};
PERDURE_EXPORT std::string_view name_of(KeyStatus status);

struct DebounceKey {
  std::string key;
  KeyStatus status = KeyStatus::kIdle;
  /// The window that is open; while the key is running, the one behind that run.
  std::optional<Window> window = {};
  /// The event that its last window became, until that has ended.
  std::optional<Uuid> event = {};
  /// Who runs it, by what token, and since when.
  std::optional<SessionId> owner = {};
  std::optional<Token> token = {};
  std::optional<WallTime> since = {};
};

/// One run, as its handler sees it. Used by one thread at a time.
class PERDURE_EXPORT DebounceRun {
 public:
  const std::string& debouncer() const { return debouncer_; }
  const std::string& key() const { return key_; }
  /// The payload that the debouncer's policy picked; null for Payload::kAll, whose are in payloads().
  const Value& payload() const { return payload_; }
  const std::vector<Value>& payloads() const { return payloads_; }
  /// Touches that it stands for, and when the first and the last of them came.
  std::uint64_t count() const { return count_; }
  WallTime first() const { return first_; }
  WallTime latest() const { return latest_; }

  /// The proof that this run is the one of its key; larger for each run than for all before.
  const Token& token() const { return job_->token(); }
  /// Given when the run has lost its right to go on; see Job::cancel_signal.
  const CancelSignal& cancel_signal() const { return job_->cancel_signal(); }
  /// 1 the first time.
  int attempt() const { return job_->attempt(); }
  /// Has `body` run in the transaction that ends the run: what it writes is committed exactly once, if this run is
  /// still the one of its key, or not at all. It may be run again, without the handler.
  void complete(std::function<Result<void>(Transaction&)> body) { job_->complete(std::move(body)); }
  /// If it fails: when to try again, in the place of the back-off.
  void retry_in(Duration delay) { job_->retry_in(delay); }

  /// What an event of a debouncer's worker stands for; for handlers that were given to Queue::work.
  /// Errors: kInvalidArgument if it is none of a debouncer's.
  [[nodiscard]] static Result<DebounceRun> of(Job& job);

 private:
  DebounceRun() = default;
  Job* job_ = nullptr;
  std::string debouncer_;
  std::string key_;
  Value payload_;
  std::vector<Value> payloads_;
  std::uint64_t count_ = 0;
  WallTime first_;
  WallTime latest_;
};

using RunHandler = std::function<Result<Value>(DebounceRun&)>;

/// How one node runs a debouncer.
struct RunOptions {
  /// Runs at once on this node, of different keys.
  unsigned concurrency = 4;
  /// For one run. One that is over it is told so by its cancel signal, has no effect any more, and is tried again.
  Duration timeout = Duration::max();
  /// Asked first, outside of any transaction: whether there is anything to do for the key. If not, the run ends without
  /// its handler.
  std::function<Result<bool>(std::string_view key)> pending = {};
};

/// The debouncing of a worker that collects what happens until it has been quiet for a moment: a marker with the first
/// and the latest event, one process at a time behind a lock, and a look at the marker before and after.
struct MarkerPreset {
  DebounceSettings settings;
  RunOptions run;
};
/// `debounce` from nothing to a day: a fixed window of that length. A run may last for 30 times of that, and at least
/// for `kMarkerLockMin`; its lock is the claim of a session, which is free at once when the process is gone.
/// Errors: kInvalidArgument.
PERDURE_EXPORT Result<MarkerPreset> marker_preset(Duration debounce = std::chrono::seconds(2));
/// The same from the text of DEBOUNCE_SECONDS: a number of seconds, which may have a fraction; empty for the default.
PERDURE_EXPORT Result<MarkerPreset> marker_preset(std::string_view debounce_seconds);
inline constexpr Duration kMarkerLockMin = std::chrono::seconds(30);

struct DebouncersOptions {
  std::string space = "default";
  /// Off: this node touches and looks, and leaves it to others to fire windows, until `release`. If its clock is ahead
  /// of all of theirs, what it touches fires as much later.
  bool fire = true;
};

class DebouncersImpl;

/// The share of this process in the debouncers of a store. Copies share it; thread-safe. It keeps the store open. While
/// there is one, this node fires windows that are due, those of all spaces.
///
/// Names of spaces, debouncers and workers: 1 to 64 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit. Keys: 1
/// to 200 bytes of UTF-8 without control characters.
///
/// Calls that take a Transaction or Reader are parts of it, and act when it commits; what they find wrong makes it
/// fail. The others are transactions of their own, and block: they are refused with kInvalidArgument in callbacks of
/// the store. With `_async`, `done` is called once instead, on one of the store's threads.
class PERDURE_EXPORT Debouncers {
 public:
  /// Asks the store nothing, and so never blocks. Errors: kInvalidArgument (the options), kClosed.
  [[nodiscard]] static Result<Debouncers> open(Store store, DebouncersOptions options = {});

  /// The same node in another space.
  [[nodiscard]] Debouncers in(std::string space) const;
  const std::string& space() const { return space_; }

  /// Makes or replaces a debouncer. Windows that are open come up for firing when they would have, and are then judged
  /// by the new settings.
  /// Errors: kInvalidArgument, with the setting that cannot be.
  Result<void> set(std::string_view name, DebounceSettings settings = {});
  void set(Transaction& txn, std::string_view name, DebounceSettings settings = {});
  /// Errors: kNotFound.
  [[nodiscard]] Result<DebouncerInfo> get(std::string_view name);
  [[nodiscard]] Result<DebouncerInfo> get(Reader& reader, std::string_view name) const;
  /// By name, at most 1,000 at once.
  [[nodiscard]] Result<std::vector<DebouncerInfo>> list(const PageOptions& page = {});
  [[nodiscard]] Result<std::vector<DebouncerInfo>> list(Reader& reader, const PageOptions& page = {}) const;
  /// With all its open windows. Runs that have begun come to their end. Errors: kNotFound.
  Result<void> remove(std::string_view name);

  /// Something has happened to `key`: once this returns, a run that begins after it will see it. Touches of one key
  /// that come at once are combined to one transaction. Errors: kNotFound if there is no such debouncer;
  /// kInvalidArgument; kTooLarge; kLimitExceeded if the window has as many payloads as it can and cannot fire, because
  /// a run is under way; and those of a transaction. Crash: touched or not; touching again does no harm but to the
  /// count.
  Result<Window> touch(std::string_view name, std::string_view key, Value payload = {});
  void touch_async(std::string_view name, std::string_view key, Value payload,
                   std::move_only_function<void(Result<Window>)> done);
  /// The count that it answers may leave out touches that commit at the same time.
  Window touch(Transaction& txn, std::string_view name, std::string_view key, Value payload = {});
  /// Closes the window of a key without a run; whether there was one. What has fired already is an event of the queue.
  Result<bool> cancel(std::string_view name, std::string_view key);
  bool cancel(Transaction& txn, std::string_view name, std::string_view key);

  /// How a key stands. Errors: kNotFound if there is no such debouncer.
  [[nodiscard]] Result<DebounceKey> key(std::string_view name, std::string_view key);
  [[nodiscard]] Result<DebounceKey> key(Reader& reader, std::string_view name, std::string_view key) const;
  /// The keys that are not idle, by name, at most 1,000 at once.
  [[nodiscard]] Result<std::vector<DebounceKey>> keys(std::string_view name, const PageOptions& page = {});
  [[nodiscard]] Result<std::vector<DebounceKey>> keys(Reader& reader, std::string_view name,
                                                      const PageOptions& page = {}) const;

  /// Holds the firing: touches are taken, windows wait. Pausing again changes nothing. Errors: kNotFound.
  Result<void> pause(std::string_view name, const PauseOptions& why = {});
  void pause(Transaction& txn, std::string_view name, const PauseOptions& why = {});
  /// What has fallen due meanwhile fires now. Errors: kNotFound.
  Result<void> unpause(std::string_view name);
  void unpause(Transaction& txn, std::string_view name);

  /// Runs the debouncer in this process from now on, as a worker of `queue`. The handler takes a DebounceRun&, and
  /// returns nothing, a Value, or a Result of these; Queue::work says what else holds for it. The worker is the one
  /// that the debouncer has now. Blocks. Errors: kNotFound; kInvalidArgument for the options; kClosed.
  template <class F>
  [[nodiscard]] Result<void> handle(Queue& queue, std::string_view name, F handler, RunOptions options = {}) {
    return handle_with(queue, name, make_handler(std::move(handler)), std::move(options));
  }
  /// The same for a worker that is known, without a look at the store.
  [[nodiscard]] static Result<void> work(Queue& queue, std::string_view worker, RunHandler handler,
                                         RunOptions options = {});

  /// What Payload::kMerge does on this node, in the place of RFC 7396: the payload so far, and the one of a touch. Give
  /// every node that touches the same. It runs inside of commits, perhaps several times: quick, and without effects.
  using Merge = std::function<Value(Value so_far, Value next)>;
  void merge_by(std::string_view name, Merge merge);

  /// This node fires nothing any more, and again from `release` on. Neither blocks.
  void hold();
  void release();

 private:
  friend class DebouncersImpl;
  friend struct PartAccess;
  Debouncers(std::shared_ptr<DebouncersImpl> impl, std::string space)
      : impl_(std::move(impl)), space_(std::move(space)) {}
  Result<void> handle_with(Queue& queue, std::string_view name, RunHandler handler, RunOptions options);
  template <class F>
  static RunHandler make_handler(F handler) {
    using R = std::invoke_result_t<const F&, DebounceRun&>;
    return [handler = std::move(handler)](DebounceRun& run) -> Result<Value> {
      if constexpr (std::is_void_v<R>) {
        handler(run);
        return Value();
      } else if constexpr (std::is_same_v<R, Result<void>>) {
        if (auto result = handler(run); !result) return std::unexpected(std::move(result.error()));
        return Value();
      } else {
        return handler(run);
      }
    };
  }

  std::shared_ptr<DebouncersImpl> impl_;
  std::string space_;
};

}  // namespace perdure
