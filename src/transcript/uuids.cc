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
constexpr std::size_t kCancelledAtOnce = 5;

struct BookedRow {
  std::vector<std::string> uuids;
  PERDURE_DESCRIBE(BookedRow, uuids)
};

std::uint64_t entries_read(Reader& reader, BytesView data) {
  return read<ProgressRow>(reader, progress_key(data)).value_or(ProgressRow{}).entries;
}

}  // namespace

std::optional<UuidOwner> decode_owner(const std::optional<Bytes>& row) {
  if (!row) return std::nullopt;
  auto owner = tuple::unpack_as<std::uint64_t, std::uint64_t>(*row);
  if (!owner) return std::nullopt;
  return UuidOwner{std::get<0>(*owner), std::get<1>(*owner)};
}

void write_owner(Transaction& txn, BytesView key, const UuidOwner& owner) {
  txn.set(key, tuple::pack(owner.session, owner.entry));
}

bool is_stored(Transaction& txn, std::string_view space, const UuidOwner& owner) {
  Bytes data = data_key(space, owner.session);
  // What is left of a session that is gone is as good as nothing.
  if (!txn.get(alive_key(data))) return false;
  // Once stored, it stays so; a session that reads on changes its progress all the time, and is not waited for.
  Reader snapshot = txn.snapshot();
  return owner.entry <= entries_read(snapshot, data) || owner.entry <= entries_read(txn, data);
}

void clear_owned(Transaction& txn, std::string_view space, std::span<const std::string> uuids, std::uint64_t session,
                 std::uint64_t after) {
  std::vector<Bytes> keys;
  for (const std::string& uuid : uuids) keys.push_back(uuid_key(space, uuid));
  auto rows = txn.get_many(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto owner = decode_owner(rows[i]);
    if (owner && owner->session == session && owner->entry > after) txn.clear(keys[i]);
  }
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
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(std::string_view(uuids[i]), i); });
  return order;
}

Result<Stretch> read_ahead(LineReader& lines, std::uint64_t before, std::size_t entries_max, WallTime oldest,
                           const std::function<bool()>& enough) {
  Stretch stretch{.before = before};
  entries_max = std::min(entries_max, kStretchEntries);
  EntryReader entries;
  const std::uint64_t begun = lines.bytes_read();
  while (stretch.uuids.size() < entries_max && lines.bytes_read() - begun < kStretchBytes && !enough()) {
    auto line = lines.next();
    if (!line) return std::unexpected(std::move(line.error()));
    if (!*line) break;
    Entry entry = entries.read(**line);
    if (entry.kind != Entry::Kind::kMessage) continue;
    bool needed = has_message(entry) && (!entry.at || *entry.at > oldest);
    stretch.uuids.push_back(needed ? key_text(entry.uuid) : std::string());
  }
  stretch.end = lines.position().offset;
  return stretch;
}

void book(Transaction& txn, std::string_view space, std::uint64_t session, const Stretch& stretch,
          std::span<const std::uint32_t> which, std::size_t place) {
  Bytes data = data_key(space, session);
  SystemAccess access(txn);
  if (!txn.get(alive_key(data))) access.refuse({ErrorCode::kNotFound, "the session is gone"});
  if (entries_read(txn, data) != stretch.before)
    access.refuse({ErrorCode::kStaleToken, "the transcript is read by another run"});
  std::vector<Bytes> keys;
  for (std::uint32_t i : which) keys.push_back(uuid_key(space, stretch.uuids[i]));
  auto rows = txn.get_many(keys);
  BookedRow listed;
  auto list = [&] {
    if (!listed.uuids.empty()) txn.set(tuple::pack_onto(booked_key(data), place), encode(listed));
    place += listed.uuids.size();
    listed.uuids.clear();
  };
  for (std::size_t i = 0; i < which.size(); ++i) {
    // Of equal ones the first has it.
    if (i > 0 && keys[i] == keys[i - 1]) continue;
    auto owner = decode_owner(rows[i]);
    // One of its own is stored, or booked for an entry before this one.
    if (owner && (owner->session == session || is_stored(txn, space, *owner))) continue;
    write_owner(txn, keys[i], {session, stretch.before + which[i] + 1});
    listed.uuids.push_back(stretch.uuids[which[i]]);
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
    clear_owned(txn, space, in_txn(txn, booked_uuids(row.value)), session, entries);
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
