#include "http/idempotency.h"

#include "actor/mailbox.h"
#include "actor/rows.h"
#include "base/hash.h"
#include "http/problem.h"
#include "http/units.h"
#include "perdure/lease.h"
#include "perdure/tuple.h"
#include "perdure/tuple_reader.h"
#include "store/ranges.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

/// Cleared by each that is written: two, so that they cannot grow.
constexpr std::size_t kClearedAtOnce = 2;
constexpr std::size_t kChunkBytes = 500'000;

Bytes row_key(const IdempotencyKey& key) {
  return tuple::pack_onto(kSystemKeys, "idempotency", key.space, key.where, key.key);
}

Bytes due_prefix() {
  return tuple::pack_onto(kSystemKeys, "idempotency-due");
}

std::int64_t in_ns(WallTime time) {
  return time.time_since_epoch().count();
}

Value encode_headers(const Headers& headers) {
  Value::List list;
  for (const Header& header : headers.all()) list.push_back(pair_value(header.name, header.value));
  return list;
}

/// A row: {"b": hash of the body, "u": until, "s": status, "a": answer, "h": headers, "v": where the version goes} or
/// "p".
Value encode(const IdempotencyKey& key, const Kept& kept, WallTime until) {
  Value row = Value::Map{{"b", std::to_string(key.body)}, {"u", in_ns(until)}};
  if (kept.form == Kept::Form::kPending) {
    row["p"] = kept.pending;
    return row;
  }
  row["s"] = kept.answer.status;
  if (kept.answer.body) row["a"] = *kept.answer.body;
  if (!kept.answer.headers.all().empty()) row["h"] = encode_headers(kept.answer.headers);
  if (kept.answer.show_version != Answer::ShowVersion::kNo) row["v"] = static_cast<int>(kept.answer.show_version);
  return row;
}

void fill_token(Value* text, Version version) {
  if (!text || !text->is_text()) return;
  auto token = Token::parse(*text->as_text());
  if (!token) return;
  token->stamp.version = version;
  *text = token->to_string();
}

/// See Answer::ShowVersion::kTokens. The run of a debouncer has its token in its value too.
void fill_tokens(Value& body, Version version) {
  Value* items = body.find("items");
  if (!items || !items->is_list()) return;
  for (Value& item : *items->as_list()) {
    fill_token(item.find("token"), version);
    Value* value = item.find("value");
    if (value && value->find("debouncer")) fill_token(value->find("token"), version);
  }
}

Kept decode(const Value& row, Version version) {
  Kept kept;
  if (const Value* pending = row.find("p")) {
    kept.form = Kept::Form::kPending;
    kept.pending = *pending->as_text();
    return kept;
  }
  kept.answer.status = static_cast<int>(*row.find("s")->as_integer());
  if (const Value* body = row.find("a")) kept.answer.body = *body;
  if (const Value* headers = row.find("h"))
    for (const Value& header : *headers->as_list())
      kept.answer.headers.add(*(*header.as_list())[0].as_text(), *(*header.as_list())[1].as_text());
  if (const Value* shown = row.find("v"))
    kept.answer.show_version = static_cast<Answer::ShowVersion>(*shown->as_integer());
  kept.answer.version = version;
  if (kept.answer.show_version == Answer::ShowVersion::kTokens) fill_tokens(*kept.answer.body, version);
  return kept;
}

/// An answer may be larger than a row: it stands in as many as it takes.
void write_rows(Transaction& txn, const Bytes& at, const Bytes& bytes) {
  txn.clear_range(tuple::extensions(at));
  for (std::size_t i = 0; i * kChunkBytes < bytes.size(); ++i)
    txn.set(tuple::pack_onto(at, i), bytes.substr(i * kChunkBytes, kChunkBytes));
}

struct Stored {
  Value row;
  Version version;
};

Result<std::optional<Stored>> read_rows(Reader& reader, const Bytes& at) {
  auto rows = reader.get_range(tuple::extensions(at));
  if (rows.empty()) return std::nullopt;
  Bytes bytes;
  for (const Row& row : rows) bytes += row.value;
  auto value = Value::decode(bytes);
  if (!value)
    return fail(ErrorCode::kCorrupt, "what is kept of an idempotency key cannot be read: " + value.error().message);
  return Stored{std::move(*value), rows[0].version};
}

