#include "actor/commit.h"

#include <algorithm>

#include "actor/mailbox.h"
#include "base/seeded_bug.h"
#include "base/time_math.h"
#include "session/rows.h"

namespace perdure::actor {
namespace {

/// Calls that a stop fails; those behind so many are handled.
constexpr std::size_t kStopCallsMax = 5'000;

bool same_version(const std::optional<Bytes>& row, const std::optional<Head>& head) {
  if (!row || !head) return !row && !head;
  auto stamp = head->version.encode();
  return BytesView(*row).starts_with(BytesView(stamp.data(), stamp.size()));
}

bool mailbox_is_empty(Transaction& txn, BytesView prefix) {
  return txn.get_range(tuple::extensions(mailbox_key(prefix)), {.limit = 1}).empty();
}

ChangeNote change_of(const ActorId& actor, ChangeState state, WallTime now) {
  return {.type = ChangeType::kActor,
          .state = state,
          .space = actor.space,
          .name = actor.kind,
          .id = std::string_view(actor.id),
          .at = now};
}

/// One for all messages of a batch. Those that changed nothing and stood in no mailbox are not worth a commit.
void note_batch(Transaction& txn, const Batch& batch, bool rewritten, WallTime now) {
  if (!rewritten && batch.mode != Batch::Mode::kMailbox) return;
  ChangeNote change = change_of(batch.actor,
                                batch.mode == Batch::Mode::kUnlock ? ChangeState::kUnlocked
                                : batch.takes_lock                 ? ChangeState::kLocked
                                : rewritten && !batch.loaded.head  ? ChangeState::kCreated
                                                                   : ChangeState::kHandled,
                                now);
  change.count = batch.handled;
  change.rewritten = rewritten;
  SystemAccess(txn).note(change);
}

/// The mark of a mailbox stays while the actor is locked, though nobody looks at it: whoever frees it sees to that.
void ring_after_lock(Transaction& txn, const ActorId& actor, BytesView prefix) {
  if (!mailbox_is_empty(txn, prefix))
    mark_ready(txn, actor);
  else if (txn.get(ready_key(actor)))
    txn.clear(ready_key(actor));
}

/// What is kept of the words of an error: they may be of any length.
std::string cut(std::string text) {
  constexpr std::size_t kErrorBytesMax = 4096;
  if (text.size() > kErrorBytesMax) text.resize(kErrorBytesMax);
  return text;
}

/// Mailboxes are emptied from the front: if the first is there, all are; but a stop takes calls out of the middle.
bool items_are_there(Transaction& txn, const Batch& batch) {
  for (std::size_t i = 0; i < batch.handled; ++i)
    if ((i == 0 || (batch.items[i].message.caller && !seeded(SeededBug::kTakeWhatWasStopped))) &&
        !txn.get(batch.items[i].key))
      return false;
  return true;
}

/// Whether all is as the batch began with.
Result<Verdict> look(Transaction& txn, const Batch& batch, const CommitContext& context) {
  auto head = txn.get(head_key(batch.prefix));
  bool same = same_version(head, batch.loaded.head) || seeded(SeededBug::kTrustTheCache);
  if (batch.mode == Batch::Mode::kUnlock) {
    bool ours = batch.loaded.head && batch.loaded.head->lock && batch.held &&
                batch.loaded.head->lock->token == batch.held->token && session::is_open(txn, batch.held->session);
    if (same && !ours && !seeded(SeededBug::kLockWithoutToken))
      return fail(ErrorCode::kStaleToken, "the lock of " + batch.actor.to_string() + " was lost");
  }
  if (!same) return Verdict::kStale;
  if (batch.mode == Batch::Mode::kInline && !mailbox_is_empty(txn, batch.prefix) &&
      !seeded(SeededBug::kInlinePastMailbox))
    return Verdict::kMailboxNotEmpty;
  if (batch.mode == Batch::Mode::kMailbox && !items_are_there(txn, batch)) return Verdict::kStale;
  if (batch.takes_lock && (!context.session || !session::is_open(txn, *context.session)))
    return fail(ErrorCode::kStaleToken, "this node has no session to hold the lock with");
  return Verdict::kCommitted;
}

void pop(Transaction& txn, const Batch& batch) {
  if (seeded(SeededBug::kForgetThePop)) return;
  for (std::size_t i = 0; i < batch.handled; ++i) txn.clear(batch.items[i].key);
  txn.add(pops_key(batch.prefix), static_cast<std::int64_t>(batch.handled));
  if (batch.attempts) txn.clear(attempts_key(batch.prefix));
}

void write_state(Transaction& txn, const Batch& batch, const CommitContext& context) {
  if (batch.changes) apply(txn, *batch.changes);
  SessionId session = context.session.value_or(SessionId{});
  if (batch.frees_lock && batch.loaded.head && batch.loaded.head->lock)
    break_lock(txn, batch.actor, batch.prefix, *batch.loaded.head,
               {ErrorCode::kStaleToken, batch.actor.to_string() + " was reset while it was locked"}, context.now);
  auto head = batch.next_head(session);
  if (head) txn.set_stamped(head_key(batch.prefix), head->encode());
  note_batch(txn, batch, head.has_value(), context.now);
  if (batch.takes_lock) {
    txn.set(held_lock_key(session, batch.actor), encode_counter(context.now.time_since_epoch().count()));
    // A caller of this process waits in the store like all others, so that whoever frees the lock can tell it.
    if (batch.mode != Batch::Mode::kMailbox && head->lock->caller)
      put_placeholder(txn, batch.actor, batch.prefix, *head->lock->caller);
  }
  if (batch.mode != Batch::Mode::kUnlock) return;
  txn.clear(held_lock_key(batch.held->session, batch.actor));
  ring_after_lock(txn, batch.actor, batch.prefix);
}

void write_replies(Transaction& txn, const Batch& batch) {
  for (const Batch::Reply& reply : batch.replies) {
    if (batch.mode == Batch::Mode::kMailbox) {
      const auto& caller = batch.items[reply.index].message.caller;
      if (caller && reply.reply) write_reply(txn, batch.prefix, *caller, *reply.reply);
    } else if (batch.mode == Batch::Mode::kUnlock) {
      if (batch.held->caller && reply.reply) write_reply(txn, batch.prefix, *batch.held->caller, *reply.reply);
    } else if (!reply.reply && batch.requests[reply.index].caller) {
      // It waits in the store from now on, for whoever replies.
      put_placeholder(txn, batch.actor, batch.prefix, *batch.requests[reply.index].caller);
    }
  }
  for (const Turn::Reply& reply : batch.other_replies)
    write_reply(txn, prefix_of(reply.to.actor), Caller::of(reply.to), reply.reply);
}

Result<void> send_casts(Transaction& txn, const Batch& batch, WallTime now) {
  if (seeded(SeededBug::kSplitEffects)) return {};
  for (const Batch::Sent& cast : batch.casts) {
    if (cast.delay > Duration::zero()) {
      put_delayed(txn, cast.to, cast.body, cast.traceparent, plus(now, cast.delay));
      continue;
    }
    Message message{MessageType::kCast, now, {}, cast.body, cast.traceparent};
    if (auto pushed = push(txn, cast.to, {&message, 1}); !pushed) return pushed;
  }
  return {};
}

}  // namespace

Result<Verdict> commit_batch(Transaction& txn, const Batch& batch, const CommitContext& context) {
  {
    SystemAccess access(txn);
    auto verdict = look(txn, batch, context);
    if (!verdict || *verdict != Verdict::kCommitted) return verdict;
    if (batch.mode == Batch::Mode::kMailbox) pop(txn, batch);
    write_state(txn, batch, context);
    write_replies(txn, batch);
    // Before casts are sent, for one to itself cannot be read yet.
    if (batch.stop) fail_calls(txn, batch.actor, *batch.stop, kStopCallsMax);
    if (auto sent = send_casts(txn, batch, context.now); !sent) return std::unexpected(std::move(sent.error()));
  }
  batch.effects_begun = !batch.effects.empty();
  for (const Effect& effect : batch.effects) {
    auto applied = effect.apply(txn);
    if (!applied)
      return fail(ErrorCode::kHandlerFailed,
                  "the effect \"" + effect.what + "\" failed: " + to_string(applied.error()));
  }
  return Verdict::kCommitted;
}

Error stopped(const ActorId& actor, const std::string& reason) {
  return {ErrorCode::kActorGone, actor.to_string() + " was stopped before it came to this call: " + reason};
}

bool note_attempt(Transaction& txn, BytesView prefix, const Item& item, const Attempts& attempts) {
  SystemAccess access(txn);
  if (!txn.get(item.key)) return false;
  Attempts noted = attempts;
  noted.error = cut(std::move(noted.error));
  txn.set(attempts_key(prefix), noted.encode());
  return true;
}

void note(Transaction& txn, const ActorId& actor, ChangeState state, WallTime now) {
  SystemAccess(txn).note(change_of(actor, state, now));
}

bool bury(Transaction& txn, const ActorId& actor, const Item& item, int attempts, const Error& error, WallTime now) {
  SystemAccess access(txn);
  Bytes prefix = prefix_of(actor);
  if (!txn.get(item.key)) return false;
  txn.clear(item.key);
  txn.add(pops_key(prefix), 1);
  txn.clear(attempts_key(prefix));
  Message message = item.message;
  message.caller.reset();
  txn.set(tuple::pack_onto(dead_key(prefix), item.stamp),
          DeadRow{std::move(message), attempts, now, cut(to_string(error))}.encode());
  txn.add(dead_count_key(prefix), 1);
  ChangeNote change = change_of(actor, ChangeState::kDead, now);
  change.attempt = static_cast<std::uint32_t>(attempts);
  change.error = error.message;
  SystemAccess(txn).note(change);
  if (item.message.caller)
    write_reply(txn, prefix, *item.message.caller, std::unexpected(Error{error.code, cut(error.message)}));
  return true;
}

void break_lock(Transaction& txn, const ActorId& actor, BytesView prefix, const Head& head, const Error& why,
                WallTime now) {
  txn.clear(held_lock_key(head.lock->session, actor));
  if (head.lock->caller) write_reply(txn, prefix, *head.lock->caller, std::unexpected(why));
  Head freed = head;
  freed.lock.reset();
  txn.set_stamped(head_key(prefix), freed.encode());
  ChangeNote change = change_of(actor, ChangeState::kUnlocked, now);
  change.rewritten = true;
  change.error = why.message;
  SystemAccess(txn).note(change);
  ring_after_lock(txn, actor, prefix);
}

bool fail_calls(Transaction& txn, const ActorId& actor, const std::string& reason, std::size_t limit) {
  Bytes prefix = prefix_of(actor);
  Bytes mailbox = mailbox_key(prefix);
  Bytes from = mailbox;
  std::size_t failed = 0;
  constexpr std::size_t kPage = 500;
  for (;;) {
    KeyRange range = tuple::extensions(mailbox);
    if (from != mailbox) range.begin = next_key(from);
    auto rows = txn.get_range(range, {.limit = kPage});
    for (const Row& row : rows) {
      Item item = readable(txn, decode_item(mailbox, row));
      if (!item.message.caller) continue;
      if (failed == limit) return false;
      ++failed;
      txn.clear(item.key);
      txn.add(pops_key(prefix), 1);
      write_reply(txn, prefix, *item.message.caller, std::unexpected(stopped(actor, reason)));
    }
    if (rows.size() < kPage) return true;
    from = rows.back().key;
  }
}

Cleared clear_ready(Transaction& txn, const ActorId& actor) {
  SystemAccess access(txn);
  bool empty = mailbox_is_empty(txn, prefix_of(actor));
  if (!empty && !seeded(SeededBug::kClearReadyBlindly)) return Cleared::kNotEmpty;
  if (txn.get(ready_key(actor))) txn.clear(ready_key(actor));
  return Cleared::kDone;
}

Bytes held_lock_key(SessionId session, const ActorId& actor) {
  return session::held_key(session, kHeldLock, actor.space, actor.kind, actor.id);
}

}  // namespace perdure::actor
