// One node's share in the queues of a store: what the parts in this folder have in common, and how they are wired.
//
//     dispatchers   one for each worker that it serves: claims events and runs their handlers
//     loops         what falls due: scheduled events, deadlines of claims, what is to be forgotten
//     pulls         claims by hand that wait for work
//
// Everything is driven by requests, answers of the store, timers and watches. Nothing here blocks but the public calls.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perdure/queue.h"
#include "queue/dispatcher.h"
#include "queue/due.h"
#include "queue/emit.h"
#include "runtime/handler_pool.h"
#include "runtime/mutex.h"
#include "session/due_loop.h"
#include "session/session_keeper.h"
#include "session/store_clock.h"
#include "session/timed_part.h"
#include "store/store_part.h"

namespace perdure {

class QueueImpl : public StorePart<QueueImpl>, public TimedPart {
 public:
  using VoidDone = Queue::VoidDone;
  /// Gets the store back, so that its last handle need not be dropped in a callback.
  using OpenDone = std::move_only_function<void(Result<Queue>, Store)>;
  static void open(Store store, QueueOptions options, OpenDone done);
  /// `store` is kept open by the handles.
  QueueImpl(Store& store, QueueOptions options, std::shared_ptr<SessionKeeper> keeper);

  // For the public class.
  Result<void> work(const std::string& space, std::string_view worker, Handler handler, WorkOptions options)
      PERDURE_EXCLUDES(mutex_);
  void stop_working(const std::string& space, std::string_view worker) PERDURE_EXCLUDES(mutex_);
  /// Checks them and gives them ids. Errors: kInvalidArgument, kTooLarge, kClosed.
  Result<std::vector<queue::Prepared>> prepare(const std::string& space, std::vector<NewEvent> events);
  void emit(const std::string& space, std::vector<NewEvent> events,
            std::move_only_function<void(Result<std::vector<Emitted>>)> done);
  void claim(const std::string& space, std::string_view worker, const ClaimOptions& options,
             std::move_only_function<void(Result<std::vector<Claimed>>)> done);
  void wait(const std::string& space, const Uuid& id, Duration timeout,
            std::move_only_function<void(Result<EndedEvent>)> done);
  /// Runs `step` in a transaction as long as it says that there is more, and answers with the sum.
  template <class Step>
  Result<std::uint64_t> in_parts(Step step);
  /// A transaction of an operator or of an outside worker; blocks.
  template <class Body>
  auto transact_now(Body body);
  void hold() { held_ = true; }
  void release() PERDURE_EXCLUDES(mutex_);
  void close(Duration grace, VoidDone done) PERDURE_EXCLUDES(mutex_);
  /// The last handle goes.
  void abandon() PERDURE_EXCLUDES(mutex_);
  /// Whether a blocking call would wait for this very thread.
  QueueActivity activity() PERDURE_EXCLUDES(mutex_);

  // For whoever moves time: timed.cc.
  std::optional<WallTime> next_due(Reader& reader) override PERDURE_EXCLUDES(mutex_);
  bool has_work(Reader& reader, WallTime now) override PERDURE_EXCLUDES(mutex_);
  Activity activity_now() override PERDURE_EXCLUDES(mutex_);
  void look() override PERDURE_EXCLUDES(mutex_);

  // For the parts.
  StoreClock& clock() { return clock_; }
  /// Store time.
  WallTime now() { return clock_.now(); }
  /// The same, and no earlier than what anybody has acted upon: for what others will compare with theirs.
  WallTime now(Transaction& txn) {
    SystemAccess access(txn);
    Reader snapshot = txn.snapshot();
    clock_.learn(StoreClock::read(snapshot));
    return clock_.now();
  }
  HandlerPool& handlers() { return *handlers_; }
  std::optional<SessionId> session_id() { return keeper_->id(); }
  std::uint64_t store_number() const { return store_number_; }
  /// The first of so many numbers that nobody else gets.
  std::uint64_t take_numbers(std::size_t count) { return next_number_.fetch_add(count); }
  void warn(const std::string& what, const std::string& event);
  /// Somebody waits for a watch or a timer, which will not come if this is closed: then `closed` is called, in this
  /// very call if it is closed already, and the answer is 0.
  std::uint64_t add_waiter(Task closed) PERDURE_EXCLUDES(mutex_);
  /// Whether it was still waiting: only one of all who call this is told so.
  bool remove_waiter(std::uint64_t waiter) PERDURE_EXCLUDES(mutex_);
  /// What is called, once, to have it look again before its watch or its timer comes. `timed` is one that waits for a
  /// moment of store time.
  void when_woken(std::uint64_t waiter, Task woken, bool timed) PERDURE_EXCLUDES(mutex_);
  void wake_waiter(std::uint64_t waiter) PERDURE_EXCLUDES(mutex_);
  /// Nothing is to be claimed.
  bool held() const { return held_; }
  void count_turn() { ++turns_; }