void clear_old(Transaction& txn, WallTime now) {
  Reader snapshot = txn.snapshot();
  Bytes prefix = due_prefix();
  KeyRange past{prefix, tuple::pack_onto(prefix, in_ns(now))};
  for (const Row& due : snapshot.get_range(past, {.limit = kClearedAtOnce})) {
    txn.clear(due.key);
    // Unless the key was used anew since, which another entry stands for then.
    auto stored = read_rows(txn, due.value);
    if (!stored || !*stored) continue;
    const Value* until = (*stored)->row.find("u");
    if (!until || !until->is_integer() || *until->as_integer() >= in_ns(now)) continue;
    txn.clear_range(tuple::extensions(due.value));
    // The reply of a call that nobody asked for again.
    const Value* pending = (*stored)->row.find("p");
    auto from = pending && pending->is_text() ? From::parse(*pending->as_text()) : fail(ErrorCode::kNotFound, "");
    if (from) actor::clear_caller(txn, actor::prefix_of(from->actor), actor::Caller::of(*from));
  }
}

}  // namespace

Result<std::optional<IdempotencyKey>> IdempotencyKey::of(const Call& call) {
  const std::string* given = call.header("Idempotency-Key");
  if (!given) return std::nullopt;
  bool printable = given->find_first_not_of(
                       " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
                       "{|}~") == std::string::npos;
  if (given->empty() || given->size() > kIdempotencyKeyMax || !printable)
    return fail(ErrorCode::kInvalidArgument,
                "the header Idempotency-Key must have 1 to 200 printable characters of ASCII");
  std::string_view target = call.request().target;
  // What a client is willing to wait for may differ the second time; what it asks for may not.
  std::string where = call.request().method + " " + std::string(target.substr(0, target.find('?')));
  return IdempotencyKey{call.space(), hash64(where), hash64(call.request().body), *given};
}

Result<std::optional<Kept>> find_kept(Reader& reader, const IdempotencyKey& key, WallTime now) {
  SystemAccess access(reader);
  auto stored = read_rows(reader, row_key(key));
  if (!stored) return std::unexpected(std::move(stored.error()));
  if (!*stored) return std::nullopt;
  const Value& row = (*stored)->row;
  if (*row.find("u")->as_integer() < in_ns(now)) return std::nullopt;
  if (*row.find("b")->as_text() != std::to_string(key.body)) return Kept{.form = Kept::Form::kReused};
  return decode(row, (*stored)->version);
}

void keep(Transaction& txn, const IdempotencyKey& key, const Kept& kept, WallTime now) {
  SystemAccess access(txn);
  clear_old(txn, now);
  WallTime until = now + kAnswersKept;
  Bytes at = row_key(key);
  write_rows(txn, at, encode(key, kept, until).encode());
  txn.set(tuple::pack_onto(due_prefix(), in_ns(until), key.space, key.where, key.key), at);
}

void forget(Transaction& txn, const IdempotencyKey& key) {
  SystemAccess access(txn);
  txn.clear_range(tuple::extensions(row_key(key)));
}

Answer answer_of(Kept kept, const std::string& key) {
  if (kept.form == Kept::Form::kAnswer) {
    kept.answer.headers.add("Idempotency-Replayed", "true");
    return std::move(kept.answer);
  }
  if (kept.form == Kept::Form::kPending) {
    Response begun = problem(Error{ErrorCode::kCommitUnknown,
                                   "a request with the Idempotency-Key '" + key + "' is under way, or was cut off"});
    return {.status = begun.status, .body = *Value::from_json(begun.body), .headers = begun.headers};
  }
  Response refused =
      problem(422, "key_reused",
              "the Idempotency-Key '" + key + "' was used for another request already; a new request needs a new key");
  Answer out{.status = refused.status, .body = *Value::from_json(refused.body), .headers = {}};
  out.headers = refused.headers;
  return out;
}

}  // namespace perdure::http
