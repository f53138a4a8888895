#include "http/keys.h"

#include "perdure/tuple.h"
#include "perdure/tuple_reader.h"
#include "session/rows.h"
#include "store/ranges.h"
#include "store/read_page.h"
#include "store/system_access.h"

namespace perdure::http {
namespace {

constexpr std::size_t kValueBytesMax = 1 << 20;

Bytes space_key(const std::string& space) {
  return tuple::pack_onto(kSystemKeys, "key", space);
}

Result<StoredKey> decode(BytesView prefix, const Row& row) {
  auto value = Value::decode(row.value);
  auto key = tuple::unpack_after<std::string>(prefix, row.key);
  if (!value || !key) return fail(ErrorCode::kCorrupt, "a key of the application cannot be read; run verify");
  return StoredKey{std::move(std::get<0>(*key)), std::move(*value), row.version};
}

}  // namespace

Result<void> check_app_key(std::string_view key) {
  if (key == "." || key == "..") return fail(ErrorCode::kInvalidArgument, "a key cannot be '.' or '..'");
  return session::check_name(key, "the key");
}

Result<std::optional<StoredKey>> get_key(Reader& reader, const std::string& space, const std::string& key) {
  SystemAccess access(reader);
  Bytes prefix = space_key(space);
  Bytes at = tuple::pack_onto(prefix, key);
  auto rows = reader.get_range(single_key(at), {.limit = 1});
  if (rows.empty()) return std::nullopt;
  auto found = decode(prefix, rows[0]);
  if (!found) return std::unexpected(std::move(found.error()));
  return std::move(*found);
}

Result<KeyList> list_keys(Reader& reader, const std::string& space, const std::string& prefix, const std::string& after,
                          std::size_t limit) {
  SystemAccess access(reader);
  Bytes all = space_key(space);
  KeyRange range = tuple::extensions(all);
  range.begin = std::max(range.begin, tuple::pack_onto(all, prefix));
  if (!after.empty()) range.begin = std::max(range.begin, tuple::pack_onto(all, after) + '\0');
  KeyList out;
  for (const Row& row : read_page(reader, range, limit)) {
    auto found = decode(all, row);
    if (!found) return std::unexpected(std::move(found.error()));
    if (!found->key.starts_with(prefix)) return out;
    range.begin = next_key(row.key);
    out.keys.push_back(std::move(*found));
  }
  if (!out.keys.empty() && !reader.get_range(range, {.limit = 1}).empty()) out.next = out.keys.back().key;
  return out;
}

Result<void> set_key(Transaction& txn, const std::string& space, const std::string& key, const Value& value) {
  if (value.encoded_size() > kValueBytesMax)
    return fail(ErrorCode::kTooLarge, "the value of '" + key + "' has " + std::to_string(value.encoded_size()) +
                                          " bytes; at most 1 MiB is allowed");
  SystemAccess access(txn);
  txn.set(tuple::pack_onto(space_key(space), key), value.encode());
  return {};
}

void clear_key(Transaction& txn, const std::string& space, const std::string& key) {
  SystemAccess access(txn);
  txn.clear(tuple::pack_onto(space_key(space), key));
}

}  // namespace perdure::http