 private:
  using Name = std::pair<std::string, std::string>;
  using DispatcherPtr = std::shared_ptr<queue::Dispatcher>;
  using Loop = DueLoop<QueueImpl>;
  struct WaiterTasks {
    Task closed;
    Task woken = {};
    bool timed = false;
  };
  enum class Wake { kAll, kTimed };

  void start();
  void session_opened(const std::shared_ptr<SessionImpl>& session) PERDURE_EXCLUDES(mutex_);
  void session_over() PERDURE_EXCLUDES(mutex_);
  void follow_recalls(SessionId session);
  Uuid fresh_id() PERDURE_EXCLUDES(mutex_);
  /// Those that serve, and those that are only coming to an end.
  std::vector<DispatcherPtr> all_dispatchers() PERDURE_EXCLUDES(mutex_);
  std::vector<DispatcherPtr> serving() PERDURE_EXCLUDES(mutex_);
  /// It is among retired_: forgets it when it has come to its end.
  void retire(const DispatcherPtr& dispatcher) PERDURE_EXCLUDES(mutex_);
  void unserve(const std::vector<DispatcherPtr>& dispatchers, VoidDone done);
  void stop_serving() PERDURE_EXCLUDES(mutex_);
  void store_closing() PERDURE_EXCLUDES(mutex_);
  /// What is still running is given back; then the session ends.
  void settle_and_end() PERDURE_EXCLUDES(mutex_);
  void closed(const Result<void>& result) PERDURE_EXCLUDES(mutex_);
  void wake_waiters(Wake which) PERDURE_EXCLUDES(mutex_);
  void wait_for(std::string space, Uuid id, SteadyTime deadline, bool seen,
                std::shared_ptr<std::move_only_function<void(Result<EndedEvent>)>> done);

  const QueueOptions options_;
  StoreClock clock_;
  const std::shared_ptr<SessionKeeper> keeper_;
  const std::shared_ptr<HandlerPool> handlers_;
  std::atomic<std::uint64_t> store_number_ = 0;
  std::atomic<std::uint64_t> next_number_ = 0;
  std::atomic<bool> held_;
  /// Of dispatchers, that were begun.
  std::atomic<std::uint64_t> turns_ = 0;
  Loop promoting_;
  Loop expiring_;
  Loop forgetting_;

  Mutex mutex_;
  std::map<Name, DispatcherPtr> dispatchers_ PERDURE_GUARDED_BY(mutex_);
  std::vector<DispatcherPtr> retired_ PERDURE_GUARDED_BY(mutex_);
  /// Of the last id: ids of one node are in the order in which they were made.
  std::int64_t id_ms_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t id_number_ PERDURE_GUARDED_BY(mutex_) = 0;
  Watch recall_ PERDURE_GUARDED_BY(mutex_);
  bool closing_ PERDURE_GUARDED_BY(mutex_) = false;
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  bool ending_ PERDURE_GUARDED_BY(mutex_) = false;
  /// A handler was still running when the grace was over.
  bool overran_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<VoidDone> closers_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t last_waiter_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, WaiterTasks> waiters_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
};

template <class Body>
auto QueueImpl::transact_now(Body body) {
  return StorePart::transact_now(std::move(body), {.body = perdure::Body::kShort, .reserve = Reserve::kMayUse});
}

template <class Step>
Result<std::uint64_t> QueueImpl::in_parts(Step step) {
  std::uint64_t sum = 0;
  for (;;) {
    auto part = transact_now([&](Transaction& txn) { return step(txn, sum); });
    if (!part) return std::unexpected(std::move(part.error()));
    sum += part->count;
    if (!part->more) return sum;
  }
}

}  // namespace perdure
