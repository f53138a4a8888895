#include "sequence/sequences_impl.h"

#include "perdure/session.h"
#include "sequence/partition_storage.h"
#include "session/rows.h"
#include "store/system_access.h"

namespace perdure {
namespace {

/// Entries that an append sees to in passing, and that a transaction of its own does.
constexpr std::size_t kPassing = 100;
constexpr std::size_t kCatchUp = 1'000;
/// What is kept of partitions, before it is thrown away.
constexpr std::size_t kKnownMax = 10'000;

Result<std::vector<sequence::PreparedAppend>> prepare_all(const std::vector<Append>& events) {
  std::vector<sequence::PreparedAppend> prepared;
  prepared.reserve(events.size());
  for (const Append& event : events) {
    auto one = sequence::prepare(event);
    if (!one) return std::unexpected(std::move(one.error()));
    prepared.push_back(std::move(*one));
  }
  return prepared;
}

}  // namespace

Result<Sequences> SequencesImpl::open(Store store, SequencesOptions options) {
  if (auto good = session::check_short_name(options.space, "the space"); !good)
    return std::unexpected(std::move(good.error()));
  if (auto use = StoreAccess::impl(store).use(); !use) return std::unexpected(std::move(use.error()));
  auto impl = std::make_shared<SequencesImpl>(store);
  // Handles share an owner of their own, as callbacks may keep the object for a moment longer. They keep the store open
  // as well, so that it is closed where the last of them is dropped.
  SequencesImpl* raw = impl.get();
  std::shared_ptr<SequencesImpl> handle(
      raw, [impl = std::move(impl), store = std::move(store)](SequencesImpl* node) { node->abandon(); });
  return Sequences(std::move(handle), std::move(options.space));
}

Result<SequencesImpl::PlacePtr> SequencesImpl::place(const std::string& space, std::string_view partition) {
  std::string name = space + "/" + std::string(partition);
  {
    MutexLock lock(mutex_);
    auto found = places_.find(name);
    if (found != places_.end()) return found->second;
  }
  if (auto good = session::check_short_name(space, "the space"); !good) return std::unexpected(std::move(good.error()));
  if (auto good = session::check_short_name(partition, "the partition"); !good)
    return std::unexpected(std::move(good.error()));
  auto made = std::make_shared<const sequence::Place>(space, partition);
  MutexLock lock(mutex_);
  if (places_.size() >= kKnownMax) places_.clear();
  places_.emplace(std::move(name), made);
  return made;
}

Result<SequencesImpl::PartitionPtr> SequencesImpl::partition(Reader& reader, const sequence::Place& place) {
  auto value = reader.get(place.spec);
  if (!value)
    return fail(ErrorCode::kNotFound,
                "there is no partition \"" + place.name + "\" in the space \"" + place.space + "\"; set it first");
  std::shared_ptr<const Parsed> known;
  {
    MutexLock lock(mutex_);
    if (auto found = parsed_.find(place.spec); found != parsed_.end()) known = found->second;
  }
  if (known && known->bytes == *value) return PartitionPtr(known, &known->row);
  auto row = sequence::PartitionRow::decode(*value);
  if (!row) return std::unexpected(std::move(row.error()));
  known = std::make_shared<const Parsed>(std::move(*value), std::move(*row));
  MutexLock lock(mutex_);
  if (parsed_.size() >= kKnownMax) parsed_.clear();
  parsed_.insert_or_assign(place.spec, known);
  return PartitionPtr(known, &known->row);
}

// Appending.

std::optional<std::vector<Appended>> SequencesImpl::try_append(Transaction& txn, const sequence::Place& place,
                                                               const std::vector<sequence::PreparedAppend>& events,
                                                               std::size_t behind_max) {
  SystemAccess access(txn);
  PartitionPtr partition = in_txn(txn, this->partition(txn, place));
  refuse_if_owned(txn, place);
  auto [last, behind] = sequence::catch_up(txn, place, behind_max);
  // What was caught up with is committed alone if it leaves too little room.
  if (behind || access.is_full()) return std::nullopt;
  return sequence::append_all(txn, place, *partition, last, events, now());
}

void SequencesImpl::append(const PlacePtr& place, std::vector<Append> events, AppendDone done) {
  auto prepared = prepare_all(events);
  if (!prepared) return done(std::unexpected(std::move(prepared.error())));
  append_prepared(place, std::make_shared<const std::vector<sequence::PreparedAppend>>(std::move(*prepared)),
                  std::move(done));
}

void SequencesImpl::append_prepared(const PlacePtr& place, const Prepared& events, AppendDone done) {
  transact([this, place, events](Transaction& txn) { return try_append(txn, *place, *events, kPassing); },
           [this, place, events, done = std::move(done)](Result<std::optional<std::vector<Appended>>> appended,
                                                         Receipt) mutable {
             if (!appended) return done(std::unexpected(std::move(appended.error())));
             if (*appended) return done(std::move(**appended));
             catch_up(place, events, std::move(done));
           },
           {.body = Body::kShort});
}

void SequencesImpl::catch_up(const PlacePtr& place, const Prepared& events, AppendDone done) {
  transact(
      [this, place](Transaction& txn) {
        SystemAccess access(txn);
        refuse_if_owned(txn, *place);
        return sequence::catch_up(txn, *place, kCatchUp).behind;
      },
      [this, place, events, done = std::move(done)](Result<bool> behind, Receipt) mutable {
        if (!behind) return done(std::unexpected(std::move(behind.error())));
        if (*behind) return catch_up(place, events, std::move(done));
        append_prepared(place, events, std::move(done));
      },
      {.body = Body::kShort, .reserve = Reserve::kMayUse});
}

void SequencesImpl::refuse_if_owned(Transaction& txn, const sequence::Place& place) {
  auto owned = sequence::owned_by_other(txn, place);
  if (!owned) return;
  // Not part of the transaction, and harmless: whoever else is at it, one session will do.
  if (!looking_.exchange(true)) scheduler_.post(guarded([this] { look_after_owners(); }));
  SystemAccess(txn).refuse(std::move(*owned));
}

void SequencesImpl::look_after_owners() {
  SessionKeeper::open(store_, {}, [weak = weak_from_this()](Result<std::shared_ptr<SessionKeeper>> keeper) {
    auto self = weak.lock();
    if (!self) return;
    if (!keeper) {
      self->looking_ = false;
      return;
    }
    auto use = self->enter();
    if (!use) return (*keeper)->abandon();
    MutexLock lock(self->mutex_);
    self->keeper_ = std::move(*keeper);
  });
}

void SequencesImpl::abandon() {
  std::shared_ptr<SessionKeeper> keeper;
  {
    MutexLock lock(mutex_);
    keeper.swap(keeper_);
  }
  if (keeper) keeper->abandon();
  StorePart::abandon();
}

std::vector<Appended> SequencesImpl::append(Transaction& txn, const sequence::Place& place,
                                            const std::vector<Append>& events) {
  auto prepared = in_txn(txn, prepare_all(events));
  auto appended = try_append(txn, place, prepared, kCatchUp);
  if (!appended)
    SystemAccess(txn).refuse(
        {ErrorCode::kUnavailable, "the numbers of the partition \"" + place.name +
                                      "\" are far behind its log, which its last owner left so; append to it once in a "
                                      "transaction of its own, then try again"});
  return std::move(*appended);
}

// Owning.

void SequencesImpl::own(std::weak_ptr<SequencesImpl> handle, Session& session, const PlacePtr& place, Duration timeout,
                        OwnDone done) {
  session.acquire_async(place->lease, timeout,
                        [weak = weak_from_this(), handle = std::move(handle), place,
                         done = std::move(done)](Result<Lease> lease) mutable {
                          if (!lease) return done(std::unexpected(std::move(lease.error())));
                          auto self = weak.lock();
                          if (!self)
                            return lease->release_async([done = std::move(done)](const Result<void>&) mutable {
                              done(fail(ErrorCode::kClosed, "the sequences of this node are closed"));
                            });
                          self->owned(handle, place, std::move(*lease), std::move(done));
                        });
}

void SequencesImpl::owned(const std::weak_ptr<SequencesImpl>& handle, const PlacePtr& place, Lease lease,
                          OwnDone done) {
  transact(
      [this, place](Transaction& txn) {
        SystemAccess access(txn);
        return partition(txn, *place);
      },
      [this, handle, place, lease = std::move(lease), done = std::move(done)](Result<PartitionPtr> row,
                                                                              Receipt) mutable {
        auto node = row ? handle.lock() : nullptr;
        if (row && !node) row = std::unexpected(closed_error());
        if (row)
          return done(OwnedPartition(
              std::make_shared<PartitionStorage>(std::move(node), place, std::move(*row), std::move(lease))));
        lease.release_async([done = std::move(done), why = std::move(row.error())](const Result<void>&) mutable {
          done(std::unexpected(std::move(why)));
        });
      },
      {});
}

}  // namespace perdure
