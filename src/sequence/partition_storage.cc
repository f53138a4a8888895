#include "sequence/partition_storage.h"

#include "base/seeded_bug.h"
#include "sequence/append.h"
#include "sequence/sequences_impl.h"
#include "store/system_access.h"

namespace perdure {
namespace {

constexpr std::size_t kScanRows = 2'000;
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

  static void go_on(const std::shared_ptr<Scan>& scan);
  /// Whether there may be more of it. Errors: kCorrupt.
  Result<bool> give(const std::vector<Row>& rows);
};

void Scan::go_on(const std::shared_ptr<Scan>& scan) {
  scan->node.transact(
      [range = scan->place->log_from(scan->from)](Transaction& txn) {
        SystemAccess access(txn);
        return txn.snapshot().get_range(range, {.limit = kScanRows});
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
  for (const Row& row : rows) {
    auto offset = sequence::offset_of(*place, row.key);
    if (!offset) return std::unexpected(std::move(offset.error()));
    if (!sequence::EntryRow::decode_numbers(row.value, numbers))
      return fail(ErrorCode::kCorrupt,
                  "the entry at offset " + std::to_string(*offset) + " of a log cannot be read; run verify");
    if (batcher(numbers, *offset) == SeqStorage::More::kEnough || *offset == UINT64_MAX) return false;
    from = *offset + 1;
  }
  return rows.size() == kScanRows;
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
        for (const auto& value : txn.get_many(rows)) numbers.push_back(sequence::decode_number(value));
        return numbers;
      },
      [done = std::move(done)](Result<std::vector<Number>> numbers, Receipt) mutable { done(std::move(numbers)); }, {});
}

void PartitionStorage::read_offset(Done<LogOffset> done) {
  node_->transact(
      [key = place_->offset](Transaction& txn) {
        SystemAccess access(txn);
        return sequence::decode_number(txn.get(key));
      },
      [done = std::move(done)](Result<LogOffset> offset, Receipt) mutable { done(std::move(offset)); }, {});
}

void PartitionStorage::write(std::vector<SeqValue> numbers, LogOffset offset, Done<void> done) {
  node_->transact(
      [lease = lease_, place = place_, numbers = std::move(numbers), offset](Transaction& txn) {
        fence(txn, lease);
        SystemAccess access(txn);
        // One that was given up, and comes late, must not take anything back.
        if (sequence::decode_number(txn.get(place->offset)) > offset) return;
        txn.set(place->offset, sequence::encode_number(offset));
        if (seeded(SeededBug::kOffsetBeforeNumbers) && !numbers.empty() && offset % 2 == 0) return;
        for (const SeqValue& value : numbers)
          txn.set(place->number_key(value.key), sequence::encode_number(value.number));
      },
      [done = std::move(done)](Result<void> written, Receipt) mutable { done(std::move(written)); }, kShortWrite);
}

void PartitionStorage::scan_log(LogOffset from, Batcher batcher, Done<void> done) {
  Scan::go_on(std::make_shared<Scan>(*node_, place_, from, std::move(batcher), std::move(done)));
}

void PartitionStorage::write_entry(Transaction& txn, LogOffset offset, const LogWrite& entry) const {
  fence(txn, lease_);
  SystemAccess access(txn);
  Bytes payload = in_txn(txn, sequence::encode_payload(entry.payload));
  bool known = static_cast<std::size_t>(entry.kind) < partition_->types.size();
  for (const auto* drawn : {&entry.numbers, &entry.updated})
    for (auto [seq, number] : *drawn) known = known && static_cast<std::size_t>(seq) < partition_->sequences.size();
  if (!known || offset == 0)
    access.refuse(
        {ErrorCode::kInvalidArgument,
         "an entry has an offset of 0, or a type or sequence that the partition " + place_->name + " does not have"});
  sequence::write_entry(txn, *place_, *partition_, offset,
                        {entry.kind, entry.workspace, node_->now(), entry.numbers, entry.updated, payload});
}

}  // namespace perdure
