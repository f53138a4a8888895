// One node's share in the sequences of a store: there is nothing that runs by itself, only what the public calls need.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perdure/sequence.h"
#include "runtime/mutex.h"
#include "sequence/append.h"
#include "sequence/rows.h"
#include "session/session_keeper.h"
#include "session/store_clock.h"
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
  WallTime now() { return clock_.now(); }

  /// The last handle goes.
  void abandon() PERDURE_EXCLUDES(mutex_);

 private:
  /// A partition with the bytes that it was parsed from.
  struct Parsed {
    Bytes bytes;
    sequence::PartitionRow row;
  };
  using Prepared = std::shared_ptr<const std::vector<sequence::PreparedAppend>>;
  /// Nothing if the numbers are far behind the log.
  std::optional<std::vector<Appended>> try_append(Transaction& txn, const sequence::Place& place,
                                                  const std::vector<sequence::PreparedAppend>& events,
                                                  std::size_t behind_max);
  void owned(const std::weak_ptr<SequencesImpl>& handle, const PlacePtr& place, Lease lease, OwnDone done);
  void refuse_if_owned(Transaction& txn, const sequence::Place& place);
  /// Opens a session, which ends those that are dead: where nobody else does, an owner would keep its partition for
  /// ever.
  void look_after_owners();
  void append_prepared(const PlacePtr& place, const Prepared& events, AppendDone done);
  void catch_up(const PlacePtr& place, const Prepared& events, AppendDone done);

  StoreClock clock_{store_};
  Mutex mutex_;
  /// By space, a slash, and partition.
  std::unordered_map<std::string, PlacePtr> places_ PERDURE_GUARDED_BY(mutex_);
  /// By the key of the row: they are hardly ever changed.
  std::unordered_map<Bytes, std::shared_ptr<const Parsed>> parsed_ PERDURE_GUARDED_BY(mutex_);
  /// There is a session that looks after owners, or one is on its way.
  std::atomic<bool> looking_ = false;
  std::shared_ptr<SessionKeeper> keeper_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
