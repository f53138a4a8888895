// The storage of a sequencer on the store: numbers, offset and log of a partition that this process has for itself.
#pragma once

#include <memory>
#include <vector>

#include "perdure/sequence.h"
#include "perdure/sequencer.h"
#include "sequence/rows.h"

namespace perdure {

class SequencesImpl;

/// Every write checks at its commit that the partition is still owned. Thread-safe. It keeps the store open, and so is
/// never kept by callbacks of the store: those have what they need of it.
class PartitionStorage final : public SeqStorage {
 public:
  using PlacePtr = std::shared_ptr<const sequence::Place>;
  using PartitionPtr = std::shared_ptr<const sequence::PartitionRow>;
  /// `node` is a handle.
  PartitionStorage(std::shared_ptr<SequencesImpl> node, PlacePtr place, PartitionPtr partition, Lease lease);

  void read_numbers(std::vector<SeqKey> keys, Done<std::vector<Number>> done) override;
  void read_offset(Done<LogOffset> done) override;
  void write(std::vector<SeqValue> numbers, LogOffset offset, Done<void> done) override;
  void scan_log(LogOffset from, Batcher batcher, Done<void> done) override;

  void write_entry(Transaction& txn, LogOffset offset, const LogWrite& entry) const;
  const sequence::PartitionRow& partition() const { return *partition_; }
  const Lease& lease() const { return lease_; }

 private:
  struct Write;
  const std::shared_ptr<SequencesImpl> node_;
  const PlacePtr place_;
  const PartitionPtr partition_;
  const Lease lease_;
};

}  // namespace perdure
