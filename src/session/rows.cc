#include "session/rows.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "store/system_access.h"

namespace perdure::session {
namespace {

Bytes table_prefix(std::string_view table) {
  return tuple::pack_onto(kSystemKeys, "session", table);
}

Error damaged(std::string_view what) {
  return {ErrorCode::kCorrupt, "the row of " + std::string(what) + " cannot be read; run verify"};
}

template <class T>
T readable(Reader& reader, Result<T> row) {
  if (!row) SystemAccess(reader).refuse(std::move(row.error()));
  return std::move(*row);
}

}  // namespace

std::optional<SessionId> id_of(std::string_view table, BytesView key) {
  auto parts = tuple::unpack_after<Stamp>(table_prefix(table), key);
  if (!parts) return std::nullopt;
  return SessionId{std::get<0>(*parts)};
}

KeyRange table_range(std::string_view table) {
  return tuple::extensions(table_prefix(table));
}

Bytes OpenRow::encode() const {
  return tuple::pack(static_cast<std::int64_t>(ttl.count()), tuple::BlobView(presence), name);
}

Result<OpenRow> OpenRow::decode(BytesView value) {
  auto parts = tuple::unpack_as<std::int64_t, tuple::Blob, std::string>(value);
  if (!parts) return std::unexpected(damaged("a session"));
  auto& [ttl, presence, name] = *parts;
  return OpenRow{Duration(ttl), std::move(presence.bytes), std::move(name)};
}

Stamped LeaseRow::taken_by(SessionId session) {
  auto id = session.stamp.encode();
  return {Bytes(id.data(), id.size()), {}};
}

Bytes LeaseRow::encode() const {
  auto id = session.stamp.encode();
  auto stamp = token.encode();
  return Bytes(id.data(), id.size()).append(stamp.data(), stamp.size());
}

Result<LeaseRow> LeaseRow::decode(BytesView value) {
  if (value.size() != 2 * Stamp::kSize) return std::unexpected(damaged("a lease"));
  return LeaseRow{{*Stamp::decode(value.substr(0, Stamp::kSize))}, *Stamp::decode(value.substr(Stamp::kSize))};
}

std::optional<LeaseRow> read_lease(Reader& reader, std::string_view name) {
  auto value = reader.get(lease_key(name));
  if (!value) return std::nullopt;
  return readable(reader, LeaseRow::decode(*value));
}

std::optional<OpenRow> read_open(Reader& reader, SessionId id) {
  auto value = reader.get(open_key(id));
  if (!value) return std::nullopt;
  return readable(reader, OpenRow::decode(*value));
}

bool is_open(Reader& reader, SessionId id) {
  return reader.get(open_key(id)).has_value();
}

void end_rows(Transaction& txn, SessionId id) {
  txn.clear(open_key(id));
  txn.clear(beat_key(id));
  txn.set(ended_key(id), {});
}

std::uint64_t read_store_number(Reader& reader) {
  return static_cast<std::uint64_t>(decode_counter(reader.get(store_key())));
}

Result<void> check_name(std::string_view name, std::string_view what) {
  auto wrong = [&](const std::string& why) { return fail(ErrorCode::kInvalidArgument, std::string(what) + " " + why); };
  if (name.empty()) return wrong("is empty; give it at least one byte");
  if (name.size() > kLeaseNameMax)
    return wrong("has " + std::to_string(name.size()) + " bytes; at most " + std::to_string(kLeaseNameMax) +
                 " are allowed");
  if (auto text = tuple::check_text(name, what); !text) return text;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (auto byte = static_cast<unsigned char>(name[i]); byte < 0x20 || byte == 0x7f)
      return wrong("has a control character at byte " + std::to_string(i) + "; leave it out");
  return {};
}

Result<void> check_short_name(std::string_view name, std::string_view what) {
  auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._:-", c); };
  bool good = !name.empty() && name.size() <= 64 && std::isalnum(static_cast<unsigned char>(name[0]));
  for (char c : name) good = good && c != '\0' && fits(c);
  if (good) return {};
  return fail(ErrorCode::kInvalidArgument, std::string(what) + " \"" + printable(name) +
                                               "\" is not a name: 1 to 64 of A-Za-z0-9._:- beginning with a letter or "
                                               "digit");
}

Result<void> check_traceparent(std::string_view traceparent) {
  constexpr std::size_t kBytesMax = 512;
  if (traceparent.size() > kBytesMax)
    return fail(ErrorCode::kInvalidArgument, "a traceparent has at most " + std::to_string(kBytesMax) + " bytes");
  // It stands in a header of HTTP one day.
  if (std::ranges::all_of(traceparent, [](char c) { return c >= ' ' && c <= '~'; })) return {};
  return fail(ErrorCode::kInvalidArgument, "a traceparent has printable ASCII characters only");
}

}  // namespace perdure::session
