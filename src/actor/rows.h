// clang-format off
// The rows of actors, all of them among perdure's own keys; see docs/internals/key_layout.md. With P for ("actor",
// space, kind, id), what there is of one actor:
//
//     (P, "h")                  -> version, schema, lock        the head: rewritten when the state or the lock changes
//     (P, "s", ...)             -> the state, see state_codec.h
//     (P, "q", stamp)           -> one message of the mailbox
//     (P, "n", "in" | "out")    -> messages pushed and popped so far
//     (P, "n", "dead")          -> dead letters
//     (P, "t")                  -> what is known of the failed attempts of the first message
//     (P, "d", stamp)           -> one dead letter
//     (P, "w", s, ref, n, i)    -> one waiting caller: nothing yet in row 0, or the chunks of its reply
//
// and besides:
//
//     ("ready", space, kind, id)           -> nothing      the mailbox may have messages, since the version of the row
//     ("bell", space, kind)                -> a counter    rung with each push
//     ("kind", space, kind)                -> options      as it was last served
//     ("server", space, kind, session)     -> nothing      a session that consumes the kind
//     ("servers", space, kind)             -> a counter    rung when the servers change
//     ("fallen")                           -> a stamp      when the last server died
//     ("waiting", bucket, space, kind, id) -> nothing      there were callers of that age
//     ("due", time, stamp)                 -> a delayed cast
//     ("due-bell")                         -> a counter    rung when something may be due earlier
// clang-format on
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perdure/actor.h"
#include "perdure/tuple.h"
#include "session/rows.h"
#include "store/ranges.h"

namespace perdure::actor {

inline Bytes prefix_of(const ActorId& actor) {
  return tuple::pack_onto(kSystemKeys, "actor", actor.space, actor.kind, actor.id);
}
inline Bytes head_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "h");
}
inline Bytes state_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "s");
}
inline Bytes mailbox_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "q");
}
inline Bytes pushes_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "n", "in");
}
inline Bytes pops_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "n", "out");
}
inline Bytes dead_count_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "n", "dead");
}
inline Bytes attempts_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "t");
}
inline Bytes dead_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "d");
}
inline Bytes waiting_key(BytesView prefix) {
  return tuple::pack_onto(prefix, "w");
}
inline Bytes ready_key(const ActorId& actor) {
  return tuple::pack_onto(kSystemKeys, "ready", actor.space, actor.kind, actor.id);
}
inline Bytes ready_prefix(std::string_view space, std::string_view kind) {
  return tuple::pack_onto(kSystemKeys, "ready", space, kind);
}
inline Bytes bell_key(std::string_view space, std::string_view kind) {
  return tuple::pack_onto(kSystemKeys, "bell", space, kind);
}
inline Bytes kind_key(std::string_view space, std::string_view kind) {
  return tuple::pack_onto(kSystemKeys, "kind", space, kind);
}
inline Bytes server_prefix(std::string_view space, std::string_view kind) {
  return tuple::pack_onto(kSystemKeys, "server", space, kind);
}
inline Bytes servers_bell_key(std::string_view space, std::string_view kind) {
  return tuple::pack_onto(kSystemKeys, "servers", space, kind);
}
inline Bytes fallen_key() {
  return tuple::pack_onto(kSystemKeys, "fallen");
}
inline Bytes waiting_index() {
  return tuple::pack_onto(kSystemKeys, "waiting");
}
inline Bytes due_prefix() {
  return tuple::pack_onto(kSystemKeys, "due");
}
inline Bytes due_bell_key() {
  return tuple::pack_onto(kSystemKeys, "due-bell");
}

/// What a session holds of actors, in its held rows: see session/rows.h.
inline constexpr std::string_view kHeldLock = "actor-lock";
inline constexpr std::string_view kHeldServer = "actor-server";

/// A waiting caller, without the actor that it waits for.
struct Caller {
  std::int64_t seconds = 0;
  Stamp session;
  std::uint64_t number = 0;
  bool operator==(const Caller&) const = default;

  static Caller of(const From& from) { return {from.seconds, from.session, from.number}; }
  From from(const ActorId& actor) const { return {actor, seconds, session, number}; }
};

/// All rows of one caller.
inline Bytes caller_key(BytesView prefix, const Caller& caller) {
  return tuple::pack_onto(waiting_key(prefix), caller.seconds, caller.session, caller.number);
}
/// The reply sentinel.
inline Bytes sentinel_key(BytesView prefix, const Caller& caller) {
  return tuple::pack_onto(waiting_key(prefix), caller.seconds, caller.session, caller.number, 0);
}

struct Lock {
  SessionId session;
  Stamp token;
  /// Who waits for what is done under it, in the store.
  std::optional<Caller> caller;
  bool operator==(const Lock&) const = default;
};

struct Head {
  Stamp version;
  int schema = 1;
  std::optional<Lock> lock;
  bool operator==(const Head&) const = default;

  /// The row that replaces it: the commit fills in the version, which is also the token of a lock that is taken with
  /// it, one whose token is zero.
  Stamped encode() const;
  /// What `encode` becomes once it has committed at `stamp`.
  Head committed_at(Stamp stamp) const;
  /// Errors: kCorrupt.
  static Result<Head> decode(BytesView value);
};

struct Message {
  MessageType type = MessageType::kCast;
  WallTime pushed;
  std::optional<Caller> caller;
  Bytes body;  ///< An encoded Value.
  std::string traceparent = {};

  Bytes encode() const;
  /// Errors: kCorrupt.
  static Result<Message> decode(BytesView value);
};

/// One message as it stands in the mailbox.
struct Item {
  Bytes key;
  Stamp stamp;
  Message message;
};
Result<Item> decode_item(BytesView mailbox, const Row& row);

/// What is known of attempts at the first message that came to nothing.
struct Attempts {
  Stamp message;
  int count = 0;
  std::string error = {};
  /// The sessions of the processes that have begun with it and not come to an end: a death for each that is over.
  std::vector<Stamp> begun = {};

  Bytes encode() const;
  static Result<Attempts> decode(BytesView value);
};

struct DeadRow {
  Message message;
  int attempts = 0;
  WallTime at;
  std::string error;

  Bytes encode() const;
  static Result<DeadRow> decode(BytesView value);
};

/// The head as it is; leaves the body if it is damaged. Needs SystemAccess, as all that follows.
std::optional<Head> read_head(Reader& reader, BytesView prefix);
std::optional<Attempts> read_attempts(Reader& reader, BytesView prefix);
/// Leaves the body with the error, if there is one.
template <class T>
T readable(Reader& reader, Result<T> row);

using session::check_short_name;

}  // namespace perdure::actor

#include "store/system_access.h"

namespace perdure::actor {

template <class T>
T readable(Reader& reader, Result<T> row) {
  if (!row) SystemAccess(reader).refuse(std::move(row.error()));
  return std::move(*row);
}

}  // namespace perdure::actor
