// Messages of one actor on their way through one transaction.
//
// A batch begins with a copy of the state, from the cache or the store, and messages: from the mailbox, or of callers
// in this process. `handle` runs the handlers, outside of any transaction, and says what is to be committed. The commit
// then looks whether all that the batch began with is still so; if not, nothing has happened, and it is done again from
// the start. So no snapshot is held while a user's code runs, and no lock either.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actor/request.h"
#include "actor/rows.h"
#include "actor/state_codec.h"
#include "perdure/actor.h"

namespace perdure::actor {

/// A kind as this node serves it.
struct ServedKind {
  std::string space;
  std::string name;
  std::shared_ptr<Behaviour> behaviour;
  KindOptions options;
  /// This node does not serve it any more. Guarded by the slots.
  bool stopped = false;
};

/// A state as it was at some version, and in which schema.
struct Loaded {
  std::optional<Head> head;  ///< Nothing if the actor does not exist.
  StoredState state;
};

struct Batch {
  enum class Mode {
    kMailbox,   ///< Messages from the mailbox.
    kInline,    ///< Of this process, in the place of the mailbox, which must be empty.
    kPriority,  ///< Of this process, past mailbox and lock.
    kUnlock     ///< No message: what was done under the lock, and gives it back.
  };
  struct Failure {
    std::size_t index = 0;
    Error error;
    /// Whether trying again may help.
    bool retry = true;
    /// The state is of a schema that this node does not know: another will handle it.
    bool newer = false;
  };
  struct Reply {
    std::size_t index = 0;  ///< Of the message.
    /// Empty: no reply yet.
    std::optional<Result<Value>> reply;
  };
  /// A cast that commits with it.
  struct Sent {
    ActorId to;
    Bytes body;
    Duration delay;
    std::string traceparent;
  };

  Batch(ActorId id, Bytes key_prefix, std::shared_ptr<ServedKind> served, Mode how)
      : actor(std::move(id)), prefix(std::move(key_prefix)), kind(std::move(served)), mode(how) {}

  const ActorId actor;
  const Bytes prefix;
  const std::shared_ptr<ServedKind> kind;
  const Mode mode;

  // What it begins with.
  Loaded loaded;
  std::vector<Item> items;
  std::vector<Request> requests;
  std::optional<Attempts> attempts;  ///< Of the first item.
  std::vector<Stamp> gone;           ///< Who has begun with that, and has died.
  std::uint64_t round = 0;           ///< Of the slot, when the mailbox was read.
  bool read_all = false;             ///< Whether the mailbox had no more.
  std::optional<Lock> held;          ///< kUnlock only: the lock that it was done under.

  // What the handlers made of it.
  std::size_t handled = 0;  ///< Messages from the front.
  std::vector<Reply> replies;
  std::vector<Sent> casts;
  std::vector<Turn::Reply> other_replies;
  std::vector<Effect> effects;
  /// Of each message that asked for some.
  std::vector<std::vector<Action>> actions;
  std::optional<StateChanges> changes;  ///< Nothing if the state stays as it is.
  bool takes_lock = false;
  bool frees_lock = false;
  std::optional<std::string> stop;
  std::optional<Failure> failure;
  SessionId committed_by;  ///< The session of this node at the time: who holds the lock that it takes.

  /// Set by the commit when effects begin: what is refused from then on is their fault.
  mutable std::atomic<bool> effects_begun = false;
  /// Where the handlers are, and whether they were given up: for the watch over their time.
  std::atomic<std::size_t> at = 0;
  std::atomic<bool> settled = false;

  std::size_t size() const { return mode == Mode::kMailbox ? items.size() : requests.size(); }
  /// Runs the handlers. Afterwards either something was handled, or there is a failure of the first message.
  void handle(Scheduler& scheduler);
  std::string_view traceparent_of(std::size_t index) const;
  /// The head that its commit writes; nothing if that stays as it is.
  std::optional<Head> next_head(SessionId session) const;

 private:
  void handle_first(std::size_t most, Scheduler& scheduler);
  void forget_results();
  Result<Value> current_state() const;
  Result<Handled> handle_one(Activation& activation, std::size_t index, Turn& turn);
  std::optional<From> from_of(std::size_t index) const;
  void fail_at(std::size_t index, Error error);
  void fail_state(Error error);
};

/// Takes what a turn asked for over into a batch. Errors: kInvalidArgument, kTooLarge.
Result<void> take_effects(Batch& batch, Turn& turn);

/// The state in the schema of the kind, out of what is stored: made by init or upgrade where need be.
/// Errors: kUnsupportedFormat for a newer schema, and those of the behaviour.
Result<Value> state_for(const Loaded& loaded, const ServedKind& kind, const ActorId& actor);
/// What writes `state`; nothing if it is what is stored already. Errors: kTooLarge.
Result<std::optional<StateChanges>> changes_to(const Loaded& loaded, const ServedKind& kind, BytesView prefix,
                                               Value state);

}  // namespace perdure::actor
