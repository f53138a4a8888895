// Durable actors.
//
// An actor is an object with a state and a mailbox that live in the store, beyond any process. Its kind says in code
// what its messages do (perdure/actor_kind.h); any node that serves the kind handles them, one after the other, and
// each message takes effect once: its removal from the mailbox, the new state, the replies and all other effects are
// one transaction.
//
//     auto actors = Actors::open(store);
//     actors->serve<Counter>();
//     auto visits = actors->of<Counter>("visits");
//     Result<std::int64_t> count = visits.call(Add{.by = 2});
//
// Actors are virtual: every id is an actor, which comes into being with its first message and costs nothing but its
// rows in the store. A process that serves no kind can call all the same; only the store connects the two.
//
// What becomes of a message:
//   - its handler throws, returns an error or runs past its limit: nothing is changed; it is tried again, alone and
//     with back-off, and after KindOptions::attempts_max attempts becomes a dead letter, and its caller gets
//     kHandlerFailed. Those behind it wait meanwhile, and go on then;
//   - its handler kills the process: the same; attempts are counted from the first death on;
//   - the kind does not take it: its caller gets kInvalidArgument at once, and it becomes a dead letter;
//   - nobody serves its kind, or only nodes whose code is older than the actor's state: it waits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/actor_kind.h"
#include "perdure/behaviour.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/session.h"
#include "perdure/store.h"

namespace perdure {

/// How a message gets to its actor.
enum class Way {
  kMailbox,   ///< In order with all others.
  kPriority,  ///< Handled at once, by this node, which must serve the kind: past the mailbox and past the lock. Good
              ///< for reading the state; in no order with the mailbox, and lost if the process dies.
};

struct CallOptions {
  /// How long to wait for the reply; Duration::max() is without limit.
  Duration timeout = std::chrono::seconds(5);
  Way way = Way::kMailbox;
  /// W3C trace context, kept with the message: Turn::traceparent. At most 512 printable characters.
  std::string traceparent = {};
};

struct CastOptions {
  /// In store time. Such a cast joins the mailbox when it is due.
  Duration delay = Duration::zero();
  Way way = Way::kMailbox;
  /// As in CallOptions.
  std::string traceparent = {};
};

/// What a mailbox, a message and a state may hold.
inline constexpr std::size_t kMessageBytesMax = 1 << 20;
inline constexpr std::size_t kReplyBytesMax = 8 << 20;
inline constexpr std::size_t kStateBytesMax = 8 << 20;

/// How one node serves a kind.
struct KindOptions {
  /// Off: this node handles priority messages and infos only, and leaves mailboxes to others.
  bool consume = true;
  /// How long one run of a handler may take; handle_locked may take as long as it likes.
  Duration limit = std::chrono::seconds(5);
  int attempts_max = 5;
  /// Before the second attempt; doubles with each, up to the largest.
  Duration back_off = std::chrono::milliseconds(100);
  Duration back_off_max = std::chrono::seconds(10);
  /// Messages in one mailbox; more are refused with kMailboxFull. Who pushes looks at what the kind was last served
  /// with, and may overshoot by what is under way.
  std::uint64_t mailbox_max = 100'000;
  /// What one transaction may take from a mailbox, and how long their handlers may run before it commits.
  std::size_t batch_max = 256;
  Duration batch_time = std::chrono::milliseconds(10);
};

struct ActorsOptions {
  std::string space = "default";
  /// The presence of this node: what it holds, locks, is free when it ends. Opened anew if it is lost.
  SessionOptions session = {};
  /// Threads for handlers; 0 takes one per core, at least two. Handlers that hang are replaced by more, up to 64.
  unsigned handler_threads = 0;
  /// Up to so many while handlers block, one that waits for another process for instance; 0 for no more than those.
  unsigned handler_threads_max = 0;
  /// At once, each on a thread of its own.
  unsigned locked_max = 64;
  /// States that are kept in memory to save reading them; 0 keeps none.
  std::size_t cache_bytes = std::size_t{64} << 20;
  /// Replies that nobody came for are collected at this age, once the session of their caller is over; also those that
  /// are kept.
  Duration abandoned_after = std::chrono::hours(1);
  /// Opened as if by Actors::hold: no mailbox is looked after until Actors::release.
  bool held = false;
};

struct LockInfo {
  SessionId owner;
  Token token;
};

struct ActorInfo {
  /// The state, or nothing if the actor has none yet.
  std::optional<Value> state;
  Stamp version;  ///< Of the state; grows with each change.
  int schema = 0;
  std::uint64_t mailbox_length = 0;
  std::optional<WallTime> oldest;  ///< When the first message came, in store time.
  std::optional<LockInfo> locked;
  std::uint64_t dead = 0;
  std::uint64_t waiting = 0;  ///< Callers; counted up to 1,000.
};

struct DeadLetter {
  Stamp id;
  MessageType type = MessageType::kCast;
  Value message;
  std::string error;
  int attempts = 0;
  WallTime at;
};

/// Which part of a list of actors: those whose ids begin with `prefix`, after `after`.
struct ActorPage {
  std::string prefix = {};
  std::string after = {};
  std::size_t limit = 100;
};

class ActorsImpl;
class PendingCallState;

/// What becomes of the rows by which a call waits for its reply.
enum class ReplyRows {
  /// A reply is gone with the first who is told of it. Who gives up waiting, by a timeout or by dropping the call,
  /// takes
  /// the rows away, and a reply that comes later is not stored.
  kClear,
  /// They stay, however often and for how long the reply was waited for, until Actors::take_reply takes it, perhaps in
  /// another process: see ActorsOptions::abandoned_after.
  kKeep,
};

/// A call that was pushed in a transaction of the caller's. Good once that has committed; dropping it gives up waiting.
class PERDURE_EXPORT PendingCall {
 public:
  /// Blocks. Errors: as Actor::call.
  [[nodiscard]] Result<Value> wait(Duration timeout = std::chrono::seconds(5));
  void wait_async(Duration timeout, std::move_only_function<void(Result<Value>)> done);
  const From& from() const;

