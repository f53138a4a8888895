// The actors that this node is busy with.
//
// Each has a slot: what is known of its state, what is to be done for it, and at most one batch under way. So a node is
// in nobody's way but that of other nodes, and those lose at the commit, not before. A slot that has nothing to do is
// kept for its state as long as the cache has room, and then forgotten: an idle actor costs no memory.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actor/batch.h"
#include "actor/commit.h"
#include "actor/locked_job.h"
#include "actor/request.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "session/timed_part.h"

namespace perdure {
class ActorsImpl;
}

namespace perdure::actor {

class Slots {
 public:
  explicit Slots(ActorsImpl& home) : home_(home) {}

  /// Handles a message of this process, inline if that is possible, else through the mailbox.
  void request(const ActorId& actor, const std::shared_ptr<ServedKind>& kind, Request request, Way way)
      PERDURE_EXCLUDES(mutex_);
  /// Somebody has seen that the mailbox may have messages. `drained` is called once it has been looked after.
  void mailbox_ready(const ActorId& actor, const std::shared_ptr<ServedKind>& kind, Task drained)
      PERDURE_EXCLUDES(mutex_);
  /// From now on the actors of a kind are handled by this.
  void replace_kind(const std::shared_ptr<ServedKind>& kind) PERDURE_EXCLUDES(mutex_);
  /// Mailboxes may be looked after again.
  void advance_all() PERDURE_EXCLUDES(mutex_);
  /// From now on they are not handled here: what waits in this process goes to the mailboxes, and stays there.
  void stop_kind(const std::shared_ptr<ServedKind>& kind) PERDURE_EXCLUDES(mutex_);
  /// The session is over: whoever works under a lock is told.
  void cancel_locked() PERDURE_EXCLUDES(mutex_);
  /// Begins nothing more; those of this process who wait are answered with `why`.
  void close(const Error& why) PERDURE_EXCLUDES(mutex_);
  /// After `close`: calls `idle` once nothing is under way any more, neither a batch nor work under a lock.
  void when_idle(Task idle) PERDURE_EXCLUDES(mutex_);
  /// Whether a batch or work under a lock is under way or to be begun; how many batches were begun.
  TimedPart::Activity activity() PERDURE_EXCLUDES(mutex_);
  /// How many actors are in memory.
  std::size_t size() PERDURE_EXCLUDES(mutex_);

 private:
  struct Slot {
    Slot(ActorId actor, Bytes key_prefix, std::shared_ptr<ServedKind> served)
        : id(std::move(actor)), prefix(std::move(key_prefix)), kind(std::move(served)) {}
    const ActorId id;
    const Bytes prefix;
    std::shared_ptr<ServedKind> kind;

    bool busy = false;  ///< A batch is under way.
    /// The mailbox may have messages; counts how often somebody said so, to know what a batch has not seen yet.
    bool in_mailbox = false;
    std::uint64_t round = 0;
    bool locked = false;
    std::deque<Request> requests;
    std::deque<Request> priority;
    bool was_priority = false;  ///< The last batch: then others have their turn first.
    std::optional<Loaded> cached;
    std::size_t cached_bytes = 0;
    std::size_t batch_limit = SIZE_MAX;  ///< For the next batch, after one failed in the middle.
    unsigned misses = 0;                 ///< How often in a row the state was not what it began with.
    unsigned failures = 0;               ///< Of the store, in a row.
    SteadyTime pause_until;              ///< For all messages.
    SteadyTime retry_at;                 ///< For the mailbox, while its first message backs off.
    /// Messages up to this version are not suspected of killing processes.
    std::uint64_t trusted = 0;
    /// The message that this process noted before it began with it, and the session that it had then: it lives, so
    /// whatever came of that, it has not died of it.
    std::optional<std::pair<Stamp, Stamp>> begun;
    /// The message that another has begun with whose fate is waited for, and since when.
    std::optional<std::pair<Stamp, SteadyTime>> left_to_others;
    std::vector<Task> drained;
    std::optional<std::list<std::shared_ptr<Slot>>::iterator> idle;
  };
  using SlotPtr = std::shared_ptr<Slot>;
  using BatchPtr = std::shared_ptr<Batch>;
  /// What is to be done once the lock is given back.
  using After = std::vector<Task>;

  SlotPtr find_or_make(const ActorId& actor, const std::shared_ptr<ServedKind>& kind) PERDURE_REQUIRES(mutex_);
  /// Begins the next batch, if there is something to do and none is under way.
  void advance(const SlotPtr& slot) PERDURE_EXCLUDES(mutex_);
  BatchPtr next_batch(Slot& slot, After& after) PERDURE_REQUIRES(mutex_);
  bool must_push(const Slot& slot, SteadyTime now) const PERDURE_REQUIRES(mutex_);
  void push_requests(Slot& slot, After& after) PERDURE_REQUIRES(mutex_);
  /// Its kind is not served any more: lets go of what waits here.
  void give_away(Slot& slot, After& after) PERDURE_REQUIRES(mutex_);
  void retire(const SlotPtr& slot) PERDURE_REQUIRES(mutex_);
  void shrink() PERDURE_REQUIRES(mutex_);
  void not_in_mailbox(Slot& slot, After& after) PERDURE_REQUIRES(mutex_);
  void advance_at(const SlotPtr& slot, SteadyTime when);
  /// Tells whoever waits for it that nothing is under way, if that is so.
  void check_idle() PERDURE_EXCLUDES(mutex_);
  /// The batch is over: what it did not handle goes back.
  void finish(const SlotPtr& slot, const BatchPtr& batch, After after = {}) PERDURE_EXCLUDES(mutex_);

