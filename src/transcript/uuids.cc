#include "transcript/uuids.h"

#include <algorithm>

#include "transcript/rows.h"

namespace perdure::transcript {
namespace {

/// What is kept in memory of a stretch, at most: some 15 MB of uuids.
constexpr std::size_t kStretchEntries = 150'000;
constexpr std::uint64_t kStretchBytes = std::uint64_t{256} << 20;
/// In one row of the list; whoever removes a session sees to one at a time.
constexpr std::size_t kListed = 500;
/// Rows of the list that are seen to in one transaction.
constexpr std::size_t kCancelledAtOnce = 10;

struct BookedRow {
  std::vector<std::string> uuids;
  PERDURE_DESCRIBE(BookedRow, uuids)
};

std::uint64_t entries_read(Reader& reader, BytesView data) {
  return read<ProgressRow>(reader, progress_key(data)).value_or(ProgressRow{}).entries;
}

}  // namespace

std::optional<UuidOwner> owner_of(Reader& reader, BytesView uuid_key) {
  auto bytes = reader.get(uuid_key);
  if (!bytes) return std::nullopt;
  auto owner = tuple::unpack_as<std::uint64_t, std::uint64_t>(*bytes);
  if (!owner) return std::nullopt;
  return UuidOwner{std::get<0>(*owner), std::get<1>(*owner)};
}

void write_owner(Transaction& txn, BytesView uuid_key, const UuidOwner& owner) {
  txn.set(uuid_key, tuple::pack(owner.session, owner.entry));
}

bool is_stored(Reader& reader, std::string_view space, const UuidOwner& owner) {
  Bytes data = data_key(space, owner.session);
  // What is left of a session that is gone is as good as nothing.
  return reader.get(alive_key(data)) && owner.entry <= entries_read(reader, data);
}

bool has_message(const Entry& entry) {
  return !entry.body.empty() || !entry.thinking.empty() || !entry.tools.empty();
}

std::string_view Stretch::uuid_of(std::uint64_t entry) const {
  return entry > before && entry <= last() ? uuids[entry - before - 1] : std::string_view();
}

std::vector<std::uint32_t> Stretch::sorted() const {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < uuids.size(); ++i)
    if (!uuids[i].empty()) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) -> std::string_view { return uuids[i]; });
  return order;
}

Result<Stretch> read_ahead(LineReader& lines, std::uint64_t before) {
  Stretch stretch{.before = before};
  EntryReader entries;
  const std::uint64_t begun = lines.bytes_read();
  while (stretch.uuids.size() < kStretchEntries && lines.bytes_read() - begun < kStretchBytes) {
    auto line = lines.next();
    if (!line) return std::unexpected(std::move(line.error()));
    if (!*line) break;
    Entry entry = entries.read(**line);
    if (entry.kind != Entry::Kind::kMessage) continue;
    stretch.uuids.push_back(has_message(entry) ? key_text(entry.uuid) : std::string());
  }
  return stretch;
}

void book(Transaction& txn, std::string_view space, std::uint64_t session, const Stretch& stretch,
          std::span<const std::uint32_t> which, std::size_t place) {
  Bytes data = data_key(space, session);
  if (!txn.get(alive_key(data))) SystemAccess(txn).refuse({ErrorCode::kNotFound, "the session is gone"});
  BookedRow listed;
  auto list = [&] {
    if (!listed.uuids.empty()) txn.set(tuple::pack_onto(booked_key(data), place), encode(listed));
    place += listed.uuids.size();
    listed.uuids.clear();
  };
  for (std::uint32_t i : which) {
    Bytes key = uuid_key(space, stretch.uuids[i]);
    auto owner = owner_of(txn, key);
    // One of its own is stored, or booked for an entry before this one.
    if (owner && (owner->session == session || is_stored(txn, space, *owner))) continue;
    write_owner(txn, key, {session, stretch.before + i + 1});
    listed.uuids.push_back(stretch.uuids[i]);
    if (listed.uuids.size() == kListed) list();
  }
  list();
}

void close_bookings(Transaction& txn, std::string_view space, std::uint64_t session) {
  txn.clear_range(tuple::extensions(booked_key(data_key(space, session))));
}

bool cancel_bookings(Transaction& txn, std::string_view space, std::uint64_t session) {
  Bytes data = data_key(space, session);
  auto rows = txn.get_range(tuple::extensions(booked_key(data)), {.limit = kCancelledAtOnce});
  if (rows.empty()) return false;
  const std::uint64_t entries = entries_read(txn, data);
  for (const Row& row : rows) {
    for (const std::string& uuid : in_txn(txn, booked_uuids(row.value))) {
      Bytes key = uuid_key(space, uuid);
      auto owner = owner_of(txn, key);
      if (owner && owner->session == session && owner->entry > entries) txn.clear(key);
    }
    txn.clear(row.key);
  }
  return rows.size() == kCancelledAtOnce;
}

Result<std::vector<std::string>> booked_uuids(BytesView row) {
  auto booked = decode<BookedRow>(row);
  if (!booked) return std::unexpected(std::move(booked.error()));
  return std::move(booked->uuids);
}

}  // namespace perdure::transcript