 private:
  friend class ActorsImpl;
  explicit PendingCall(std::shared_ptr<PendingCallState> state) : state_(std::move(state)) {}
  std::shared_ptr<PendingCallState> state_;
};

using ValueDone = std::move_only_function<void(Result<Value>)>;
using VoidDone = std::move_only_function<void(Result<void>)>;

/// One actor, by its name: a handle that costs nothing and keeps nothing alive but the Actors. Copyable, thread-safe.
/// The blocking calls are refused with kInvalidArgument in callbacks of the store, and in handlers. `done` is called
/// once, on one of the store's threads.
class PERDURE_EXPORT Actor {
 public:
  const ActorId& id() const { return id_; }

  /// Sends a message and waits for the reply. An idle actor whose kind this node serves is called in one transaction,
  /// without its mailbox: the results are the same.
  /// Errors: kReplyTimeout: the message was taken, and is still handled; kHandlerFailed; kInvalidArgument; kTooLarge;
  /// kMailboxFull; kActorGone if it was killed or stopped before it came to this message; kConflict if the lock was
  /// held for it and others changed the same; kStaleToken if the node that held the lock for it died; and those of a
  /// transaction.
  /// Crash: the message takes effect once or not at all; once it was pushed, it does.
  [[nodiscard]] Result<Value> call(Value message, const CallOptions& options = {});
  void call_async(Value message, const CallOptions& options, ValueDone done);
  /// Pushes a call when `txn` commits. Such a call always goes through the mailbox.
  [[nodiscard]] PendingCall call(Transaction& txn, Value message, ReplyRows rows = ReplyRows::kClear,
                                 std::string traceparent = {});

  /// Sends a message; returns once it is durable, or has been handled.
  [[nodiscard]] Result<void> cast(Value message, const CastOptions& options = {});
  void cast_async(Value message, const CastOptions& options, VoidDone done);
  void cast(Transaction& txn, Value message, Duration delay = Duration::zero(), std::string traceparent = {});
  /// All of them or none, in order, with nothing in between.
  [[nodiscard]] Result<void> cast_many(std::vector<Value> messages);
  void cast_many_async(std::vector<Value> messages, VoidDone done);
  void cast_many(Transaction& txn, std::vector<Value> messages, std::string traceparent = {});

  /// A message that is not stored: handled by this node at once, past the lock. Unknown ones are ignored.
  [[nodiscard]] Result<void> info(Value message);
  void info_async(Value message, VoidDone done);

