// One node's share in the sequences of a store: there is nothing that runs by itself, only what the public calls need.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perdure/sequence.h"
#include "runtime/mutex.h"
#include "sequence/append.h"
#include "sequence/rows.h"
#include "store/store_part.h"

namespace perdure {

class SequencesImpl : public StorePart<SequencesImpl> {
 public:
  using AppendDone = std::move_only_function<void(Result<std::vector<Appended>>)>;
  using OwnDone = std::move_only_function<void(Result<OwnedPartition>)>;
  using PlacePtr = std::shared_ptr<const sequence::Place>;
  using PartitionPtr = std::shared_ptr<const sequence::PartitionRow>;

  static Result<Sequences> open(Store store, SequencesOptions options);
  /// `store` is kept open by the handles.
  explicit SequencesImpl(Store& store) : StorePart(store, "the sequences of this node") {}

  /// Errors: kInvalidArgument.
  Result<PlacePtr> place(const std::string& space, std::string_view partition) PERDURE_EXCLUDES(mutex_);
  /// The partition as `reader` has it. Needs system access. Errors: kNotFound, kCorrupt.
  Result<PartitionPtr> partition(Reader& reader, const sequence::Place& place) PERDURE_EXCLUDES(mutex_);

  /// First brings the numbers up to the log, if its last owner left them behind.
  void append(const PlacePtr& place, std::vector<Append> events, AppendDone done);
  /// The same in a transaction, which fails if they are far behind.
  std::vector<Appended> append(Transaction& txn, const sequence::Place& place, const std::vector<Append>& events);
  /// `self` is a handle.
  /// `handle` is needed only once it is owned: what the store's callbacks keep must not keep the store.
  void own(std::weak_ptr<SequencesImpl> handle, Session& session, const PlacePtr& place, Duration timeout,
           OwnDone done);
  WallTime now() { return scheduler_.wall_now(); }

 private:
  using Prepared = std::shared_ptr<const std::vector<sequence::PreparedAppend>>;
  /// Nothing if the numbers are far behind the log.
  std::optional<std::vector<Appended>> try_append(Transaction& txn, const sequence::Place& place,
                                                  const std::vector<sequence::PreparedAppend>& events,
                                                  std::size_t behind_max);
  void owned(const std::weak_ptr<SequencesImpl>& handle, const PlacePtr& place, Lease lease, OwnDone done);
  void append_prepared(const PlacePtr& place, const Prepared& events, AppendDone done);
  void catch_up(const PlacePtr& place, const Prepared& events, AppendDone done);

  Mutex mutex_;
  /// By space, a slash, and partition.
  std::unordered_map<std::string, PlacePtr> places_ PERDURE_GUARDED_BY(mutex_);
  /// What was parsed, by the key of the row, with the bytes that it was parsed from: they are hardly ever changed.
  std::unordered_map<Bytes, std::pair<Bytes, PartitionPtr>> partitions_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