  // The steps of a batch.
  struct Read {
    std::optional<Head> head;
    std::optional<StoredState> state;  ///< Nothing if the cached one is still good.
    std::vector<Item> items;
    bool all_items = false;
    std::optional<Attempts> attempts;
    std::vector<Stamp> gone;  ///< Those who have begun, and whose sessions are over.
    bool holder_gone = false;
  };
  void load(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  static Result<Read> read(Transaction& txn, const Batch& batch, const std::optional<Head>& cached,
                           std::size_t items_max);
  void loaded(const SlotPtr& slot, const BatchPtr& batch, Result<Read> result) PERDURE_EXCLUDES(mutex_);
  /// What is known of the first message; whether this process has begun with it before.
  bool judge_attempts(const Slot& slot, Batch& batch) const PERDURE_REQUIRES(mutex_);
  /// Whether the first message is to be left alone for now: others have begun with it, and may have died of it.
  bool leave_to_others(Slot& slot, const Batch& batch) PERDURE_REQUIRES(mutex_);
  void look_at_mailbox(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  void handle(const SlotPtr& slot, const BatchPtr& batch);
  void overran(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  /// The handlers will not run: this node is closing.
  void not_handled(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  void handled(const SlotPtr& slot, const BatchPtr& batch);
  void commit(const SlotPtr& slot, const BatchPtr& batch);
  void committed(const SlotPtr& slot, const BatchPtr& batch, Result<Verdict> verdict, Receipt receipt)
      PERDURE_EXCLUDES(mutex_);
  void took_effect(const SlotPtr& slot, const BatchPtr& batch, Receipt receipt) PERDURE_EXCLUDES(mutex_);
  void was_stale(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  void failed(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  void mailbox_failed(const SlotPtr& slot, const BatchPtr& batch);
  void store_failed(const SlotPtr& slot, const BatchPtr& batch, const Error& error) PERDURE_EXCLUDES(mutex_);
  /// The token of a lock that this node holds, and has nobody at work under: the outcome of taking or of giving it back
  /// was unknown.
  std::optional<Stamp> orphaned(const Lock& lock) const PERDURE_REQUIRES(mutex_);
  void found_locked(const SlotPtr& slot, const BatchPtr& batch, bool free, std::optional<Stamp> orphan)
      PERDURE_EXCLUDES(mutex_);
  void found_newer(const SlotPtr& slot, const BatchPtr& batch, const Error& error) PERDURE_EXCLUDES(mutex_);
  void begin_attempt(const SlotPtr& slot, const BatchPtr& batch);
  void bury_first(const SlotPtr& slot, const BatchPtr& batch, int attempts, const Error& error);
  void drained(const SlotPtr& slot, const BatchPtr& batch) PERDURE_EXCLUDES(mutex_);
  void answer_local(const BatchPtr& batch);
  void run_actions(const BatchPtr& batch);
  bool careful(const Slot& slot, const Item& first) const PERDURE_REQUIRES(mutex_);

  // Work under a lock: locked_job.cc.
  void start_locked(const SlotPtr& slot, const BatchPtr& batch, const Head& head) PERDURE_EXCLUDES(mutex_);
  void watch_lock(const std::shared_ptr<LockedJob>& job);
  void unlock(const std::shared_ptr<LockedJob>& job, Loaded current);
  void unlocked(const std::shared_ptr<LockedJob>& job, const BatchPtr& batch, Result<Verdict> verdict, Receipt receipt)
      PERDURE_EXCLUDES(mutex_);
  void reload_locked(const std::shared_ptr<LockedJob>& job);
  void end_locked(const std::shared_ptr<LockedJob>& job) PERDURE_EXCLUDES(mutex_);

  ActorsImpl& home_;
  Mutex mutex_;
  std::unordered_map<Bytes, SlotPtr> slots_ PERDURE_GUARDED_BY(mutex_);
  /// Those with nothing to do, longest unused first.
  std::list<SlotPtr> idle_ PERDURE_GUARDED_BY(mutex_);
  std::size_t cached_bytes_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t busy_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::uint64_t begun_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// In the order in which they began.
  std::vector<std::shared_ptr<LockedJob>> locked_ PERDURE_GUARDED_BY(mutex_);
  std::optional<Error> closed_ PERDURE_GUARDED_BY(mutex_);
  std::vector<Task> when_idle_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::actor
