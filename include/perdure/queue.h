// The event queue.
//
// Events are emitted to a worker and run by its handler, on any node that has one, soon, later or again:
//
//     auto queue = Queue::open(store);
//     queue->work("mail", [](Job& job) { send(job.value()); });
//     queue->emit("mail", Value::Map{{"to", "ann"}});
//
// Everything about an event is one row of the store and an entry in an index, written in one transaction. So an event
// that was emitted is there, whatever dies; emitting in a transaction of yours happens if that commits; and counts are
// those of the rows. Work is found by a seek and announced by a watch: nothing polls, and nothing is scanned.
//
// What becomes of an event:
//   - its handler returns: it is completed, and never runs again, whatever the value it returned;
//   - its handler throws or returns an error: it is tried again as its retry policy says, by default five minutes later
//     and at most twice, then becomes a dead letter with the error, or is dropped if the policy says so;
//   - its process dies, or loses its session: it is run again by another, and its first claim can change nothing any
//     more. That is counted apart, and has a limit of its own: WorkerSettings::losses_max;
//   - nobody serves its worker, or its worker is paused or blocked: it waits.
//
// So a handler runs at least once, and may run twice if its process is lost in the middle. What it writes to the store
// by Job::complete happens exactly once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perdure/cancel.h"
#include "perdure/describe.h"
#include "perdure/error.h"
#include "perdure/event.h"
#include "perdure/export.h"
#include "perdure/session.h"
#include "perdure/store.h"

namespace perdure {

class QueueImpl;
class JobState;

/// One attempt at an event, as its handler sees it. Used by one thread at a time.
class PERDURE_EXPORT Job {
 public:
  const Event& event() const;
  const Uuid& id() const { return event().id; }
  const Value& value() const { return event().value; }
  /// The value as a struct that was described. Errors: kInvalidArgument, which is a good answer of the handler.
  template <class T>
  [[nodiscard]] Result<T> value_as() const {
    return from_value<T>(value(), UnknownFields::kIgnore);
  }
  /// 1 the first time. Attempts that were lost count here, and not against the retry policy.
  int attempt() const { return event().attempts; }
  /// The proof of the claim: fences what is done elsewhere in the name of this attempt.
  const Token& token() const;
  /// Given when the claim is lost or cancelled, when the timeout of the worker is over, and when the grace of a
  /// shutdown is.
  const CancelSignal& cancel_signal() const;

  /// Has `body` run in the transaction that completes the event, after the handler has returned: what it writes is
  /// committed exactly once, together with the completion, or not at all. It may be run again, without the handler.
  /// Bodies run in the order of the calls. An error of one, or what it throws, fails the attempt.
  void complete(std::function<Result<void>(Transaction&)> body);

  /// If this attempt fails: when to try again, in the place of the policy's delay, or that it is not worth it.
  void retry_in(Duration delay);
  void give_up();

