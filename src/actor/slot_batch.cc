// The steps of a batch: load, handle, commit, and what follows from each.
#include <algorithm>

#include "actor/actors_impl.h"
#include "actor/mailbox.h"
#include "actor/slots.h"
#include "base/seeded_bug.h"
#include "base/time_math.h"
#include "session/rows.h"

namespace perdure::actor {
namespace {

constexpr unsigned kMissesBeforePush = 3;
constexpr Duration kMissPauseMax = std::chrono::milliseconds(50);
constexpr Duration kStorePause = std::chrono::milliseconds(50);
constexpr Duration kStorePauseMax = std::chrono::seconds(2);
constexpr Duration kLookAtOthersEvery = std::chrono::milliseconds(200);

/// Whether an error of a transaction says nothing about the messages in it.
bool is_of_the_store(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConflict:
    case ErrorCode::kStaleToken:
    case ErrorCode::kLimitExceeded:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadline:
    case ErrorCode::kCommitUnknown:
    case ErrorCode::kStoreFull:
    case ErrorCode::kStoreFailed:
    case ErrorCode::kCorrupt:
    case ErrorCode::kClosed:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Loading.

Result<Slots::Read> Slots::read(Transaction& txn, const Batch& batch, const std::optional<Head>& cached,
                                std::size_t items_max) {
  SystemAccess access(txn);
  Reader snapshot = txn.snapshot();
  Read result;
  result.head = read_head(snapshot, batch.prefix);
  bool cache_is_good = cached && result.head && cached->version == result.head->version;
  if (!cache_is_good) {
    Bytes key = state_key(batch.prefix);
    auto state = result.head ? read_state(key, snapshot.get_range(state_range(key))) : StoredState{};
    if (!state) return std::unexpected(std::move(state.error()));
    result.state = std::move(*state);
  }
  if (result.head && result.head->lock && !seeded(SeededBug::kKeepLocksOfTheDead))
    result.holder_gone = !session::is_open(snapshot, result.head->lock->session);
  bool is_locked = result.head && result.head->lock && !result.holder_gone;
  if (batch.mode != Batch::Mode::kMailbox || is_locked) return result;
  result.attempts = read_attempts(snapshot, batch.prefix);
  if (result.attempts)
    for (Stamp session : result.attempts->begun)
      if (!session::is_open(snapshot, {session})) result.gone.push_back(session);
  Bytes mailbox = mailbox_key(batch.prefix);
  auto rows = snapshot.get_range(tuple::extensions(mailbox), {.limit = items_max});
  result.all_items = rows.size() < items_max;
  for (const Row& row : rows) result.items.push_back(readable(txn, decode_item(mailbox, row)));
  return result;
}

void Slots::load(const SlotPtr& slot, const BatchPtr& batch) {
  std::optional<Head> cached;
  std::size_t items_max;
  {
    MutexLock lock(mutex_);
    if (slot->cached) cached = slot->cached->head;
    batch->round = slot->round;
    items_max = std::min(slot->kind->options.batch_max, slot->batch_limit);
  }
  home_.transact([batch, cached, items_max](Transaction& txn) { return read(txn, *batch, cached, items_max); },
                 [this, slot, batch](Result<Read> result, Receipt) { loaded(slot, batch, std::move(result)); },
                 {.timeout = std::chrono::seconds(5)});
}

void Slots::loaded(const SlotPtr& slot, const BatchPtr& batch, Result<Read> result) {
  if (!result) return store_failed(slot, batch, result.error());
  bool is_locked = result->head && result->head->lock;
  std::optional<Stamp> orphan;
  {
    MutexLock lock(mutex_);
    if (is_locked) orphan = orphaned(*result->head->lock);
    if (result->state) slot->cached.emplace(Loaded{result->head, std::move(*result->state)});
    slot->cached->head = result->head;
    batch->loaded = *slot->cached;
    slot->locked = is_locked;
  }
  batch->items = std::move(result->items);
  batch->read_all = result->all_items;
  batch->attempts = std::move(result->attempts);
  batch->gone = std::move(result->gone);
  bool free = result->holder_gone || orphan;
  if (is_locked && (batch->mode != Batch::Mode::kPriority || free)) return found_locked(slot, batch, free, orphan);
  if (batch->mode == Batch::Mode::kMailbox) return look_at_mailbox(slot, batch);
  handle(slot, batch);
}

std::optional<Stamp> Slots::orphaned(const Lock& lock) const {
  bool ours = home_.session_id() == lock.session;
  auto works = [&](const auto& job) { return job->lock.token == lock.token; };
  if (!ours || std::ranges::any_of(locked_, works) || seeded(SeededBug::kLeaveUnknownLock)) return std::nullopt;
  return lock.token;
}

void Slots::found_locked(const SlotPtr& slot, const BatchPtr& batch, bool free, std::optional<Stamp> orphan) {
  if (free) {
    // Nobody has swept after it yet, or this node does not know that it took it.
    home_.transact(
        [this, batch, orphan](Transaction& txn) {
          SystemAccess access(txn);
          auto head = read_head(txn, batch->prefix);
          bool gone = head && head->lock && !session::is_open(txn, head->lock->session);
          if (gone || (head && head->lock && orphan == head->lock->token))
            break_lock(txn, batch->actor, batch->prefix, *head,
                       {ErrorCode::kStaleToken,
                        "the node that held the lock of " + batch->actor.to_string() + " for this call is gone"},
                       home_.now());
        },
        [this, slot, batch](Result<void> broken, Receipt) {
          if (!broken) return store_failed(slot, batch, broken.error());
          finish(slot, batch);
        },
        {.body = Body::kShort, .reserve = Reserve::kMayUse});
    return;
  }
  After after;
  {
    MutexLock lock(mutex_);
    // Who unlocks it rings.
    if (batch->round == slot->round) not_in_mailbox(*slot, after);
  }
  finish(slot, batch, std::move(after));
}

bool Slots::careful(const Slot& slot, const Item& first) const {
  std::uint64_t since = home_.careful_version();
  return first.stamp.version.number <= since && slot.trusted < since;
}

void Slots::look_at_mailbox(const SlotPtr& slot, const BatchPtr& batch) {
  if (batch->items.empty()) return drained(slot, batch);
  const Item& first = batch->items[0];
  bool suspicious, begun_here, leave;
  {
    MutexLock lock(mutex_);
    suspicious = careful(*slot, first);
    begun_here = judge_attempts(*slot, *batch);
    leave = !begun_here && leave_to_others(*slot, *batch);
  }
  if (batch->attempts && batch->attempts->count >= slot->kind->options.attempts_max) {
    std::string text = batch->attempts->error;
    return bury_first(slot, batch, batch->attempts->count, {ErrorCode::kHandlerFailed, std::move(text)});
  }
  if (leave) {
    After after;
    {
      MutexLock lock(mutex_);
      slot->retry_at = home_.scheduler().now() + kLookAtOthersEvery;
      after.swap(slot->drained);
    }
    return finish(slot, batch, std::move(after));
  }
  if (suspicious || batch->attempts) {
    // Alone, so that it is known which one it was.
    batch->read_all = batch->read_all && batch->items.size() == 1;
    batch->items.resize(1);
  }
  if (!suspicious || begun_here) return handle(slot, batch);
  begin_attempt(slot, batch);
}

bool Slots::judge_attempts(const Slot& slot, Batch& batch) const {
  const Stamp first = batch.items[0].stamp;
  if (batch.attempts && batch.attempts->message != first) batch.attempts.reset();
  if (!batch.attempts) return false;
  bool begun_here = false;
  int died = 0;
  std::vector<Stamp> others;
  for (Stamp session : batch.attempts->begun) {
    // Also under a session that is lost by now: this process lives.
    if (slot.begun == std::pair(first, session))
      begun_here = true;
    else if (std::ranges::find(batch.gone, session) != batch.gone.end())
      ++died;
    else
      others.push_back(session);
  }
  batch.attempts->count += died;
  if (died > 0) batch.attempts->error = "the process died while handling it";
  batch.attempts->begun = std::move(others);
  return begun_here;
}

/// Where nobody is told that a process has died, a session that has begun with the message may be one that it killed.
/// Who went on regardless would die of it as well, before it has lived for long enough to know: for ever, if there is
/// nobody else. Those who are alive are done with it or dead sooner than that.
bool Slots::leave_to_others(Slot& slot, const Batch& batch) {
  if (home_.is_told_of_deaths() || !batch.attempts || batch.attempts->begun.empty()) return false;
  const Stamp first = batch.items[0].stamp;
  SteadyTime now = home_.scheduler().now();
  if (!slot.left_to_others || slot.left_to_others->first != first) slot.left_to_others.emplace(first, now);
  return now < plus(slot.left_to_others->second, plus(home_.options().session.ttl, std::chrono::seconds(2)));
}

void Slots::begin_attempt(const SlotPtr& slot, const BatchPtr& batch) {
  const Stamp self = home_.identity();
  Attempts begun = batch->attempts.value_or(Attempts{batch->items[0].stamp});
  std::erase(begun.begun, self);
  begun.begun.push_back(self);
  {
    MutexLock lock(mutex_);
    slot->begun = std::pair(begun.message, self);
  }
  home_.transact(
      [batch, begun, self](Transaction& txn) -> Result<bool> {
        // Under a session that is over, other nodes would count a death each time that this one begins.
        if (SystemAccess access(txn); !session::is_open(txn, {self}))
          return fail(ErrorCode::kStaleToken, "this node has no session to begin the message under");
        return note_attempt(txn, batch->prefix, batch->items[0], begun);
      },
      [this, slot, batch, begun](Result<bool> noted, Receipt) {
        if (!noted) return store_failed(slot, batch, noted.error());
        if (!*noted) return was_stale(slot, batch);
        batch->attempts = begun;
        batch->attempts->begun.pop_back();
        handle(slot, batch);
      },
      {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

// Handling.

void Slots::handle(const SlotPtr& slot, const BatchPtr& batch) {
  const KindOptions& options = batch->kind->options;
  // While the handlers run neither this node nor its store goes away, unless they are given up.
  auto use = std::make_shared<std::optional<Gate::Use>>(std::in_place, home_.enter());
  if (!**use) return not_handled(slot, batch);
  auto run = [this, slot, batch, use, &scheduler = home_.scheduler()] {
    batch->handle(scheduler);
    if (batch->settled.exchange(true)) return;
    handled(slot, batch);
    use->reset();
  };
  auto overrun = [this, slot, batch, use] {
    if (batch->settled.exchange(true)) return;
    overran(slot, batch);
    use->reset();
  };
  bool limited = options.limit < Duration::max() - options.batch_time;
  home_.handlers().run({.run = std::move(run),
                        .limit = limited ? options.limit + options.batch_time : Duration::max(),
                        .overrun = std::move(overrun),
                        .dropped = [this, slot, batch, use] { not_handled(slot, batch); }});
}

void Slots::not_handled(const SlotPtr& slot, const BatchPtr& batch) {
  for (Request& request : batch->requests)
    request.refuse({ErrorCode::kClosed, "this node was closed before it came to the message"});
  After after;
  {
    MutexLock lock(mutex_);
    not_in_mailbox(*slot, after);
  }
  finish(slot, batch, std::move(after));
}

void Slots::overran(const SlotPtr& slot, const BatchPtr& batch) {
  // The handler still runs, and may write to the batch: from here on it is its own.
  auto rest = std::make_shared<Batch>(batch->actor, batch->prefix, batch->kind, batch->mode);
  rest->loaded = batch->loaded;
  rest->items = batch->items;
  rest->requests = batch->requests;
  rest->attempts = batch->attempts;
  rest->round = batch->round;
  std::size_t index = batch->at;
  home_.warn("a handler runs past its limit, and is given up", batch->actor);
  if (index > 0) {
    MutexLock lock(mutex_);
    slot->batch_limit = index;
  }
  if (index > 0) return finish(slot, rest);
  auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(batch->kind->options.limit);
  rest->failure = Batch::Failure{
      0, {ErrorCode::kHandlerFailed, "the handler ran past its limit of " + std::to_string(limit.count()) + " ms"}};
  failed(slot, rest);
}

void Slots::handled(const SlotPtr& slot, const BatchPtr& batch) {
  if (batch->failure) return failed(slot, batch);
  commit(slot, batch);
}

void Slots::failed(const SlotPtr& slot, const BatchPtr& batch) {
  const Batch::Failure& failure = *batch->failure;
  if (failure.newer) return found_newer(slot, batch, failure.error);
  if (batch->mode == Batch::Mode::kMailbox) return mailbox_failed(slot, batch);
  After after;
  bool retry = batch->mode == Batch::Mode::kInline && failure.retry;
  if (!retry) {
    batch->requests[0].refuse(failure.error);
  } else {
    // It is kept, and tried again from the mailbox; those behind it stay behind it.
    MutexLock lock(mutex_);
    for (std::size_t i = batch->requests.size(); i-- > 0;) slot->requests.push_front(std::move(batch->requests[i]));
    batch->requests.clear();
    push_requests(*slot, after);
  }
  finish(slot, batch, std::move(after));
}

void Slots::mailbox_failed(const SlotPtr& slot, const BatchPtr& batch) {
  const Batch::Failure& failure = *batch->failure;
  const KindOptions& options = batch->kind->options;
  int count = (batch->attempts && !seeded(SeededBug::kForgetAttempts) ? batch->attempts->count : 0) + 1;
  {
    MutexLock lock(mutex_);
    slot->begun.reset();
  }
  if (!failure.retry || count >= options.attempts_max) return bury_first(slot, batch, count, failure.error);
  Attempts attempts{batch->items[0].stamp, count, failure.error.message};
  if (batch->attempts) attempts.begun = batch->attempts->begun;
  home_.transact(
      [batch, attempts](Transaction& txn) { return note_attempt(txn, batch->prefix, batch->items[0], attempts); },
      [this, slot, batch, count](Result<bool> noted, Receipt) {
        if (!noted) return store_failed(slot, batch, noted.error());
        if (!*noted) return was_stale(slot, batch);
        const KindOptions& kind = batch->kind->options;
        After after;
        {
          MutexLock lock(mutex_);
          slot->retry_at = plus(home_.scheduler().now(),
                                doubled(kind.back_off, static_cast<unsigned>(count - 1), kind.back_off_max));
          slot->batch_limit = SIZE_MAX;
          // Whoever found it need not wait until it is in order again.
          after.swap(slot->drained);
        }
        finish(slot, batch, std::move(after));
      },
      {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

void Slots::bury_first(const SlotPtr& slot, const BatchPtr& batch, int attempts, const Error& error) {
  home_.warn("a message became a dead letter: " + error.message, batch->actor);
  home_.transact([batch, attempts, error, now = home_.now()](
                     Transaction& txn) { return bury(txn, batch->actor, batch->items[0], attempts, error, now); },
                 [this, slot, batch](Result<bool> buried, Receipt) {
                   if (!buried) return store_failed(slot, batch, buried.error());
                   {
                     MutexLock lock(mutex_);
                     slot->batch_limit = SIZE_MAX;
                   }
                   finish(slot, batch);
                 },
                 {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

void Slots::found_newer(const SlotPtr& slot, const BatchPtr& batch, const Error& error) {
  home_.warn(error.message, batch->actor);
  for (Request& request : batch->requests) request.refuse(error);
  After after;
  {
    MutexLock lock(mutex_);
    // Its messages are for another node.
    not_in_mailbox(*slot, after);
    slot->cached.reset();
  }
  finish(slot, batch, std::move(after));
}

// Committing.

void Slots::commit(const SlotPtr& slot, const BatchPtr& batch) {
  CommitContext context{home_.session_id(), home_.now()};
  batch->committed_by = context.session.value_or(SessionId{});
  if (seeded(SeededBug::kAnswerTooEarly)) answer_local(batch);
  // Consuming frees space, so it may use what is kept back for that.
  Reserve reserve = batch->mode == Batch::Mode::kMailbox ? Reserve::kMayUse : Reserve::kKeepOut;
  home_.transact([batch, context](Transaction& txn) { return commit_batch(txn, *batch, context); },
                 [this, slot, batch](Result<Verdict> verdict, Receipt receipt) {
                   committed(slot, batch, std::move(verdict), receipt);
                 },
                 {.body = Body::kShort, .reserve = reserve});
}

void Slots::committed(const SlotPtr& slot, const BatchPtr& batch, Result<Verdict> verdict, Receipt receipt) {
  if (verdict && *verdict == Verdict::kCommitted) return took_effect(slot, batch, receipt);
  if (verdict && *verdict == Verdict::kStale) return was_stale(slot, batch);
  // A fence among the effects, say, is a fault of the message, and not of the store.
  bool of_effects = !verdict && batch->effects_begun && verdict.error().code == ErrorCode::kStaleToken;
  if (!verdict && is_of_the_store(verdict.error().code) && !of_effects)
    return store_failed(slot, batch, verdict.error());
  if (verdict) {
    MutexLock lock(mutex_);
    slot->in_mailbox = true;
    ++slot->round;
  } else if (batch->handled > 1) {
    // Which of them it was shows when each goes alone.
    MutexLock lock(mutex_);
    slot->batch_limit = 1;
  } else {
    batch->failure = Batch::Failure{0, {ErrorCode::kHandlerFailed, verdict.error().message}};
    batch->handled = 0;
    return failed(slot, batch);
  }
  batch->handled = 0;
  finish(slot, batch);
}

void Slots::took_effect(const SlotPtr& slot, const BatchPtr& batch, Receipt receipt) {
  auto head = batch->next_head(batch->committed_by);
  if (head) head = head->committed_at(receipt.stamp());
  bool empty = false;
  {
    MutexLock lock(mutex_);
    slot->misses = 0;
    slot->failures = 0;
    // What was read and not handled was read for nothing.
    bool all = batch->handled == batch->size();
    slot->batch_limit = !all ? 2 * batch->handled : slot->batch_limit > SIZE_MAX / 2 ? SIZE_MAX : 2 * slot->batch_limit;
    if (batch->mode == Batch::Mode::kMailbox) slot->trusted = std::max(slot->trusted, home_.careful_version());
    if (head && slot->cached) {
      slot->cached->head = head;
      if (batch->changes) slot->cached->state = batch->changes->after;
    }
    if (head && home_.options().cache_bytes == 0) slot->cached.reset();
    if (batch->takes_lock) slot->locked = true;
    if (batch->frees_lock) slot->locked = false;
    empty = batch->mode == Batch::Mode::kMailbox && batch->read_all && batch->handled == batch->items.size() &&
            !batch->takes_lock && slot->round == batch->round;
  }
  if (batch->takes_lock) start_locked(slot, batch, *head);
  answer_local(batch);
  if (seeded(SeededBug::kSplitEffects)) home_.callers().push_apart(batch->casts);
  run_actions(batch);
  if (empty) return drained(slot, batch);
  finish(slot, batch);
}

void Slots::drained(const SlotPtr& slot, const BatchPtr& batch) {
  home_.transact([batch](Transaction& txn) { return clear_ready(txn, batch->actor); },
                 [this, slot, batch](Result<Cleared> cleared, Receipt) {
                   // Then it is looked at again, for nobody else may find the mark for long.
                   if (!cleared) return store_failed(slot, batch, cleared.error());
                   After after;
                   {
                     MutexLock lock(mutex_);
                     if (*cleared == Cleared::kDone && slot->round == batch->round) not_in_mailbox(*slot, after);
                   }
                   finish(slot, batch, std::move(after));
                 },
                 {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

void Slots::was_stale(const SlotPtr& slot, const BatchPtr& batch) {
  After after;
  batch->handled = 0;
  {
    MutexLock lock(mutex_);
    slot->cached.reset();
    unsigned misses = ++slot->misses;
    // Others are at the same actor: let one of them have it, and the rest wait in its mailbox.
    if (batch->mode == Batch::Mode::kInline && misses >= kMissesBeforePush) {
      for (std::size_t i = batch->requests.size(); i-- > 0;) slot->requests.push_front(std::move(batch->requests[i]));
      batch->requests.clear();
      push_requests(*slot, after);
    }
    if (misses > 1)
      slot->pause_until = home_.scheduler().now() + doubled(std::chrono::milliseconds(1), misses - 2, kMissPauseMax);
  }
  finish(slot, batch, std::move(after));
}

void Slots::store_failed(const SlotPtr& slot, const BatchPtr& batch, const Error& error) {
  batch->handled = 0;
  // What may have taken effect must not be done again; and who waits decides itself whether to try again.
  for (Request& request : batch->requests) {
    // Perhaps it waits in the store by now, for nobody.
    if (request.caller && error.outcome() == Outcome::kUnknown) home_.callers().forget(batch->actor, *request.caller);
    request.refuse(error);
  }
  {
    MutexLock lock(mutex_);
    slot->cached.reset();
    unsigned failures = slot->failures++;
    // It may have been taken, with nobody at work under it: that shows at the next look.
    if (batch->takes_lock && error.outcome() == Outcome::kUnknown) slot->in_mailbox = true;
    if (slot->in_mailbox) slot->pause_until = home_.scheduler().now() + doubled(kStorePause, failures, kStorePauseMax);
  }
  finish(slot, batch);
}

void Slots::answer_local(const BatchPtr& batch) {
  if (batch->mode == Batch::Mode::kMailbox) return;
  auto wait_or_done = [&](Request& request) {
    if (request.caller)
      home_.callers().await(batch->actor, *request.caller, request.waiter);
    else
      request.waiter->answer(Value());
  };
  for (Batch::Reply& reply : batch->replies) {
    Request& request = batch->requests[reply.index];
    if (reply.reply)
      request.waiter->answer(std::move(*reply.reply));
    else
      wait_or_done(request);
  }
  if (batch->takes_lock) wait_or_done(batch->requests[batch->handled - 1]);
  if (!batch->stop) return;
  Error gone = stopped(batch->actor, *batch->stop);
  for (std::size_t i = batch->handled; i < batch->requests.size(); ++i)
    if (batch->requests[i].type == MessageType::kCall) batch->requests[i].refuse(gone);
}

void Slots::run_actions(const BatchPtr& batch) {
  if (batch->actions.empty()) return;
  auto state = std::make_shared<Value>(batch->changes ? batch->changes->after.value : batch->loaded.state.value);
  home_.run_actions(std::move(batch->actions), std::move(state));
}

}  // namespace perdure::actor
