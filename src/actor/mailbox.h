// Pushing, and waiting for replies: what callers do to the rows of an actor. Everything here is part of a transaction
// that somebody else begins, with SystemAccess on.
#pragma once

#include <optional>
#include <span>

#include "actor/rows.h"

namespace perdure::actor {

/// Appends messages to the mailbox in order, marks it as ready and rings. Those with a caller get its placeholder.
/// Errors: kMailboxFull if `bounded` and there is no room for all of them.
enum class Bound { kChecked, kIgnored };
Result<void> push(Transaction& txn, const ActorId& actor, std::span<const Message> messages,
                  Bound bound = Bound::kChecked);

/// Tells the nodes that serve the kind to look at the mailbox.
void mark_ready(Transaction& txn, const ActorId& actor);

/// The row that a reply is waited for on.
void put_placeholder(Transaction& txn, const ActorId& actor, BytesView prefix, const Caller& caller);
/// Replies, if the caller is still there and has no reply yet.
void write_reply(Transaction& txn, BytesView prefix, const Caller& caller, const Result<Value>& reply);

/// The reply in the rows of a caller. Outer nothing: there is none yet.
struct ReplyState {
  enum class Kind { kWaiting, kReplied, kGone } kind = Kind::kGone;
  std::optional<Result<Value>> reply;
};
ReplyState read_reply(Reader& reader, BytesView prefix, const Caller& caller);
void clear_caller(Transaction& txn, BytesView prefix, const Caller& caller);

/// How many messages wait.
std::uint64_t mailbox_length(Reader& reader, BytesView prefix);

/// Files a cast that is due later.
void put_delayed(Transaction& txn, const ActorId& actor, const Bytes& body, std::string_view traceparent, WallTime due);
struct Delayed {
  ActorId actor;
  std::string traceparent;
  Bytes body;
};
std::optional<Delayed> decode_delayed(BytesView value);

/// The options of a kind that those who push have to know.
void write_kind(Transaction& txn, std::string_view space, std::string_view kind, const KindOptions& options);

/// Whether it may be sent. Errors: kTooLarge, kInvalidArgument.
Result<void> check_message(const Value& message);
/// The same, and its bytes.
Result<Bytes> encode_message(const Value& message);

}  // namespace perdure::actor