 private:
  friend class JobState;
  friend class QueueImpl;
  explicit Job(JobState& state) : state_(&state) {}
  JobState* state_;
};

using Handler = std::function<Result<Value>(Job&)>;

/// How one node serves a worker.
struct WorkOptions {
  /// Handlers of this worker at once, on this node. Each that blocks has a thread of its own.
  unsigned concurrency = 4;
  /// For one attempt. One that is over it fails, and its cancel signal is given; what the handler still does has no
  /// effect on the event. There is none by default.
  Duration timeout = Duration::max();
  /// For events without a policy of their own, in the place of the worker's setting.
  std::optional<RetryPolicy> retry = {};
};

struct QueueOptions {
  std::string space = "default";
  /// The presence of this node: what it has claimed is free when it ends. Opened anew if it is lost.
  SessionOptions session = {};
  /// Off: this node emits and claims by hand, but neither runs handlers nor promotes what falls due.
  bool dispatch = true;
  /// Opened as if by Queue::hold: nothing is claimed until Queue::release.
  bool held = false;
};

/// An event that was claimed by hand. `event.token` and `event.locked_until` are there.
using Claimed = Event;

struct ClaimOptions {
  /// From 1 to 1,000; fewer are claimed if their values are large.
  std::size_t max = 10;
  /// How long to wait until there is something.
  Duration wait = Duration::zero();
  /// How long the claim lasts without Queue::extend.
  Duration lock = std::chrono::seconds(30);
  /// Given: whoever asked is gone. A claim that waits is answered at once, with nothing, and claims nothing any more.
  /// One whose commit is under way just then may still be answered with events, which are claimed.
  CancelSignal cancel = {};
  /// Runs in the transaction that claims, once for each time that its body runs and finds something; so it is short,
  /// waits for nothing and has no effects but its writes. What it refuses, or throws, fails the claim.
  ///
  /// The tokens get their version with the commit: here they have the version 0 and their order. A row that this writes
  /// with set_stamped has that version in its stamp, so that whoever reads it later knows each token as it was
  /// answered: {the version of that stamp, the order of the token}.
  std::function<void(Transaction&, const std::vector<Claimed>&)> also = {};
};

struct FailOptions {
  /// When to try again, in the place of the policy's delay. How often is still the policy's.
  std::optional<Duration> retry_in = {};
  /// Not to be tried again.
  bool give_up = false;
};

struct RedriveOptions {
  /// Which of the dead; all of them if there is none.
  std::vector<Uuid> ids = {};
  /// Spread over time; without it, all at once.
  std::optional<Rate> rate = {};
};

/// What a node works on, for people and for tests.
struct QueueActivity {
  std::size_t running = 0;   ///< Handlers that have been started and have not returned.
  std::size_t settling = 0;  ///< Outcomes that are not durable yet.
};

/// The share of this process in the queues of a store. Copies share it; thread-safe. It keeps the store open. When the
/// last copy is gone, handlers that run are waited for; `close` does the same with a bound. A handler that has a copy
/// of its own keeps it from ever being the last: give it a reference, or close.
///
/// Names of spaces and workers: 1 to 64 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit. Keys: 1 to 200 bytes
/// of UTF-8 without control characters.
///
/// Calls that take a Transaction or Reader are parts of it, and act when it commits; what they find wrong makes it
/// fail. What a transaction has emitted or changed gets its place with the commit, so that it cannot look at it, change
/// it again or list it: that fails it with kInvalidArgument.
/// The others are transactions of their own, and block: they are refused with kInvalidArgument in callbacks of
/// the store. With `_async`, `done` is called once instead, on one of the store's threads.
class PERDURE_EXPORT Queue {
 public:
  using VoidDone = std::move_only_function<void(Result<void>)>;

  /// Opens a session. Blocks. Errors: kInvalidArgument (the options), and those of Session::open.
  [[nodiscard]] static Result<Queue> open(Store store, QueueOptions options = {});
  /// Keep a handle of the store until `done` was called.
  static void open_async(Store store, QueueOptions options, std::move_only_function<void(Result<Queue>)> done);

  /// The same node in another space.
  [[nodiscard]] Queue in(std::string space) const;
  const std::string& space() const { return space_; }

  // Emitting.

  /// Stores an event; once this returns, it will run. A worker that nobody serves is no error: its events wait.
  /// Errors: kInvalidArgument, kTooLarge, kStoreFull, and those of a transaction.
  /// Crash: the event is there as a whole or not at all; emit it again with the same id if you do not know.
  Result<Emitted> emit(std::string_view worker, Value value, EmitOptions options = {});
  void emit_async(std::string_view worker, Value value, EmitOptions options,
                  std::move_only_function<void(Result<Emitted>)> done);
  Emitted emit(Transaction& txn, std::string_view worker, Value value, EmitOptions options = {});
  /// All of them or none, in this order: at most 10,000, and as much as a transaction holds.
  Result<std::vector<Emitted>> emit_many(std::vector<NewEvent> events);
  void emit_many_async(std::vector<NewEvent> events, std::move_only_function<void(Result<std::vector<Emitted>>)> done);
  std::vector<Emitted> emit_many(Transaction& txn, std::vector<NewEvent> events);
  template <Described M>
  Result<Emitted> emit(std::string_view worker, const M& value, EmitOptions options = {}) {
    return emit(worker, to_value(value), std::move(options));
  }
  template <Described M>
  Emitted emit(Transaction& txn, std::string_view worker, const M& value, EmitOptions options = {}) {
    return emit(txn, worker, to_value(value), std::move(options));
  }