  /// Fails the calls that wait in the mailbox with kActorGone and `reason`, and frees the lock. The state stays, and so
  /// do the casts; the next message finds the actor as it was.
  [[nodiscard]] Result<void> stop(std::string reason = "stopped");
  void stop_async(std::string reason, VoidDone done);
  /// Deletes the actor: its state, mailbox, lock and dead letters; its callers are failed with kActorGone at once.
  /// Crash: of a mailbox of many thousands some messages may be gone already; kill it again.
  [[nodiscard]] Result<void> kill();
  void kill_async(VoidDone done);
  /// Errors of the transaction: kTooLarge for an actor with more than a few thousand rows.
  void kill(Transaction& txn);
  /// Puts the state back to what the kind's init says, and frees the lock. The mailbox stays; callers whom the actor
  /// was to answer later wait until their timeout. This node must serve the kind.
  [[nodiscard]] Result<void> reset();
  void reset_async(VoidDone done);
  /// Frees the lock, whoever holds it: what runs under it can no longer commit, and its caller gets kStaleToken.
  /// Errors: kNotFound if it is not locked.
  [[nodiscard]] Result<void> unlock();
  void unlock_async(VoidDone done);

  /// Parts of the transaction that they are called in; kNotFound if there is nothing of the actor.
  [[nodiscard]] Result<ActorInfo> inspect(Reader& reader) const;
  [[nodiscard]] Result<ActorInfo> inspect();
  /// Oldest first. A page of large letters ends before its limit; one that is empty is the last.
  [[nodiscard]] std::vector<DeadLetter> dead_letters(Reader& reader, std::size_t limit = 100, Stamp after = {}) const;
  /// Puts dead letters back to the end of the mailbox, oldest first: all of them up to `limit`; answers how many.
  [[nodiscard]] Result<std::uint64_t> redrive(std::size_t limit = 1000);
  void redrive_async(std::size_t limit, std::move_only_function<void(Result<std::uint64_t>)> done);

 private:
  friend class Actors;
  Actor(std::shared_ptr<ActorsImpl> impl, ActorId id) : impl_(std::move(impl)), id_(std::move(id)) {}
  std::shared_ptr<ActorsImpl> impl_;
  ActorId id_;
};

/// The same with the message types of a kind.
template <class K>
class ActorOf {
 public:
  explicit ActorOf(Actor actor) : actor_(std::move(actor)) {}
  /// Everything else.
  Actor& untyped() { return actor_; }
  const ActorId& id() const { return actor_.id(); }

  template <Described M>
  using ReplyOf = typename internal::ReplyOf<M>::Type;

  template <Described M>
  [[nodiscard]] Result<ReplyOf<M>> call(const M& message, const CallOptions& options = {}) {
    return typed<ReplyOf<M>>(actor_.call(internal::message_value(message), options));
  }
  template <Described M, class Done>
  void call_async(const M& message, const CallOptions& options, Done done) {
    actor_.call_async(internal::message_value(message), options, [done = std::move(done)](Result<Value> reply) mutable {
      done(typed<ReplyOf<M>>(std::move(reply)));
    });
  }
  template <Described M>
  [[nodiscard]] Result<void> cast(const M& message, const CastOptions& options = {}) {
    return actor_.cast(internal::message_value(message), options);
  }
  template <Described M>
  void cast_async(const M& message, const CastOptions& options, VoidDone done) {
    actor_.cast_async(internal::message_value(message), options, std::move(done));
  }
  template <Described M>
  void cast(Transaction& txn, const M& message, Duration delay = Duration::zero()) {
    actor_.cast(txn, internal::message_value(message), delay);
  }
  template <Described M>
  [[nodiscard]] Result<void> cast_many(const std::vector<M>& messages) {
    std::vector<Value> values;
    for (const M& message : messages) values.push_back(internal::message_value(message));
    return actor_.cast_many(std::move(values));
  }
  template <Described M>
  [[nodiscard]] Result<void> info(const M& message) {
    return actor_.info(internal::message_value(message));
  }
  /// The state as it was last committed; nothing if there is none yet.
  [[nodiscard]] Result<std::optional<typename K::State>> state() {
    auto info = actor_.inspect();
    if (!info && info.error().code != ErrorCode::kNotFound) return std::unexpected(std::move(info.error()));
    if (!info || !info->state) return std::nullopt;
    return from_value<typename K::State>(*info->state, UnknownFields::kIgnore);
  }

