// What perdure runs when an actor has a message: the behaviour of its kind.
//
// A behaviour is pure: it gets a message and the state, and says what the new state is, what to reply, and what else is
// to happen. It changes nothing itself. perdure then commits all of that in one transaction together with the removal
// of the message, or none of it; so a behaviour may be run again for the same message, on this node or another, and the
// run that counts is the one that commits.
//
// Most kinds are plain classes, see perdure/actor_kind.h, which makes a Behaviour of them. This interface is for what
// is known at run time only.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/cancel.h"
#include "perdure/describe.h"
#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/time.h"
#include "perdure/transaction.h"
#include "perdure/value.h"

namespace perdure {

namespace internal {

/// A message as it stands in the mailbox: {"Add": {"by": 2}}.
template <class M>
Value message_value(const M& message) {
  if constexpr (std::same_as<M, Value>) {
    return message;
  } else {
    Value::Map map;
    map.emplace(std::string(described_name<M>()), to_value(message));
    return Value(std::move(map));
  }
}

}  // namespace internal

/// Names an actor for ever, whether it exists or not. Space and kind are names: 1 to 64 of A-Za-z0-9._:- beginning with
/// a letter or digit. The id is 1 to 200 bytes of UTF-8 without control characters, not "." or "..".
struct PERDURE_EXPORT ActorId {
  std::string space;
  std::string kind;
  std::string id;
  auto operator<=>(const ActorId&) const = default;
  /// "space/kind/id".
  std::string to_string() const;
  /// Errors: kInvalidArgument, naming the part that is wrong.
  [[nodiscard]] Result<void> check() const;
};

/// Names one caller who waits for a reply of one actor. A behaviour that does not reply at once keeps it, as text in
/// its state for instance, and replies later.
struct PERDURE_EXPORT From {
  ActorId actor;
  std::int64_t seconds = 0;  ///< When the call was made, in store time: what is abandoned is collected by age.
  Stamp session;             ///< Of the caller.
  std::uint64_t number = 0;  ///< Tells the calls of a session apart.
  bool operator==(const From&) const = default;

  std::string to_string() const;
  /// Errors: kInvalidArgument.
  [[nodiscard]] static Result<From> parse(std::string_view text);
};

/// A change of something else that commits with the state of the actor, or not at all. The parts of perdure that have
/// such changes offer them as effects; anybody may make more.
struct Effect {
  /// For messages: "emit to mail".
  std::string what;
  /// Runs in the committing transaction, perhaps several times, where nothing may be waited for. An error refuses the
  /// whole turn, as a failure of the handler.
  std::function<Result<void>(Transaction&)> apply;
};

/// What an action after the commit says about those behind it.
enum class Next { kGoOn, kHalt };
/// Gets the state as it was committed.
using Action = std::function<Next(const Value& state)>;

/// One message being handled: who asks, and what is to happen besides the new state. Valid during the handler only.
class PERDURE_EXPORT Turn {
 public:
  Turn(const ActorId& actor, std::optional<From> from, int attempt, std::string_view traceparent = {},
       CancelSignal cancel = {})
      : actor_(&actor),
        from_(std::move(from)),
        attempt_(attempt),
        traceparent_(traceparent),
        cancel_(std::move(cancel)) {}

  const ActorId& actor() const { return *actor_; }
  /// The caller; empty if nobody waits for a reply.
  const std::optional<From>& from() const { return from_; }
  /// 1 for the first time that this message is tried; counts failures and, after a crash, what was begun.
  int attempt() const { return attempt_; }
  /// What its sender gave to be traced by, or nothing. Casts of this turn carry it on.
  std::string_view traceparent() const { return traceparent_; }
  /// In handle_locked: given when the lock is lost, or the node is asked to stop.
  const CancelSignal& cancel_signal() const { return cancel_; }

  /// Sends a message when the turn commits, `delay` later at the earliest.
  void cast(ActorId to, Value message, Duration delay = Duration::zero());
  template <Described M>
  void cast(ActorId to, const M& message, Duration delay = Duration::zero()) {
    cast(std::move(to), internal::message_value(message), delay);
  }
  /// Replies to a caller who was not replied to at once: of this actor or another. One who has given up is skipped.
  void reply(From to, Value reply);
  void refuse(From to, Error error);
  /// Whatever else commits with the turn.
  void add(Effect effect) { effects_.push_back(std::move(effect)); }
  /// Runs after the commit, in order, at most once: not at all if the process dies. If one throws, those behind it are
  /// skipped; the state stays.
  void after_commit(Action action) { actions_.push_back(std::move(action)); }

  struct Cast {
    ActorId to;
    Value message;
    Duration delay;
  };
  struct Reply {
    From to;
    Result<Value> reply;
  };
  // What was asked for, for who commits it.
  std::vector<Cast>& casts() { return casts_; }
  std::vector<Reply>& replies() { return replies_; }
  std::vector<Effect>& effects() { return effects_; }
  std::vector<Action>& actions() { return actions_; }

 private:
  const ActorId* actor_;
  std::optional<From> from_;
  int attempt_;
  std::string_view traceparent_;
  CancelSignal cancel_;
  std::vector<Cast> casts_;
  std::vector<Reply> replies_;
  std::vector<Effect> effects_;
  std::vector<Action> actions_;
};

/// How a handler ended.
struct Handled {
  enum class Then {
    kGoOn,
    kLock,  ///< Commit, stop the mailbox, and run handle_locked with the same message. It replies, not this one.
    kStop   ///< Commit, and fail those calls that wait in the mailbox with kActorGone and `reason`.
  };
  std::optional<Value> reply = {};
  Then then = Then::kGoOn;
  std::string reason = {};
};

enum class MessageType { kCall, kCast, kInfo };

/// One actor in memory, for the messages of one transaction. Used by one thread at a time.
class PERDURE_EXPORT Activation {
 public:
  virtual ~Activation() = default;
  /// Handles one message, changing the state in memory. Errors: kInvalidArgument for a message that the kind does not
  /// take, which is not tried again; any other is a failed attempt, and so is an exception. After an error this object
  /// is thrown away. An unknown info is no error.
  [[nodiscard]] virtual Result<Handled> handle(MessageType type, const Value& message, Turn& turn) = 0;
  /// The long part of a message that asked for the lock. Runs outside of any transaction, may block, and may have
  /// effects of its own. It is not tried again.
  [[nodiscard]] virtual Result<Handled> handle_locked(const Value& message, Turn& turn) = 0;
  /// The state as it is now.
  [[nodiscard]] virtual Value state() const = 0;
};

/// Thread-safe.
class PERDURE_EXPORT Behaviour {
 public:
  virtual ~Behaviour() = default;
  /// Of the states that it writes; from 1.
  virtual int schema() const { return 1; }
  /// The state that a new actor begins with. Called for the first message of an actor, and by reset.
  [[nodiscard]] virtual Result<Value> init(const ActorId& actor) = 0;
  /// Makes a state of this schema out of an older one, when an actor is met that has it.
  [[nodiscard]] virtual Result<Value> upgrade(int from_schema, Value state);
  /// The same where it matters whose state it is. This is what is called; by default it calls the other.
  [[nodiscard]] virtual Result<Value> upgrade_of(const ActorId& actor, int from_schema, Value state);
  [[nodiscard]] virtual Result<std::unique_ptr<Activation>> activate(const ActorId& actor, const Value& state) = 0;
};

}  // namespace perdure
