// The transactions that end a batch. They run on the commit thread, on top of all that was committed before, so nothing
// here is user code but the effects that were asked for, and each is short.
#pragma once

#include <optional>

#include "actor/batch.h"
#include "store/change_notes.h"

namespace perdure::actor {

enum class Verdict {
  kCommitted,
  kStale,           ///< The state, the lock or the mailbox is not what the batch began with: nothing was written.
  kMailboxNotEmpty  ///< Inline only: there are messages that come first. Nothing was written.
};

struct CommitContext {
  std::optional<SessionId> session;  ///< Of this node, while it is believed in.
  WallTime now;
};

/// Everything that a batch is to change, or nothing. Errors: of an effect or a cast, kMailboxFull for instance: nothing
/// was written; kStaleToken if a lock is to be taken or given back without a session that is open.
Result<Verdict> commit_batch(Transaction& txn, const Batch& batch, const CommitContext& context);

/// Notes that an attempt at the first message failed, or begins: false if it is not the first any more.
bool note_attempt(Transaction& txn, BytesView prefix, const Item& item, const Attempts& attempts);
/// For the feed of changes: what became of an actor that is not what a batch makes of it.
void note(Transaction& txn, const ActorId& actor, ChangeState state, WallTime now);
/// Moves the first message to the dead letters, and tells its caller: false if it is not the first any more.
bool bury(Transaction& txn, const ActorId& actor, const Item& item, int attempts, const Error& error, WallTime now);

/// What a call is told that was still waiting when its actor was stopped.
Error stopped(const ActorId& actor, const std::string& reason);

/// Frees the lock, and tells who waits for what was to be done under it.
void break_lock(Transaction& txn, const ActorId& actor, BytesView prefix, const Head& head, const Error& why,
                WallTime now);
/// Fails the calls in the mailbox, at most `limit` of them; whether those were all.
bool fail_calls(Transaction& txn, const ActorId& actor, const std::string& reason, std::size_t limit);

enum class Cleared { kDone, kNotEmpty };
/// Takes the mark from a mailbox that is empty.
Cleared clear_ready(Transaction& txn, const ActorId& actor);

/// The held row of a lock, which the session's end sweeps.
Bytes held_lock_key(SessionId session, const ActorId& actor);

}  // namespace perdure::actor
