#include "actor/rows.h"

#include <cctype>
#include <cstring>

#include "base/endian.h"

namespace perdure::actor {
namespace {

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt, "the row of " + std::string(what) + " of an actor cannot be read; run verify");
}

void put_stamp(Bytes& out, Stamp stamp) {
  auto bytes = stamp.encode();
  out.append(bytes.data(), bytes.size());
}

void put_u64(Bytes& out, std::uint64_t value) {
  char bytes[8];
  store_little(bytes, value);
  out.append(bytes, sizeof bytes);
}

/// Reads fixed parts off the front of a row.
struct Cursor {
  BytesView rest;
  bool ok = true;

  BytesView take(std::size_t size) {
    if (rest.size() < size) ok = false;
    if (!ok) return {};
    BytesView taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }
  std::uint8_t byte() {
    BytesView taken = take(1);
    return ok ? static_cast<std::uint8_t>(taken[0]) : 0;
  }
  std::uint64_t u64() {
    BytesView taken = take(8);
    return ok ? load_little<std::uint64_t>(taken.data()) : 0;
  }
  Stamp stamp() {
    BytesView taken = take(Stamp::kSize);
    return ok ? *Stamp::decode(taken) : Stamp{};
  }
};

void put_caller(Bytes& out, const std::optional<Caller>& caller) {
  out.push_back(caller ? 1 : 0);
  if (!caller) return;
  put_u64(out, static_cast<std::uint64_t>(caller->seconds));
  put_stamp(out, caller->session);
  put_u64(out, caller->number);
}

std::optional<Caller> take_caller(Cursor& cursor) {
  std::uint8_t there = cursor.byte();
  if (there > 1) cursor.ok = false;
  if (there != 1) return std::nullopt;
  Caller caller;
  caller.seconds = static_cast<std::int64_t>(cursor.u64());
  caller.session = cursor.stamp();
  caller.number = cursor.u64();
  return caller;
}

/// Set in the type of a message that carries a trace context.
constexpr std::uint8_t kTraced = 0x80;

enum LockTag : std::uint8_t {
  kFree = 0,
  kTakenNow = 1,  // The token is the version of this very row.
  kTaken = 2,
};

}  // namespace

Stamped Head::encode() const {
  Bytes after;
  put_u64(after, static_cast<std::uint64_t>(schema));
  if (!lock) {
    after.push_back(kFree);
  } else {
    bool now = lock->token == Stamp{};
    after.push_back(now ? kTakenNow : kTaken);
    put_stamp(after, lock->session.stamp);
    if (!now) put_stamp(after, lock->token);
    put_caller(after, lock->caller);
  }
  return {{}, std::move(after)};
}

Head Head::committed_at(Stamp stamp) const {
  Head head = *this;
  head.version = stamp;
  if (head.lock && head.lock->token == Stamp{}) head.lock->token = stamp;
  return head;
}

Result<Head> Head::decode(BytesView value) {
  Cursor cursor{value};
  Head head;
  head.version = cursor.stamp();
  head.schema = static_cast<int>(cursor.u64());
  std::uint8_t tag = cursor.byte();
  if (tag == kTakenNow || tag == kTaken) {
    Lock lock;
    lock.session.stamp = cursor.stamp();
    lock.token = tag == kTakenNow ? head.version : cursor.stamp();
    lock.caller = take_caller(cursor);
    head.lock = lock;
  }
  if (!cursor.ok || tag > kTaken || !cursor.rest.empty()) return damaged("the head");
  return head;
}

Bytes Message::encode() const {
  Bytes out;
  out.reserve(body.size() + traceparent.size() + 40);
  out.push_back(static_cast<char>(static_cast<std::uint8_t>(type) | (traceparent.empty() ? 0 : kTraced)));
  put_u64(out, static_cast<std::uint64_t>(pushed.time_since_epoch().count()));
  put_caller(out, caller);
  if (!traceparent.empty()) tuple::append(out, traceparent);
  out.append(body);
  return out;
}

Result<Message> Message::decode(BytesView value) {
  Cursor cursor{value};
  Message message;
  std::uint8_t type = cursor.byte();
  bool traced = (type & kTraced) != 0;
  type &= static_cast<std::uint8_t>(~kTraced);
  message.type = static_cast<MessageType>(type);
  message.pushed = WallTime(Duration(static_cast<std::int64_t>(cursor.u64())));
  message.caller = take_caller(cursor);
  if (!cursor.ok || type > static_cast<std::uint8_t>(MessageType::kInfo)) return damaged("a message");
  tuple::Reader reader(cursor.rest);
  if (traced) message.traceparent = reader.next_text();
  if (!reader.ok()) return damaged("a message");
  message.body = Bytes(reader.rest());
  return message;
}

Result<Item> decode_item(BytesView mailbox, const Row& row) {
  auto parts = tuple::unpack_after<Stamp>(mailbox, row.key);
  if (!parts) return damaged("a message");
  auto message = Message::decode(row.value);
  if (!message) return std::unexpected(std::move(message.error()));
  return Item{row.key, std::get<0>(*parts), std::move(*message)};
}

Bytes Attempts::encode() const {
  Bytes sessions;
  for (Stamp session : begun) put_stamp(sessions, session);
  return tuple::pack(message, count, tuple::BlobView(error), tuple::BlobView(sessions));
}

Result<Attempts> Attempts::decode(BytesView value) {
  auto parts = tuple::unpack_as<Stamp, int, tuple::Blob, tuple::Blob>(value);
  if (!parts) return damaged("the attempts");
  auto& [message, count, error, sessions] = *parts;
  Attempts attempts{message, count, std::move(error.bytes)};
  Cursor cursor{sessions.bytes};
  while (cursor.ok && !cursor.rest.empty()) attempts.begun.push_back(cursor.stamp());
  if (!cursor.ok) return damaged("the attempts");
  return attempts;
}

Bytes DeadRow::encode() const {
  // The message as it is: packed, its zero bytes would be doubled, and it might no longer fit.
  return tuple::pack(attempts, static_cast<std::int64_t>(at.time_since_epoch().count()), tuple::BlobView(error)) +
         message.encode();
}

Result<DeadRow> DeadRow::decode(BytesView value) {
  tuple::Reader reader(value);
  DeadRow row;
  row.attempts = reader.next<int>();
  row.at = WallTime(Duration(reader.next_int()));
  row.error = Bytes(reader.next_bytes());
  if (!reader.ok()) return damaged("a dead letter");
  auto decoded = Message::decode(reader.rest());
  if (!decoded) return std::unexpected(std::move(decoded.error()));
  row.message = std::move(*decoded);
  return row;
}

std::optional<Head> read_head(Reader& reader, BytesView prefix) {
  auto value = reader.get(head_key(prefix));
  if (!value) return std::nullopt;
  return readable(reader, Head::decode(*value));
}

std::optional<Attempts> read_attempts(Reader& reader, BytesView prefix) {
  auto value = reader.get(attempts_key(prefix));
  if (!value) return std::nullopt;
  return readable(reader, Attempts::decode(*value));
}

}  // namespace perdure::actor
