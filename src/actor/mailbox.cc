#include "actor/mailbox.h"

#include <algorithm>

#include "actor/collect.h"
#include "actor/state_codec.h"
#include "base/endian.h"
#include "base/seeded_bug.h"

namespace perdure::actor {
namespace {

enum ReplyTag : char { kValue = 'v', kError = 'e' };

Bytes encode_reply(const Result<Value>& reply) {
  Bytes out;
  if (reply) {
    out.push_back(kValue);
    out.append(reply->encode());
  } else {
    out.push_back(kError);
    out.append(tuple::pack(reply.error().name(), tuple::BlobView(reply.error().message)));
  }
  return out;
}

Result<Value> decode_reply(BytesView bytes) {
  auto damaged = [] { return fail(ErrorCode::kCorrupt, "a reply cannot be read; run verify"); };
  if (bytes.empty()) return damaged();
  if (bytes[0] == kValue) return Value::decode(bytes.substr(1));
  auto parts = tuple::unpack_as<std::string, tuple::Blob>(bytes.substr(1));
  if (bytes[0] != kError || !parts) return damaged();
  for (const ErrorInfo& known : error_table())
    if (known.name == std::get<0>(*parts))
      return std::unexpected(Error{known.code, std::move(std::get<1>(*parts).bytes)});
  // Of a newer version of perdure.
  return fail(ErrorCode::kHandlerFailed, std::get<0>(*parts) + ": " + std::get<1>(*parts).bytes);
}

std::uint64_t mailbox_max(Reader& reader, const ActorId& actor) {
  auto value = reader.get(kind_key(actor.space, actor.kind));
  if (!value) return KindOptions{}.mailbox_max;
  auto parts = tuple::unpack_as<std::uint64_t>(*value);
  return parts ? std::get<0>(*parts) : KindOptions{}.mailbox_max;
}

}  // namespace

std::uint64_t mailbox_length(Reader& reader, BytesView prefix) {
  std::int64_t in = decode_counter(reader.get(pushes_key(prefix)));
  std::int64_t out = decode_counter(reader.get(pops_key(prefix)));
  return static_cast<std::uint64_t>(std::max<std::int64_t>(in - out, 0));
}

Result<void> push(Transaction& txn, const ActorId& actor, std::span<const Message> messages, Bound bound) {
  Bytes prefix = prefix_of(actor);
  if (bound == Bound::kChecked) {
    Reader snapshot = txn.snapshot();
    std::uint64_t length = mailbox_length(snapshot, prefix);
    std::uint64_t max = mailbox_max(snapshot, actor);
    if (length + messages.size() > max)
      return fail(ErrorCode::kMailboxFull, "the mailbox of " + actor.to_string() + " has " + std::to_string(length) +
                                               " messages, and takes " + std::to_string(max) + "; try again later");
  }
  Bytes mailbox = mailbox_key(prefix);
  for (const Message& message : messages) {
    txn.set_stamped(tuple::pack_stamped_onto(mailbox, tuple::IncompleteStamp{SystemAccess(txn).next_order()}),
                    message.encode());
    if (message.caller) put_placeholder(txn, actor, prefix, *message.caller);
  }
  txn.add(pushes_key(prefix), static_cast<std::int64_t>(messages.size()));
  mark_ready(txn, actor);
  return {};
}

void mark_ready(Transaction& txn, const ActorId& actor) {
  // Only if it is not there: its version says since when it waits.
  Bytes mark = ready_key(actor);
  if (!seeded(SeededBug::kLoseReadyKey) && !txn.get(mark)) txn.set(mark, {});
  txn.add(bell_key(actor.space, actor.kind), 1);
}

void put_placeholder(Transaction& txn, const ActorId& actor, BytesView prefix, const Caller& caller) {
  txn.set(sentinel_key(prefix, caller), {});
  txn.set(waiting_bucket_key(actor, caller.seconds), {});
}

void write_reply(Transaction& txn, BytesView prefix, const Caller& caller, const Result<Value>& reply) {
  // Who has given up has cleared it; writing all the same would leave rows that nobody comes for.
  auto sentinel = txn.get(sentinel_key(prefix, caller));
  if (!sentinel ? !seeded(SeededBug::kReplyToNobody) : !sentinel->empty()) return;
  Bytes bytes = encode_reply(reply);
  std::size_t chunks = (bytes.size() + kChunkBytes - 1) / kChunkBytes;
  Bytes key = caller_key(prefix, caller);
  for (std::size_t i = 0; i < chunks; ++i) {
    Bytes value;
    if (i == 0) {
      char count[4];
      store_little(count, static_cast<std::uint32_t>(chunks));
      value.assign(count, sizeof count);
    }
    value.append(bytes, i * kChunkBytes, kChunkBytes);
    txn.set(tuple::pack_onto(key, i), value);
  }
}

ReplyState read_reply(Reader& reader, BytesView prefix, const Caller& caller) {
  auto rows = reader.get_range(tuple::extensions(caller_key(prefix, caller)));
  if (rows.empty()) return {ReplyState::Kind::kGone, {}};
  if (rows[0].value.empty()) return {ReplyState::Kind::kWaiting, {}};
  if (rows[0].value.size() < 4 || load_little<std::uint32_t>(rows[0].value.data()) != rows.size())
    return {ReplyState::Kind::kReplied, fail(ErrorCode::kCorrupt, "a reply is not whole; run verify")};
  Bytes bytes = rows[0].value.substr(4);
  for (std::size_t i = 1; i < rows.size(); ++i) bytes.append(rows[i].value);
  return {ReplyState::Kind::kReplied, decode_reply(bytes)};
}

void clear_caller(Transaction& txn, BytesView prefix, const Caller& caller) {
  txn.clear_range(tuple::extensions(caller_key(prefix, caller)));
}

void put_delayed(Transaction& txn, const ActorId& actor, const Bytes& body, std::string_view traceparent,
                 WallTime due) {
  auto time = static_cast<std::int64_t>(due.time_since_epoch().count());
  txn.set_stamped(tuple::pack_stamped_onto(due_prefix(), time, tuple::IncompleteStamp{SystemAccess(txn).next_order()}),
                  tuple::pack(actor.space, actor.kind, actor.id, traceparent) + body);
  txn.add(due_bell_key(), 1);
}

std::optional<Delayed> decode_delayed(BytesView value) {
  tuple::Reader reader(value);
  Delayed delayed;
  delayed.actor.space = reader.next_text();
  delayed.actor.kind = reader.next_text();
  delayed.actor.id = reader.next_text();
  delayed.traceparent = reader.next_text();
  if (!reader.ok()) return std::nullopt;
  delayed.body = Bytes(reader.rest());
  return delayed;
}

void write_kind(Transaction& txn, std::string_view space, std::string_view kind, const KindOptions& options) {
  txn.set(kind_key(space, kind), tuple::pack(options.mailbox_max));
}

Result<void> check_message(const Value& message) {
  if (auto good = message.check("the message"); !good) return good;
  std::size_t size = message.encoded_size();
  if (size <= kMessageBytesMax) return {};
  return fail(ErrorCode::kTooLarge, "the message has " + std::to_string(size) + " bytes when encoded; at most " +
                                        std::to_string(kMessageBytesMax) + " are allowed");
}

Result<Bytes> encode_message(const Value& message) {
  if (auto good = check_message(message); !good) return std::unexpected(std::move(good.error()));
  return message.encode();
}

}  // namespace perdure::actor
