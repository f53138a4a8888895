#include "sequence/append.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "sequence/number_cache.h"
#include "session/rows.h"
#include "store/change_notes.h"
#include "store/system_access.h"

namespace perdure::sequence {
namespace {

/// One transaction brings so much up to the log, whatever its entries are like.
constexpr std::size_t kCatchUpNumbers = 5'000;
constexpr std::size_t kCatchUpBytes = 1'000'000;
constexpr std::size_t kCatchUpPage = 20;

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::string partition_text(const Place& place) {
  return "the partition " + quoted(place.name);
}

/// The numbers that a transaction draws: each is read once, and written once, however often it is drawn from.
class Drawer {
 public:
  Drawer(Transaction& txn, const Place& place) : txn_(txn), place_(place) {}

  Number next(const SeqKey& key, Number initial, const std::string& sequence) {
    auto [found, is_new] = last_.try_emplace(key, 0);
    if (is_new) found->second = read_number(txn_, place_.number_key(key));
    Number& last = found->second;
    if (last == UINT64_MAX)
      SystemAccess(txn_).refuse({ErrorCode::kTooLarge, "sequence " + quoted(sequence) + " of workspace " +
                                                           std::to_string(static_cast<std::uint64_t>(key.workspace)) +
                                                           " has no number left: 2^64 - 1 was the last"});
    return last = std::max(last + 1, initial);
  }

  void write() {
    for (auto& [key, number] : last_) txn_.set(place_.number_key(key), encode_number(number));
  }

 private:
  Transaction& txn_;
  const Place& place_;
  NumberMap last_;
};

void note(Transaction& txn, const Place& place, LogOffset last, std::size_t count, WallTime now) {
  SystemAccess(txn).note({.type = ChangeType::kPartition,
                          .state = ChangeState::kAppended,
                          .space = place.space,
                          .name = place.name,
                          .id = {},
                          .at = now,
                          .count = count,
                          .offset = last});
}

/// What the event draws, by the names that it has them by.
Drawn draw(Transaction& txn, Drawer& drawer, const Place& place, const PartitionRow& partition,
           const PartitionRow::Type& type, const PreparedAppend& event) {
  Drawn drawn;
  drawn.reserve(event.next.size());
  for (const std::string& sequence : event.next) {
    auto seq = partition.seq(sequence);
    auto initial = seq ? type.floors.find(*seq) : type.floors.end();
    if (initial == type.floors.end())
      SystemAccess(txn).refuse({ErrorCode::kInvalidArgument, "the type " + quoted(event.type) + " of " +
                                                                 partition_text(place) + " has no sequence " +
                                                                 quoted(sequence) + "; nothing was drawn"});
    drawn.emplace_back(*seq, drawer.next({event.workspace, *seq}, initial->second, sequence));
  }
  return drawn;
}

}  // namespace

Result<Bytes> encode_payload(const Value& payload) {
  if (auto good = payload.check("the payload"); !good) return std::unexpected(std::move(good.error()));
  if (payload.encoded_size() > kLogPayloadBytesMax)
    return fail(ErrorCode::kTooLarge, "the payload has " + std::to_string(payload.encoded_size()) +
                                          " bytes when encoded; at most " + std::to_string(kLogPayloadBytesMax) +
                                          " are allowed");
  return payload.encode();
}

Result<PreparedAppend> prepare(const Append& event) {
  if (event.next.size() > kDrawnMax)
    return fail(ErrorCode::kInvalidArgument, "an event draws at most " + std::to_string(kDrawnMax) + " numbers");
  auto payload = encode_payload(event.payload);
  if (!payload) return std::unexpected(std::move(payload.error()));
  return PreparedAppend{event.type, WorkspaceId{event.workspace}, event.next, std::move(*payload)};
}

std::optional<Error> owned_by_other(Reader& reader, const Place& place) {
  auto lease = session::read_lease(reader, place.lease);
  if (!lease || !session::is_open(reader, lease->session)) return std::nullopt;
  return Error{ErrorCode::kWrongState, partition_text(place) + " is owned by the session " +
                                           lease->session.to_string() +
                                           "; append through its sequencer, or wait until it ends"};
}

namespace {

/// A part of the log, and the largest numbers in it.
struct Tail {
  LogOffset last;
  NumberMap numbers = {};
  std::size_t entries = 0;
  std::size_t bytes = 0;

