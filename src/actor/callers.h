// Those of this process who wait for an actor: through the mailbox, with rows in the store that the reply comes to.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actor/batch.h"
#include "actor/request.h"

namespace perdure {
class ActorsImpl;
}

namespace perdure::actor {

class Callers {
 public:
  explicit Callers(ActorsImpl& home) : home_(home) {}

  /// A name for a caller of this process that nobody has had before.
  Caller make_caller();
  /// Answers it in time, whatever becomes of its message; Duration::max() never.
  void set_timer(const ActorId& actor, const Caller& caller, const std::shared_ptr<Waiter>& waiter, Duration timeout);
  /// Pushes the messages in one transaction, in order; casts are answered by its commit, calls by their reply.
  void push(const ActorId& actor, std::vector<Request> requests);
  /// Waits for a reply in the store, of a caller of this process or of one that is gone.
  void await(const ActorId& actor, const Caller& caller, std::shared_ptr<Waiter> waiter);
  /// Gives up waiting: clears what there is in the store.
  void forget(const ActorId& actor, const Caller& caller);
  /// Nobody will be told of replies any more: answers all who wait for one.
  void close(const Error& why) PERDURE_EXCLUDES(mutex_);
  /// What SeededBug::kSplitEffects does.
  void push_apart(const std::vector<Batch::Sent>& casts);

 private:
  void pushed(const ActorId& actor, std::vector<Request> requests, Result<std::vector<Watch>> result);
  void wait_on(Watch watch, const ActorId& actor, const Caller& caller, std::shared_ptr<Waiter> waiter);
  void time_out(const ActorId& actor, const Caller& caller, const std::shared_ptr<Waiter>& waiter);

  /// Answers it, and forgets that it waits.
  void answer(Waiter& waiter, Result<Value> reply) PERDURE_EXCLUDES(mutex_);

  ActorsImpl& home_;
  std::atomic<std::uint64_t> last_number_ = 0;
  Mutex mutex_;
  /// Those who wait for a watch, in the order in which they came: several may wait for the same call.
  std::map<std::uint64_t, std::shared_ptr<Waiter>> waiting_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t last_place_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::optional<Error> closed_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::actor