  // Working.

  /// Runs the events of a worker in this process from now on. Registering it again replaces the handler: attempts that
  /// are running end with the old one. The handler takes a Job&, and returns nothing, a Value or whatever becomes one,
  /// or a Result of these. Several threads call it at once, up to `concurrency`. It may block; blocking calls of this
  /// class are allowed in it, but for close.
  /// Errors: kInvalidArgument for the name or the options; kClosed.
  template <class F>
  [[nodiscard]] Result<void> work(std::string_view worker, F handler, WorkOptions options = {}) {
    return work_with(worker, make_handler(std::move(handler)), std::move(options));
  }
  /// Stops it: takes no more events; those that run come to their end.
  void stop_working(std::string_view worker);

  // Working by hand: for workers outside of this process. Such a claim belongs to no session, and ends at its deadline.

  /// Claims up to `max` events; waits for the first if there is none. Empty if none came, or the worker is paused.
  [[nodiscard]] Result<std::vector<Claimed>> claim(std::string_view worker, const ClaimOptions& options = {});
  void claim_async(std::string_view worker, const ClaimOptions& options,
                   std::move_only_function<void(Result<std::vector<Claimed>>)> done);
  /// The ends of a claim. Errors: kStaleToken if it is not held any more. Completing again what was completed by this
  /// very claim is fine, within the retention of the worker; so is failing again what was dropped.
  [[nodiscard]] Result<void> complete(const Uuid& id, const Token& token, Value result = {});
  void complete(Transaction& txn, const Uuid& id, const Token& token, Value result = {});
  [[nodiscard]] Result<void> fail(const Uuid& id, const Token& token, std::string error,
                                  const FailOptions& options = {});
  void fail(Transaction& txn, const Uuid& id, const Token& token, std::string error, const FailOptions& options = {});
  /// Gives it back; the attempt is not counted.
  [[nodiscard]] Result<void> release(const Uuid& id, const Token& token);
  void release(Transaction& txn, const Uuid& id, const Token& token);
  /// The claim lasts for `lock` from now; answers until when.
  [[nodiscard]] Result<DueTime> extend(const Uuid& id, const Token& token, Duration lock);
  DueTime extend(Transaction& txn, const Uuid& id, const Token& token, Duration lock);

  // Looking.

  /// The event; kNotFound once it has ended.
  [[nodiscard]] Result<Event> get(const Uuid& id);
  [[nodiscard]] Result<Event> get(Reader& reader, const Uuid& id) const;
  /// How it ended; kNotFound if it has not, or that is forgotten.
  [[nodiscard]] Result<EndedEvent> history(Reader& reader, const Uuid& id) const;
  /// Waits until it has ended. Errors: kDeadline; kNotFound if nothing is known of it.
  [[nodiscard]] Result<EndedEvent> wait(const Uuid& id, Duration timeout);
  void wait_async(const Uuid& id, Duration timeout, std::move_only_function<void(Result<EndedEvent>)> done);
  /// In the order in which they will be claimed, come due, were claimed or died: ready, scheduled, running, dead.
  /// Errors: kInvalidArgument.
  [[nodiscard]] Result<EventPage> list(Reader& reader, const EventFilter& filter) const;
  [[nodiscard]] Result<EventPage> list(const EventFilter& filter);
  [[nodiscard]] Result<Why> why(Reader& reader, const Uuid& id) const;
  [[nodiscard]] Result<Why> why(const Uuid& id);
  /// A worker that was never heard of has nothing but zeros.
  [[nodiscard]] Result<WorkerInfo> worker(std::string_view worker);
  [[nodiscard]] WorkerInfo worker(Reader& reader, std::string_view worker) const;
  /// The workers of this space that were ever heard of, by name.
  [[nodiscard]] std::vector<std::string> workers(Reader& reader, const PageOptions& page = {}) const;
  /// The last executions of a worker, the newest first.
  [[nodiscard]] std::vector<AttemptRecord> attempts(Reader& reader, std::string_view worker) const;
  [[nodiscard]] QueueActivity activity() const;