  bool full(std::size_t most) const {
    return entries >= most || numbers.size() >= kCatchUpNumbers || bytes >= kCatchUpBytes;
  }
  void take(Transaction& txn, const Place& place, const Row& row) {
    std::vector<SeqValue> drawn;
    if (!EntryRow::decode_numbers(row.value, drawn))
      SystemAccess(txn).refuse(
          {ErrorCode::kCorrupt, "an entry in the log of " + partition_text(place) + " cannot be read; run verify"});
    for (const SeqValue& value : drawn) {
      Number& number = numbers[value.key];
      number = std::max(number, value.number);
    }
    last = in_txn(txn, offset_of(place, row.key));
    ++entries;
    bytes += row.value.size();
  }
};

void raise_numbers(Transaction& txn, const Place& place, const NumberMap& numbers) {
  std::vector<Bytes> rows;
  rows.reserve(numbers.size());
  for (auto& [key, number] : numbers) rows.push_back(place.number_key(key));
  auto stored = txn.get_many(rows);  // Together, for on a server each by itself is a round trip.
  std::size_t i = 0;
  for (auto& [key, number] : numbers) {
    if (number > decode_number(txn, stored[i])) txn.set(rows[i], encode_number(number));
    ++i;
  }
}

}  // namespace

CaughtUp catch_up(Transaction& txn, const Place& place, std::size_t most) {
  LogOffset offset = read_number(txn, place.offset);
  if (seeded(SeededBug::kTrustTheNumbers)) return {offset, false};
  Tail tail{.last = offset};
  bool behind = true;
  // Mostly there is nothing, and then this look is what keeps an offset from being taken twice.
  while (behind && !tail.full(most) && tail.last != UINT64_MAX) {
    std::size_t page = tail.entries == 0 ? 1 : kCatchUpPage;
    auto rows = txn.get_range(place.log_from(tail.last + 1), {.limit = page});
    behind = rows.size() == page;
    for (const Row& row : rows) {
      if (tail.full(most)) {
        behind = true;
        break;
      }
      tail.take(txn, place, row);
    }
  }
  if (tail.last == UINT64_MAX) behind = false;
  if (tail.entries == 0) return {offset, false};
  raise_numbers(txn, place, tail.numbers);
  txn.set(place.offset, encode_number(tail.last));
  return {tail.last, behind};
}

std::vector<Appended> append_all(Transaction& txn, const Place& place, const PartitionRow& partition, LogOffset last,
                                 std::span<const PreparedAppend> events, WallTime now) {
  std::vector<Appended> appended;
  if (events.empty()) return appended;
  appended.reserve(events.size());
  Drawer drawer(txn, place);
  for (const PreparedAppend& event : events) {
    auto kind = partition.kind(event.type);
    if (!kind)
      SystemAccess(txn).refuse({ErrorCode::kInvalidArgument,
                                partition_text(place) + " has no type " + quoted(event.type) + "; nothing was drawn"});
    if (last == UINT64_MAX)
      SystemAccess(txn).refuse(
          {ErrorCode::kTooLarge, "the log of " + partition_text(place) + " has no offset left: 2^64 - 1 was the last"});
    Drawn drawn = draw(txn, drawer, place, partition, *partition.type(*kind), event);
    Appended& one = appended.emplace_back(++last);
    for (auto [seq, number] : drawn) one.numbers.push_back(number);
    txn.set(place.log_key(last), EntryRow{*kind, event.workspace, now, std::move(drawn), {}, event.payload}.encode());
  }
  drawer.write();
  txn.set(place.offset, encode_number(last));
  note(txn, place, last, appended.size(), now);
  return appended;
}

void write_entry(Transaction& txn, const Place& place, const PartitionRow& partition, LogOffset offset,
                 const EntryRow& entry) {
  Bytes key = place.log_key(offset);
  if (partition.trust != Trust::kNobody && txn.get(key))
    SystemAccess(txn).refuse(violation(
        place, "there is an entry at offset " + std::to_string(offset) + " already; actualize the sequencer"));
  txn.set(key, entry.encode());
  note(txn, place, offset, 1, entry.at);
  // Recovery begins behind the stored offset, and would never see what is written before it.
  if (offset > read_number(txn, place.offset)) return;
  NumberMap numbers;
  for (auto [seq, number] : entry.numbers) {
    Number& most = numbers[{entry.workspace, seq}];
    most = std::max(most, number);
  }
  raise_numbers(txn, place, numbers);
}

Error violation(const Place& place, const std::string& what) {
  return {ErrorCode::kWrongState, "sequences violation in " + partition_text(place) + ": " + what};
}

}  // namespace perdure::sequence
