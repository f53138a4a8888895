// The tick debouncer: of any number of processes that follow a key, one at a time leads it, and at each tick of its
// window asks whether there is something to do. If so, it does that once, gives the key back, and all compete again.
//
//     auto leader = store_leadership(store);
//     auto tick = Tick::open(store, *leader, {.window = 5s}, {.pending = has_changes, .run = update_values});
//     tick->follow("workspace.change_set");
//
// What there is to do is read from your own data by `pending`, never from the key: changes that come during a run stay
// pending for the next. The window is a tick from the beginning of the leadership, and changes do not put it off.
//
// A leader can be wrong about being one: it was paused, or its keep-alive was slow. So each run has a token, larger
// than all before it, and what a run writes by TickRun::complete commits only if no later run of the key has begun,
// exactly once. Who loses the key in the middle of a run is told by the cancel signal, and writes nothing more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/cancel.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/leadership.h"
#include "perdure/lease.h"
#include "perdure/store.h"
#include "perdure/time.h"

namespace perdure {

/// Where a followed key is in this process. docs/internals/leadership.md has the table.
enum class TickState {
  kWaiting,          ///< Another leads, or nobody yet: watches the key.
  kAttempting,       ///< The key is gone: tries to create it.
  kLeaderWaiting,    ///< Leads: waits for one window.
  kCheckingPending,  ///< Leads: `pending` is asked.
  kSettingRunning,   ///< Leads: writes the status "running", and takes the token of the run.
  kRunning,          ///< Leads: `run` runs, or its end is being committed.
  kDeleting,         ///< Leads: gives the key back.
  kDraining,         ///< Lost the key in a run: waits for the handler to return, and writes nothing.
  kRestarting,       ///< After an error: waits a little before it begins anew.
  kStopped,          ///< Not followed any more. Final.
};

/// "waiting", "leader_waiting" and so on.
PERDURE_EXPORT std::string_view name_of(TickState state);

/// What `pending` answers.
enum class Pending {
  kNothing,  ///< Stay leader, and ask again after another window.
  kWork,     ///< Run.
  kClosed,   ///< There is nothing, and never will be: give the key back, and follow it no more.
};

class TickRunState;

/// One run, as its handler sees it. Valid until the handler returns, but for copies of the token and the signal.
class PERDURE_EXPORT TickRun {
 public:
  const std::string& key() const;
  /// Larger than those of all runs of this key before.
  const Token& token() const;
  /// Given when the key is lost, and when the run timeout or the grace of a shutdown is over.
  const CancelSignal& cancel_signal() const;

  /// Has `body` run in the transaction that ends the run, after the handler has returned: what it writes is committed
  /// exactly once, or not at all if a later run has begun. It may be run again, without the handler.
  void complete(std::function<Result<void>(Transaction&)> body);
  /// For transactions in the middle of the run: lets `txn` commit only if no later run of the key has begun and this
  /// one has not ended; otherwise leaves the body, and the transaction fails with kStaleToken.
  void fence(Transaction& txn) const;

 private:
  friend class TickRunState;
  explicit TickRun(TickRunState& state) : state_(&state) {}
  TickRunState* state_;
};

struct TickOptions {
  /// Ticks of different names have nothing to do with each other, if their leaderships have not: 1 to 64 of
  /// A-Za-z0-9._:-
  std::string name = "default";
  Duration window = std::chrono::seconds(5);
  /// How often the leader updates the key: half of the leadership's max_age by default; less than all of it.
  std::optional<Duration> keepalive = {};
  /// How often waiters look whether the key is there at all: 1.5 times the max_age by default.
  std::optional<Duration> missing_check = {};
  /// A run that takes longer is given up: its handler is told, the key is given back, and what was pending stays so.
  Duration run_timeout = Duration::max();
  /// The pauses before a key is followed anew after an error grow from the first to the second.
  Duration restart_min = std::chrono::milliseconds(100);
  Duration restart_max = std::chrono::seconds(30);
  /// How many handlers may run at once, of all keys; from 1 to 10000.
  unsigned concurrency = 16;
};

/// How a run ended.
struct TickEnd {
  std::string key;
  Token token;
  /// kStaleToken if the key was lost, or a later run had begun: nothing was committed. An error whose outcome is
  /// unknown if the key was lost while nobody could say whether the end had been committed.
  Result<void> result;
};

/// Called on threads of their own, where they may block; what they throw becomes kHandlerFailed.
struct TickHandlers {
  /// Errors are logged, and asked again after another window.
  std::function<Result<Pending>(const std::string& key)> pending;
  /// An error ends the run without effect: the key is given back, and what was pending is run again.
  std::function<Result<void>(TickRun& run)> run;
  /// May be left out.
  std::function<void(const TickEnd& end)> ended = {};
};

struct TickInfo {
  std::string key;
  TickState state = TickState::kWaiting;
  /// How often it was begun anew after an error.
  std::uint64_t restarted_count = 0;
  /// Runs of this process that committed, and that did not.
  std::uint64_t runs = 0;
  std::uint64_t failed_runs = 0;
  /// Who owns the key; nothing if nobody does, or that was not asked.
  std::optional<LeadershipView> leader = {};
};

class TickImpl;

/// Copies share it. Thread-safe. It keeps the store and the leadership. Dropping the last copy without `stop` stops it
/// as well, and waits for the handlers that are running where that may block. The blocking calls are refused with
/// kInvalidArgument in callbacks of the store, which they would wait for.
class PERDURE_EXPORT Tick {
 public:
  /// Errors: kInvalidArgument, with the setting that cannot be; kClosed.
  [[nodiscard]] static Result<Tick> open(Store store, std::shared_ptr<Leadership> leadership, TickOptions options,
                                         TickHandlers handlers);

  /// Competes for `key` from now on. Following it again is fine.
  /// Errors: kInvalidArgument (the key), kClosed.
  /// Crash: another that follows it takes over.
  [[nodiscard]] Result<void> follow(const std::string& key);
  /// Does not compete any more. A run is waited for, and the key given back; then `done` is called, on one of the
  /// store's threads, in this very call if it is not followed.
  void unfollow(const std::string& key, std::move_only_function<void()> done = {});
  std::vector<std::string> followed() const;

  /// What this process knows of a key; nothing if it does not follow it.
  std::optional<TickInfo> info(const std::string& key) const;
  /// The same with its owner. Blocks.
  /// Errors: kNotFound if it is not followed, and those of Leadership::look.
  [[nodiscard]] Result<TickInfo> inspect(const std::string& key) const;
  void inspect_async(const std::string& key, std::move_only_function<void(Result<TickInfo>)> done) const;

  /// Follows nothing any more: gives idle keys back at once, and the others when their runs have ended. Blocks.
  /// Errors: kDeadline if a handler was still running when `grace` was over: it has been told, and its key ages out.
  [[nodiscard]] Result<void> stop(Duration grace = std::chrono::seconds(30));
  void stop_async(Duration grace, std::move_only_function<void(Result<void>)> done);

 private:
  friend class TickImpl;
  explicit Tick(std::shared_ptr<TickImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<TickImpl> impl_;
};

}  // namespace perdure
