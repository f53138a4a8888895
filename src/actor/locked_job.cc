// Work under the lock of an actor.
//
// The lock was taken in the transaction that consumed its message, and names the session of this node. From then on the
// handler runs here for as long as it likes, with a copy of the state. Its end is one transaction that looks whether
// the lock is still the same and held by an open session; what priority messages wrote meanwhile is merged with what
// the handler did, per entry.
#include "actor/locked_job.h"

#include <algorithm>

#include "actor/actors_impl.h"
#include "actor/mailbox.h"
#include "actor/merge.h"
#include "actor/slots.h"
#include "base/seeded_bug.h"
#include "runtime/guarded_handler.h"
#include "session/rows.h"

namespace perdure::actor {

void Slots::start_locked(const SlotPtr& slot, const BatchPtr& batch, const Head& head) {
  auto job = std::make_shared<LockedJob>();
  job->actor = slot->id;
  job->prefix = slot->prefix;
  job->kind = batch->kind;
  job->lock = *head.lock;
  job->base = {head, batch->changes ? batch->changes->after : batch->loaded.state};
  std::size_t last = batch->handled - 1;
  job->traceparent = batch->traceparent_of(last);
  // It could be read when it was handled.
  if (batch->mode == Batch::Mode::kMailbox)
    job->message = Value::decode(batch->items[last].message.body).value_or(Value());
  else
    job->message = std::move(batch->requests[last].message);
  {
    MutexLock lock(mutex_);
    locked_.push_back(job);
  }
  watch_lock(job);
  // It may take longer than this node lives, and finds that out at its end.
  auto ended = home_.guarded([this, job] { unlock(job, job->base); });
  auto run = [job, ended = std::move(ended)]() mutable {
    run_locked_handler(*job);
    // It is over for the handler: that the lock goes now is not its concern.
    job->cancel.drop();
    ended();
  };
  // The lock is free with the end of the session, which is near.
  home_.locked_handlers().run({.run = std::move(run), .dropped = home_.guarded([this, job] { end_locked(job); })});
}

void Slots::watch_lock(const std::shared_ptr<LockedJob>& job) {
  struct Seen {
    bool ours = false;
    Watch watch;
  };
  home_.transact(
      [job](Transaction& txn) {
        SystemAccess access(txn);
        Reader snapshot = txn.snapshot();
        auto head = read_head(snapshot, job->prefix);
        bool ours = head && head->lock && head->lock->token == job->lock.token;
        return Seen{ours, txn.watch(head_key(job->prefix))};
      },
      [this, job](Result<Seen> seen, Receipt) {
        if (!seen && seen.error().code == ErrorCode::kClosed) return;
        if (!seen) {
          home_.at(home_.scheduler().now() + std::chrono::milliseconds(200), [this, job] { watch_lock(job); });
          return;
        }
        {
          MutexLock lock(mutex_);
          if (std::ranges::find(locked_, job) == locked_.end()) return seen->watch.cancel();
          job->watch = seen->watch;
        }
        if (seen->ours) return seen->watch.then(home_.guarded([this, job] { watch_lock(job); }));
        seen->watch.cancel();
        job->cancel.cancel();
      },
      {});
}

void run_locked_handler(LockedJob& job) {
  std::optional<From> from;
  if (job.lock.caller) from = job.lock.caller->from(job.actor);
  Turn turn(job.actor, std::move(from), 1, job.traceparent, job.cancel.signal());
  Batch scratch(job.actor, job.prefix, job.kind, Batch::Mode::kUnlock);
  auto ran = [&]() -> Result<void> {
    auto activation = guarded_handler([&] { return job.kind->behaviour->activate(job.actor, job.base.state.value); });
    if (!activation) return std::unexpected(std::move(activation.error()));
    auto handled = guarded_handler([&] { return (*activation)->handle_locked(job.message, turn); });
    if (!handled) return std::unexpected(std::move(handled.error()));
    if (handled->then == Handled::Then::kLock)
      return fail(ErrorCode::kHandlerFailed, "handle_locked asked for the lock, which it has");
    if (handled->reply && handled->reply->encoded_size() > kReplyBytesMax)
      return fail(ErrorCode::kHandlerFailed, "the reply is too large");
    if (auto taken = take_effects(scratch, turn); !taken) return taken;
    if (handled->then == Handled::Then::kStop) job.stop = std::move(handled->reason);
    auto state = guarded_handler([&]() -> Result<Value> { return (*activation)->state(); });
    if (!state) return std::unexpected(std::move(state.error()));
    job.state = std::move(*state);
    if (handled->reply) job.reply.emplace(std::move(*handled->reply));
    return {};
  }();
  if (!ran) {
    job.reply.emplace(std::unexpected(Error{ErrorCode::kHandlerFailed, ran.error().message}));
    return;
  }
  job.casts = std::move(scratch.casts);
  job.other_replies = std::move(scratch.other_replies);
  job.effects = std::move(scratch.effects);
  job.actions = std::move(scratch.actions);
}

void Slots::unlock(const std::shared_ptr<LockedJob>& job, Loaded current) {
  auto batch = std::make_shared<Batch>(job->actor, job->prefix, job->kind, Batch::Mode::kUnlock);
  batch->held = job->lock;
  auto refuse = [&](Error error) { job->reply.emplace(std::unexpected(std::move(error))); };
  bool moved = !current.head || current.head->version != job->base.head->version;
  Result<Value> state = current.state.value;
  if (job->state && current.head && current.head->schema != job->base.head->schema)
    state = fail(ErrorCode::kConflict, job->actor.to_string() + " was upgraded by another node while it was locked");
  else if (job->state)
    state = moved && !seeded(SeededBug::kOverwriteAfterLock)
                ? merge(job->base.state.value, *job->state, current.state.value)
                : Result<Value>(*job->state);
  batch->loaded = std::move(current);
  if (state && job->state) {
    auto made = changes_to(batch->loaded, *job->kind, batch->prefix, std::move(*state));
    if (made)
      batch->changes = std::move(*made);
    else
      state = std::unexpected(std::move(made.error()));
  }
  if (state) {
    batch->casts = job->casts;
    batch->other_replies = job->other_replies;
    batch->effects = job->effects;
    batch->stop = job->stop;
  } else {
    // The lock is given back all the same, and nothing else.
    refuse(std::move(state.error()));
    job->actions.clear();
  }
  if (job->reply) batch->replies.push_back({0, *job->reply});
  CommitContext context{home_.session_id(), home_.now()};
  home_.transact([batch, context](Transaction& txn) { return commit_batch(txn, *batch, context); },
                 [this, job, batch](Result<Verdict> verdict, Receipt receipt) {
                   unlocked(job, batch, std::move(verdict), receipt);
                 },
                 {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

void Slots::unlocked(const std::shared_ptr<LockedJob>& job, const BatchPtr& batch, Result<Verdict> verdict,
                     Receipt receipt) {
  (void)receipt;
  if (verdict && *verdict == Verdict::kStale) return reload_locked(job);
  if (verdict) {
    batch->actions = std::move(job->actions);
    run_actions(batch);
    return end_locked(job);
  }
  const Error& error = verdict.error();
  // Worth trying again as long as the lock may be ours: if it took effect after all, the lock is gone.
  bool unknown = error.outcome() == Outcome::kUnknown && !seeded(SeededBug::kLeaveUnknownLock);
  bool later = unknown || (error.retryable() && error.code != ErrorCode::kMailboxFull);
  if (later && home_.session_id() == job->lock.session) {
    home_.at(home_.scheduler().now() + std::chrono::milliseconds(100), [this, job] { reload_locked(job); });
    return;
  }
  if (error.code == ErrorCode::kStaleToken || later || error.outcome() == Outcome::kUnknown ||
      error.code == ErrorCode::kClosed)
    return end_locked(job);
  // What was to be committed with it is refused: then the lock alone is given back, and the caller told.
  if (!job->state && job->effects.empty() && job->casts.empty()) return end_locked(job);
  job->state.reset();
  job->casts.clear();
  job->other_replies.clear();
  job->effects.clear();
  job->actions.clear();
  job->stop.reset();
  job->reply.emplace(std::unexpected(Error{ErrorCode::kHandlerFailed, error.message}));
  reload_locked(job);
}

void Slots::reload_locked(const std::shared_ptr<LockedJob>& job) {
  home_.transact(
      [job](Transaction& txn) -> Result<Loaded> {
        SystemAccess access(txn);
        Reader snapshot = txn.snapshot();
        Loaded now;
        now.head = read_head(snapshot, job->prefix);
        bool ours = now.head && now.head->lock && now.head->lock->token == job->lock.token;
        if (!ours && !(now.head && seeded(SeededBug::kLockWithoutToken)))
          return fail(ErrorCode::kStaleToken, "the lock of " + job->actor.to_string() + " was taken away");
        Bytes key = state_key(job->prefix);
        auto state = read_state(key, snapshot.get_range(state_range(key)));
        if (!state) return std::unexpected(std::move(state.error()));
        now.state = std::move(*state);
        return now;
      },
      [this, job](Result<Loaded> now, Receipt) {
        if (now) return unlock(job, std::move(*now));
        if (now.error().retryable() && home_.session_id() == job->lock.session) {
          home_.at(home_.scheduler().now() + std::chrono::milliseconds(100), [this, job] { reload_locked(job); });
          return;
        }
        end_locked(job);
      },
      {});
}

void Slots::end_locked(const std::shared_ptr<LockedJob>& job) {
  SlotPtr slot;
  Watch watch;
  {
    MutexLock lock(mutex_);
    std::erase(locked_, job);
    watch = std::exchange(job->watch, {});
    auto found = slots_.find(job->prefix);
    if (found != slots_.end()) slot = found->second;
    if (slot) {
      slot->locked = false;
      if (!slot->busy) slot->cached.reset();
    }
  }
  watch.cancel();
  job->cancel.drop();
  if (slot) advance(slot);
  check_idle();
}

}  // namespace perdure::actor
