// One node's share in actors: what the parts in this folder have in common, and how they are wired.
//
//     callers      those of this process who wait for a reply
//     slots        the actors that this node is busy with
//     dispatchers  one for each kind that it serves: finds mailboxes that have messages
//     housekeeping delayed casts, abandoned callers, the news of deaths
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

#include "actor/callers.h"
#include "actor/dispatcher.h"
#include "actor/housekeeping.h"
#include "actor/slots.h"
#include "perdure/actor.h"
#include "runtime/handler_pool.h"
#include "runtime/mutex.h"
#include "session/session_keeper.h"
#include "session/store_clock.h"
#include "session/timed_part.h"
#include "store/store_part.h"

namespace perdure {

class ActorsImpl : public StorePart<ActorsImpl>, public TimedPart {
 public:
  /// Gets the store back, so that its last handle need not be dropped in a callback.
  using OpenDone = std::move_only_function<void(Result<Actors>, Store)>;
  static void open(Store store, ActorsOptions options, OpenDone done);
  /// `store` is kept open by the handles.
  ActorsImpl(Store& store, ActorsOptions options, std::shared_ptr<SessionKeeper> keeper);
  ~ActorsImpl() override;

  // For the public classes.
  Result<void> serve(const std::string& space, std::string_view kind, std::shared_ptr<Behaviour> behaviour,
                     const KindOptions& options) PERDURE_EXCLUDES(mutex_);
  void stop_serving(const std::string& space, std::string_view kind) PERDURE_EXCLUDES(mutex_);
  void call(const ActorId& actor, Value message, const CallOptions& options, ValueDone done);
  void cast(const ActorId& actor, Value message, const CastOptions& options, VoidDone done);
  void cast_many(const ActorId& actor, std::vector<Value> messages, VoidDone done);
  void info(const ActorId& actor, Value message, VoidDone done);
  void reset(const ActorId& actor, VoidDone done);
  PendingCall call_in(Transaction& txn, const ActorId& actor, const Value& message, ReplyRows rows,
                      std::string traceparent);
  PendingCall pending(const From& from, ReplyRows rows);
  void cast_in(Transaction& txn, const ActorId& actor, std::vector<Value> messages, Duration delay,
               std::string traceparent = {});
  void stop(const ActorId& actor, std::string reason, VoidDone done);
  void kill(const ActorId& actor, VoidDone done);
  void unlock(const ActorId& actor, VoidDone done);
  void redrive(const ActorId& actor, std::size_t limit, std::move_only_function<void(Result<std::uint64_t>)> done);
  void reply(const From& to, Result<Value> reply, VoidDone done);
  void collect(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done);
  Result<ActorInfo> inspect(const ActorId& actor);
  void hold() { held_ = true; }
  void release() PERDURE_EXCLUDES(mutex_);
  void close(Duration grace, VoidDone done) PERDURE_EXCLUDES(mutex_);
  /// The last handle goes: ends what can be ended without waiting for an answer.
  void abandon() PERDURE_EXCLUDES(mutex_);
  /// Whether a blocking call would wait for this very thread.
  Result<void> may_block();

  // For whoever moves time.
  std::optional<WallTime> next_due(Reader& reader) override;
  bool has_work(Reader& reader, WallTime now) override PERDURE_EXCLUDES(mutex_);
  Activity activity_now() override;
  void look() override;

  // For the parts.
  const ActorsOptions& options() const { return options_; }
  /// Mailboxes are to be left alone.
  bool held() const { return held_; }
  actor::Callers& callers() { return callers_; }
  actor::Slots& slots() { return slots_; }
  HandlerPool& handlers() { return *handlers_; }
  HandlerPool& locked_handlers() { return *locked_handlers_; }
  /// Store time.
  WallTime now() { return clock_.now(); }
  StoreClock& clock() { return clock_; }
  /// The session of this node, while it is believed in.
  std::optional<SessionId> session_id() { return keeper_->id(); }
  /// The last session that this node had: what its callers are named by.
  Stamp identity() PERDURE_EXCLUDES(mutex_);
  /// Messages that were pushed up to this version may have killed a process.
  std::uint64_t careful_version() const { return careful_version_; }
  void careful_from(std::uint64_t version);
  /// Whether the end of another process is known at once, and not only when its session has been silent for its TTL.
  bool is_told_of_deaths();
  std::size_t transaction_bytes_max() { return store_.limits().transaction_bytes_max; }
  /// Those of each message in order, until one of them halts or throws.
  void run_actions(std::vector<std::vector<Action>> actions, std::shared_ptr<Value> state);
  void warn(const std::string& what, const ActorId& actor);

 private:
  using KindName = std::pair<std::string, std::string>;

  void start();
  void session_opened(const std::shared_ptr<SessionImpl>& session) PERDURE_EXCLUDES(mutex_);
  std::vector<std::shared_ptr<actor::Dispatcher>> all_dispatchers() PERDURE_EXCLUDES(mutex_);
  std::shared_ptr<actor::ServedKind> served(const ActorId& actor) PERDURE_EXCLUDES(mutex_);
  /// Whether messages to it are taken. Errors: kClosed, kInvalidArgument.
  Result<void> accepts(const ActorId& actor) PERDURE_EXCLUDES(mutex_);
  void send(const ActorId& actor, actor::Request request, Way way, Duration timeout);
  void stop_all() PERDURE_EXCLUDES(mutex_);
  void store_closing() PERDURE_EXCLUDES(mutex_);
  void end_session();
  void closed(const Result<void>& result) PERDURE_EXCLUDES(mutex_);
  void unregister_all(VoidDone done) PERDURE_EXCLUDES(mutex_);
  void unregister(std::vector<std::shared_ptr<actor::ServedKind>> kinds, VoidDone done);

  const ActorsOptions options_;
  StoreClock clock_;
  const std::shared_ptr<SessionKeeper> keeper_;
  const std::shared_ptr<HandlerPool> handlers_;
  const std::shared_ptr<HandlerPool> locked_handlers_;
  actor::Callers callers_{*this};
  actor::Slots slots_{*this};
  actor::Housekeeping housekeeping_{*this};
  std::atomic<std::uint64_t> careful_version_ = 0;
  std::atomic<bool> held_;

  Mutex mutex_;
  std::map<KindName, std::shared_ptr<actor::Dispatcher>> dispatchers_ PERDURE_GUARDED_BY(mutex_);
  Stamp identity_ PERDURE_GUARDED_BY(mutex_);
  bool closing_ PERDURE_GUARDED_BY(mutex_) = false;
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Who waits for `close`.
  std::vector<std::shared_ptr<actor::Waiter>> closers_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t before_close_ PERDURE_GUARDED_BY(mutex_) = 0;
};

}  // namespace perdure