  // Operating.

  /// Takes effect with its commit: no event is claimed after it. Idempotent: a rule that is there already stays, with
  /// the reason it was given.
  [[nodiscard]] Result<void> pause(std::string_view worker, RuleOptions options = {});
  [[nodiscard]] Result<void> block(std::string_view worker, RuleOptions options = {});
  /// Takes the one rule away, if it is there; the other goes on to hold. Takes as long with a million events waiting.
  [[nodiscard]] Result<void> unpause(std::string_view worker);
  [[nodiscard]] Result<void> unblock(std::string_view worker);
  void add_rule(Transaction& txn, std::string_view worker, Rule::Type type, RuleOptions options = {});
  void remove_rule(Transaction& txn, std::string_view worker, Rule::Type type);
  /// Replaces the settings of a worker; nothing puts the defaults back.
  /// Errors: kInvalidArgument.
  [[nodiscard]] Result<void> configure(std::string_view worker, std::optional<WorkerSettings> settings);
  void configure(Transaction& txn, std::string_view worker, const std::optional<WorkerSettings>& settings);

  enum class Force { kNo, kYes };
  /// Ends an event that has not run. One that is running is refused with kWrongState, unless forced: then its claim is
  /// lost, and its handler gets the cancel signal. Errors: kNotFound.
  [[nodiscard]] Result<void> cancel(const Uuid& id, Force force = Force::kNo);
  void cancel(Transaction& txn, const Uuid& id, Force force = Force::kNo);
  /// Cancels all events of a worker that are in that state, all but the running ones if none is given; answers how
  /// many. Crash: some of them are cancelled.
  [[nodiscard]] Result<std::uint64_t> cancel_all(std::string_view worker, std::optional<EventState> state = {});
  /// Puts dead letters back, with all their retries before them; answers how many. Ids that are not dead are skipped.
  /// Their unique keys are theirs again, unless another has them by now.
  /// Crash: some of them are back.
  [[nodiscard]] Result<std::uint64_t> redrive(std::string_view worker, RedriveOptions options = {});

  /// This node claims nothing any more, neither for its handlers nor by hand, but what it is claiming just now; and
  /// again from `release` on. Claims by hand that come meanwhile wait as long as they may. What is running goes on,
  /// what is emitted is stored, and what falls due becomes ready. Neither blocks.
  void hold();
  void release();

  /// Stops claiming, lets running handlers come to their end, and gives back what is left after `grace`: such handlers
  /// get their cancel signal, and can change nothing any more. Then ends the session. Blocks.
  /// Errors: kDeadline if a handler was still running.
  Result<void> close(Duration grace = std::chrono::seconds(28));
  void close_async(Duration grace, VoidDone done);

 private:
  friend class QueueImpl;
  friend struct PartAccess;
  Queue(std::shared_ptr<QueueImpl> impl, std::string space) : impl_(std::move(impl)), space_(std::move(space)) {}

  Result<void> work_with(std::string_view worker, Handler handler, WorkOptions options);

  template <class F>
  static Handler make_handler(F handler) {
    using R = std::invoke_result_t<const F&, Job&>;
    return [handler = std::move(handler)](Job& job) -> Result<Value> {
      if constexpr (std::is_void_v<R>) {
        handler(job);
        return Value();
      } else if constexpr (std::is_same_v<R, Result<void>>) {
        if (auto done = handler(job); !done) return std::unexpected(std::move(done.error()));
        return Value();
      } else {
        return handler(job);
      }
    };
  }

  std::shared_ptr<QueueImpl> impl_;
  std::string space_;
};

}  // namespace perdure
