#include "sequence/partition_storage.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "sequence/append.h"
#include "sequence/sequences_impl.h"
#include "store/system_access.h"

namespace perdure {
namespace {

/// Entries that are read at once: as many as make a megabyte, more or less.
constexpr std::size_t kScanRowsMin = 8;
constexpr std::size_t kScanRowsMax = 2'048;
constexpr std::size_t kScanBytes = 1'000'000;
/// Numbers that one transaction writes.
constexpr std::size_t kWriteMax = 2'000;
/// They free nothing, but without them nobody can go on.
constexpr TransactOptions kShortWrite = {.body = Body::kShort, .reserve = Reserve::kMayUse};

/// Lets `txn` commit only while the partition is owned.
void fence(Transaction& txn, const Lease& lease) {
  if (!seeded(SeededBug::kNumberWithoutFence)) lease.fence(txn);
}

/// Gives entries of the log to the batcher, a part of it at a time.
struct Scan {
  SequencesImpl& node;
  PartitionStorage::PlacePtr place;
  LogOffset from;
  SeqStorage::Batcher batcher;
  SeqStorage::Done<void> done;
  std::size_t rows_max = kScanRowsMin * 8;

  static void go_on(const std::shared_ptr<Scan>& scan);
  /// Whether there may be more of it. Errors: kCorrupt.
  Result<bool> give(const std::vector<Row>& rows);
};

void Scan::go_on(const std::shared_ptr<Scan>& scan) {
  scan->node.transact(
      [range = scan->place->log_from(scan->from), rows_max = scan->rows_max](Transaction& txn) {
        SystemAccess access(txn);
        return txn.snapshot().get_range(range, {.limit = rows_max});
      },
      [scan](Result<std::vector<Row>> rows, Receipt) {
        if (!rows) return scan->done(std::unexpected(std::move(rows.error())));
        auto more = scan->give(*rows);
        if (!more) return scan->done(std::unexpected(std::move(more.error())));
        if (!*more) return scan->done({});
        // As a task of its own, so that a long log is no deep stack.
        scan->node.scheduler().post(scan->node.guarded([scan] { go_on(scan); }));
      },
      {});
}

Result<bool> Scan::give(const std::vector<Row>& rows) {
  std::vector<SeqValue> numbers;
  std::size_t bytes = 0;
  for (const Row& row : rows) {
    bytes += row.value.size();
    auto offset = sequence::offset_of(*place, row.key);
    if (!offset) return std::unexpected(std::move(offset.error()));
    if (!sequence::EntryRow::decode_numbers(row.value, numbers))
      return fail(ErrorCode::kCorrupt,
                  "the entry at offset " + std::to_string(*offset) + " of a log cannot be read; run verify");
    if (batcher(numbers, *offset) == SeqStorage::More::kEnough || *offset == UINT64_MAX) return false;
    from = *offset + 1;
  }
  bool more = rows.size() == rows_max;
  rows_max = bytes < kScanBytes ? std::min(rows_max * 2, kScanRowsMax) : std::max(rows_max / 2, kScanRowsMin);
  return more;
}

}  // namespace

PartitionStorage::PartitionStorage(std::shared_ptr<SequencesImpl> node, PlacePtr place, PartitionPtr partition,
                                   Lease lease)
    : node_(std::move(node)), place_(std::move(place)), partition_(std::move(partition)), lease_(std::move(lease)) {}

void PartitionStorage::read_numbers(std::vector<SeqKey> keys, Done<std::vector<Number>> done) {
  std::vector<Bytes> rows;
  for (const SeqKey& key : keys) rows.push_back(place_->number_key(key));
  node_->transact(
      [rows = std::move(rows)](Transaction& txn) {
        SystemAccess access(txn);
        std::vector<Number> numbers;
        for (const auto& value : txn.get_many(rows)) numbers.push_back(sequence::decode_number(txn, value));
        return numbers;
      },
      [done = std::move(done)](Result<std::vector<Number>> numbers, Receipt) mutable { done(std::move(numbers)); }, {});
}

void PartitionStorage::read_offset(Done<LogOffset> done) {
  node_->transact(
      [key = place_->offset](Transaction& txn) {
        SystemAccess access(txn);
        return sequence::read_number(txn, key);
      },
      [done = std::move(done)](Result<LogOffset> offset, Receipt) mutable { done(std::move(offset)); }, {});
}

/// Numbers in parts, and the offset with the last of them.
struct PartitionStorage::Write {
  SequencesImpl& node;
  PlacePtr place;
  Lease lease;
  std::vector<SeqValue> numbers;
  LogOffset offset;
  Done<void> done;
  std::size_t first = 0;

  void put(Transaction& txn, std::size_t end) const {
    fence(txn, lease);
    SystemAccess access(txn);
    // One that was given up, and comes late, must not take anything back.
    if (sequence::read_number(txn, place->offset) > offset) return;
    if (end == numbers.size()) txn.set(place->offset, sequence::encode_number(offset));
    if (seeded(SeededBug::kOffsetBeforeNumbers) && offset % 2 == 0) return;
    for (std::size_t i = first; i < end; ++i)
      txn.set(place->number_key(numbers[i].key), sequence::encode_number(numbers[i].number));
  }
  static void go_on(const std::shared_ptr<Write>& write) {
    std::size_t end = std::min(write->first + kWriteMax, write->numbers.size());
    write->node.transact([write, end](Transaction& txn) { write->put(txn, end); },
                         [write, end](Result<void> written, Receipt) {
                           write->first = end;
                           if (!written || end == write->numbers.size()) return write->done(std::move(written));
                           go_on(write);
                         },
                         kShortWrite);
  }
};

void PartitionStorage::write(std::vector<SeqValue> numbers, LogOffset offset, Done<void> done) {
  for (const SeqValue& value : numbers)
    if (!partition_->name_of(value.key.seq))
      return done(fail(ErrorCode::kInvalidArgument, "the partition \"" + place_->name +
                                                        "\" does not have the sequence of a number; open its "
                                                        "sequencer with OwnedPartition::params"));
  Write::go_on(std::make_shared<Write>(*node_, place_, lease_, std::move(numbers), offset, std::move(done)));
}

void PartitionStorage::scan_log(LogOffset from, Batcher batcher, Done<void> done) {
  Scan::go_on(std::make_shared<Scan>(*node_, place_, from, std::move(batcher), std::move(done)));
}

void PartitionStorage::write_entry(Transaction& txn, LogOffset offset, const LogWrite& entry) const {
  fence(txn, lease_);
  SystemAccess access(txn);
  Bytes payload = in_txn(txn, sequence::encode_payload(entry.payload));
  bool known = partition_->type(entry.kind) != nullptr;
  for (const auto* drawn : {&entry.numbers, &entry.updated}) {
    for (auto [seq, number] : *drawn) known = known && partition_->name_of(seq);
    if (drawn->size() > sequence::kDrawnMax)
      access.refuse({ErrorCode::kInvalidArgument,
                     "an entry has at most " + std::to_string(sequence::kDrawnMax) + " numbers of each sort"});
  }
  if (!known || offset == 0)
    access.refuse(
        {ErrorCode::kInvalidArgument,
         "an entry has an offset of 0, or a type or sequence that the partition " + place_->name + " does not have"});
  sequence::write_entry(txn, *place_, *partition_, offset,
                        {entry.kind, entry.workspace, node_->now(), entry.numbers, entry.updated, payload});
}

}  // namespace perdure