 private:
  template <class R>
  static Result<R> typed(Result<Value> reply) {
    if (!reply) return std::unexpected(std::move(reply.error()));
    if constexpr (std::is_void_v<R>)
      return {};
    else
      return from_value<R>(*reply, UnknownFields::kIgnore);
  }
  Actor actor_;
};

/// The share of this process in the actors of a store. Copies share it; thread-safe. It keeps the store open. When the
/// last copy is gone, or `close` is called, handlers that run are waited for, and locks are given back.
class PERDURE_EXPORT Actors {
 public:
  /// Opens a session, and collects what dead ones have left. Blocks.
  /// Errors: kInvalidArgument (the options), and those of Session::open.
  [[nodiscard]] static Result<Actors> open(Store store, ActorsOptions options = {});
  /// The same without blocking; `done` is called once, on one of the store's threads (in this call if the options are
  /// refused). Keep a handle of the store until then.
  static void open_async(Store store, ActorsOptions options, std::move_only_function<void(Result<Actors>)> done);

  /// The same node in another space.
  [[nodiscard]] Actors in(std::string space) const;

  /// Handles the messages of a kind in this space from now on. Serving it again replaces the behaviour.
  /// Errors: kInvalidArgument for the name or the options.
  [[nodiscard]] Result<void> serve(std::string_view kind, std::shared_ptr<Behaviour> behaviour,
                                   const KindOptions& options = {});
  template <class K>
  [[nodiscard]] Result<void> serve(K kind = {}, const KindOptions& options = {}) {
    return serve(K::kKind, std::make_shared<internal::KindBehaviour<K>>(std::move(kind)), options);
  }
  /// Leaves the messages of a kind to other nodes, or to whoever serves it next: they wait in their mailboxes. Handlers
  /// that run come to their end. Does nothing for a kind that is not served.
  void stop_serving(std::string_view kind);

  [[nodiscard]] Actor actor(std::string_view kind, std::string_view id) const;
  /// By default the one actor that has the name of its kind.
  template <class K>
  [[nodiscard]] ActorOf<K> of(std::string_view id = K::kKind) const {
    return ActorOf<K>(actor(K::kKind, id));
  }

  /// Replies to a caller from outside of the actor: what a handler was told by Turn::from.
  [[nodiscard]] Result<void> reply(const From& to, Result<Value> reply);
  void reply_async(const From& to, Result<Value> reply, VoidDone done);
  void reply(Transaction& txn, const From& to, const Result<Value>& reply);

  /// A call that was pushed before, by this process or by one that is gone: what PendingCall::from said of it. Whoever
  /// waits for one of which nothing is left is answered with kReplyTimeout.
  [[nodiscard]] PendingCall pending(const From& from, ReplyRows rows = ReplyRows::kKeep) const;
  /// The reply of a call, which is gone with the commit of `txn`; nothing as long as there is none. So it can be stored
  /// elsewhere, or acted upon, exactly once. Error: kNotFound if nothing is left of the call.
  /// Crash: the reply is still there, or was taken with all else that `txn` wrote.
  [[nodiscard]] std::optional<Result<Value>> take_reply(Transaction& txn, const From& from);

  /// The ids of the actors of a kind of which there is anything in the store, in order.
  [[nodiscard]] std::vector<std::string> list(Reader& reader, std::string_view kind, const ActorPage& page = {}) const;

  /// Collects replies and placeholders of callers that are gone, if older than `age`; answers how many. Done by itself
  /// every ten minutes or so, with ActorsOptions::abandoned_after. Blocks.
  [[nodiscard]] Result<std::uint64_t> collect(Duration age);
  void collect_async(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done);

  /// This node handles no messages of mailboxes any more, but those that it is at just now; and again from `release`
  /// on. Calls and casts that come meanwhile go into their mailboxes and wait. Those past the mailbox are handled all
  /// the same, work under a lock goes on, and delayed casts join their mailboxes. Neither blocks.
  void hold();
  void release();

  /// Stops taking messages, waits up to `grace` for handlers that run, and ends the session. Blocks. Idempotent.
  /// Errors: kDeadline if something still runs under a lock: it is left behind, and comes to nothing, for the session
  /// and with it the lock are gone.
  Result<void> close(Duration grace = std::chrono::seconds(30));
  void close_async(Duration grace, VoidDone done);

 private:
  friend class ActorsImpl;
  friend struct PartAccess;
  Actors(std::shared_ptr<ActorsImpl> impl, std::string space) : impl_(std::move(impl)), space_(std::move(space)) {}
  std::shared_ptr<ActorsImpl> impl_;
  std::string space_;
};

}  // namespace perdure
