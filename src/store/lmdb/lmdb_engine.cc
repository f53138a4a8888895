#include "store/lmdb/lmdb_engine.h"

#include <sys/statvfs.h>

#include <cerrno>

#include "base/assert.h"
#include "base/endian.h"
#include "runtime/latch.h"
#include "store/lmdb/errors.h"
#include "store/report.h"

namespace perdure::lmdb {
namespace {

/// Old pages cannot be reused while a snapshot may need them: one held for seconds under load grew a file a
/// thousandfold. Bodies that take longer go on with a new snapshot.
constexpr Duration kSnapshotAge = std::chrono::milliseconds(20);
constexpr std::size_t kIdleReadersMax = 32;
/// With less than this left on the disk, a short write is taken for a full disk rather than a broken one: LMDB reports
/// both as EIO. Should it be a failed sync after all, nothing is lost by going on: what was not written belongs to a
/// transaction that LMDB has given up, and every earlier one was synced by itself.
constexpr std::uint64_t kNothingLeft = 4 << 20;

std::uint64_t disk_room(const std::string& directory) {
  struct statvfs status = {};
  if (statvfs(directory.c_str(), &status) != 0) return UINT64_MAX;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace

Result<std::unique_ptr<Engine>> open_engine(const std::string& directory, Scheduler& scheduler,
                                            const StoreOptions& options) {
  auto environment = open_environment(directory, options, scheduler.random());
  if (!environment) return std::unexpected(std::move(environment.error()));
  return std::make_unique<LmdbEngine>(std::move(*environment), scheduler, options);
}

LmdbEngine::LmdbEngine(std::unique_ptr<Environment> environment, Scheduler& scheduler, const StoreOptions& options)
    : options_(options),
      scheduler_(scheduler),
      environment_(std::move(environment)),
      capabilities_{.name = "lmdb", .limits = {}},
      reader_(*environment_),
      lane_(scheduler.lane("perdure-commit")),
      peers_(std::make_unique<Peers>(*environment_->bulletin, static_cast<PeerListener&>(*this))) {}

LmdbEngine::~LmdbEngine() {
  peers_.reset();
  lane_.reset();
  MutexLock lock(snapshots_mutex_);
  check(open_snapshots_.empty(), "no snapshot is open when the store closes");
  for (MDB_txn* txn : idle_readers_) mdb_txn_abort(txn);
}

// Reading.

Result<std::unique_ptr<Snapshot>> LmdbEngine::snapshot() {
  auto snapshot = try_snapshot();
  if (!snapshot && snapshot.error().code == ErrorCode::kConflict) {
    // Only the lane can see to it that no write transaction is open.
    Promise<Result<void>> followed;
    lane_->post([&] { followed.set(follow_resize()); });
    if (auto done = followed.take(); !done) return std::unexpected(std::move(done.error()));
    snapshot = try_snapshot();
  }
  return snapshot;
}

Result<std::unique_ptr<LmdbSnapshot>> LmdbEngine::try_snapshot() {
  std::shared_lock gate(resize_gate_);
  auto txn = begin_read();
  if (!txn) return std::unexpected(std::move(txn.error()));
  auto snapshot = std::make_unique<LmdbSnapshot>(*this, *txn, scheduler_.now());
  MutexLock lock(snapshots_mutex_);
  snapshot->place_ = open_snapshots_.insert(open_snapshots_.end(), snapshot.get());
  return snapshot;
}

Result<MDB_txn*> LmdbEngine::begin_read() {
  MDB_txn* txn = nullptr;
  {
    MutexLock lock(snapshots_mutex_);
    if (!idle_readers_.empty()) {
      txn = idle_readers_.back();
      idle_readers_.pop_back();
    }
  }
  int code = txn ? mdb_txn_renew(txn) : mdb_txn_begin(environment_->env, nullptr, MDB_RDONLY, &txn);
  if (code == 0) return txn;
  if (txn) mdb_txn_abort(txn);
  if (code == MDB_MAP_RESIZED) return fail(ErrorCode::kConflict, "another process has grown the map; try again");
  return std::unexpected(reader_.failed(code));
}

void LmdbEngine::give_back(LmdbSnapshot& snapshot) {
  {
    MutexLock lock(snapshots_mutex_);
    open_snapshots_.erase(snapshot.place_);
  }
  if (!snapshot.retired_) mdb_txn_reset(snapshot.txn_);
  MutexLock lock(snapshots_mutex_);
  if (idle_readers_.size() < kIdleReadersMax)
    idle_readers_.push_back(snapshot.txn_);
  else
    mdb_txn_abort(snapshot.txn_);
}

void LmdbEngine::retire_old_snapshots(Duration age) {
  SteadyTime limit = scheduler_.now() - age;
  MutexLock lock(snapshots_mutex_);
  for (LmdbSnapshot* snapshot : open_snapshots_) {
    if (snapshot->opened() > limit) break;
    snapshot->retire();
  }
}

// Committing: all of it on the lane.

void LmdbEngine::commit(CommitJob& job) {
  lane_->post([this, &job] { run(job); });
}

void LmdbEngine::run(CommitJob& job) {
  retire_old_snapshots(kSnapshotAge);
  auto txn = begin_write();
  Result<void> outcome = txn ? run_inside(*txn, job) : Result<void>(std::unexpected(std::move(txn.error())));
  if (!outcome && outcome.error().code == ErrorCode::kStoreFailed) failure_ = outcome.error();
  if (!outcome && outcome.error().code == ErrorCode::kStoreFull) note_room(false);
  tell_durable(failure_ ? std::unexpected(*failure_) : Result<void>());
  job.done(std::move(outcome));
}

Result<void> LmdbEngine::run_inside(MDB_txn* txn, CommitJob& job) {
  bool room = has_room();
  if (!room) note_room(false);
  LmdbCommit view(*environment_, txn, room);
  Result<Applied> applied = Applied::kNothing;
  auto done = view.begin();
  if (done) applied = job.apply(view);
  if (done && !applied) done = std::unexpected(std::move(applied.error()));
  if (done && *applied == Applied::kSomething) done = view.finish();
  if (!done || *applied != Applied::kSomething) {
    mdb_txn_abort(txn);
    return done;
  }
  Bulletin& bulletin = *environment_->bulletin;
  bool alone = bulletin.alone();
  std::uint64_t epoch = mdb_txn_id(txn);
  std::uint64_t reserved = alone ? 0 : bulletin.reserve(job.changed_keys());
  if (auto committed = commit_write(txn); !committed) return committed;
  bulletin.raise_durable(epoch);
  if (!alone) bulletin.announce(reserved);
  if (room) note_room(true);
  return {};
}

Result<MDB_txn*> LmdbEngine::begin_write() {
  if (failure_) return std::unexpected(*failure_);
  MDB_txn* txn;
  int code = mdb_txn_begin(environment_->env, nullptr, 0, &txn);
  if (code == MDB_MAP_RESIZED) {
    if (auto followed = follow_resize(); !followed) return std::unexpected(std::move(followed.error()));
    code = mdb_txn_begin(environment_->env, nullptr, 0, &txn);
  }
  if (code) return std::unexpected(lmdb_error(code, "cannot begin a transaction on " + environment_->path));
  // With the writer lock in hand, a commit that is visible but not marked durable is one whose process died before it
  // was sure of its last sync.
  std::uint64_t newest = mdb_txn_id(txn) - 1;
  if (environment_->bulletin->durable() < newest) {
    if (int failed = mdb_env_sync(environment_->env, 1)) {
      mdb_txn_abort(txn);
      // Remembered here, because not every caller is a commit that remembers it: there is no second sync.
      failure_ = Error{ErrorCode::kStoreFailed, "cannot sync " + environment_->path + ": " + mdb_strerror(failed)};
      return std::unexpected(*failure_);
    }
    environment_->bulletin->raise_durable(newest);
  }
  return txn;
}

Result<void> LmdbEngine::commit_write(MDB_txn* txn) {
  SteadyTime began = options_.metrics ? scheduler_.now() : SteadyTime();
  int code = mdb_txn_commit(txn);
  if (code == 0) {
    if (options_.metrics) report_commit(scheduler_.now() - began);
    return {};
  }
  Error error = lmdb_error(code, "cannot commit to " + environment_->path);
  bool short_write = code == EIO && disk_room(environment_->directory) < kNothingLeft;
  if (code == MDB_MAP_FULL) return std::unexpected(std::move(error));
  if ((error.code == ErrorCode::kStoreFull || short_write) && !meta_write_failed())
    return fail(ErrorCode::kStoreFull, "cannot commit to " + environment_->path +
                                           ": the disk is full; make room on it, reads go on meanwhile");
  // Whatever failed in the middle of a commit, a sync above all, is not tried again: the kernel may have dropped what
  // it could not write, and would report success.
  return fail(ErrorCode::kStoreFailed, std::move(error.message));
}

void LmdbEngine::report_commit(Duration took) {
  MDB_envinfo info;
  MDB_stat status;
  mdb_env_info(environment_->env, &info);
  mdb_env_stat(environment_->env, &status);
  observe(options_, Metric::kSyncDuration, seconds(took));
  gauge(options_, Metric::kStoreBytes, static_cast<double>((info.me_last_pgno + 1) * status.ms_psize));
}

void LmdbEngine::note_room(bool there_is) {
  if (there_is == room_noted_) return;
  room_noted_ = there_is;
  if (there_is)
    log(options_, LogLevel::kInfo, "lmdb", "there is room for the store again", {{"path", environment_->path}});
  else
    log(options_, LogLevel::kWarning, "lmdb", "the disk of the store is full, or nearly; writes that add are refused",
        {{"path", environment_->path}});
}

/// Whether a commit failed at its very last step, so that nobody knows if it took effect. LMDB then refuses everything.
bool LmdbEngine::meta_write_failed() {
  std::shared_lock gate(resize_gate_);
  auto txn = begin_read();
  if (txn) mdb_txn_abort(*txn);
  return !txn && txn.error().code == ErrorCode::kStoreFailed;
}

/// Another process has grown the map beyond ours. No transaction of this process may be open while it changes.
Result<void> LmdbEngine::follow_resize() {
  std::unique_lock gate(resize_gate_);
  MutexLock lock(snapshots_mutex_);
  for (LmdbSnapshot* snapshot : open_snapshots_) snapshot->retire_for_sure();
  if (int code = mdb_env_set_mapsize(environment_->env, 0))
    return std::unexpected(lmdb_error(code, "cannot follow the grown map of " + environment_->path));
  return {};
}

bool LmdbEngine::has_room() {
  MDB_envinfo info;
  MDB_stat status;
  mdb_env_info(environment_->env, &info);
  mdb_env_stat(environment_->env, &status);
  std::uint64_t used = (info.me_last_pgno + 1) * status.ms_psize;
  std::uint64_t map_room = info.me_mapsize > used ? info.me_mapsize - used : 0;
  std::uint64_t room = std::min(map_room, disk_room(environment_->directory));
  // A small map must not consist of the reserve alone.
  std::uint64_t reserve = std::min<std::uint64_t>(options_.reserve_bytes, info.me_mapsize / 4);
  // Pages that were freed inside the file can be written again without growing it.
  return room >= reserve || room + free_page_bytes() >= reserve;
}

std::uint64_t LmdbEngine::free_page_bytes() {
  constexpr MDB_dbi kFreeList = 0;
  std::shared_lock gate(resize_gate_);
  auto txn = begin_read();
  if (!txn) return 0;
  std::uint64_t pages = 0;
  MDB_cursor* cursor;
  if (mdb_cursor_open(*txn, kFreeList, &cursor) == 0) {
    // Each row lists pages, and begins with how many.
    MDB_val key, list;
    while (mdb_cursor_get(cursor, &key, &list, MDB_NEXT) == 0) pages += *static_cast<const std::size_t*>(list.mv_data);
    mdb_cursor_close(cursor);
  }
  MDB_stat status;
  mdb_env_stat(environment_->env, &status);
  mdb_txn_abort(*txn);
  return pages * status.ms_psize;
}

// Durability of what readers saw.

void LmdbEngine::when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) {
  {
    MutexLock lock(durability_mutex_);
    durability_waiters_.push_back({epoch, std::move(then)});
  }
  lane_->post([this] { settle_durability(); });
}

/// Having held the writer lock once, every commit that was visible before is durable.
void LmdbEngine::settle_durability() {
  {
    MutexLock lock(durability_mutex_);
    if (durability_waiters_.empty()) return;
  }
  auto txn = begin_write();
  if (txn) mdb_txn_abort(*txn);
  tell_durable(txn ? Result<void>() : std::unexpected(txn.error()));
}

void LmdbEngine::tell_durable(Result<void> outcome) {
  std::vector<DurabilityWaiter> told;
  {
    MutexLock lock(durability_mutex_);
    std::erase_if(durability_waiters_, [&](DurabilityWaiter& waiter) {
      if (outcome && !is_durable(waiter.epoch)) return false;
      told.push_back(std::move(waiter));
      return true;
    });
  }
  for (DurabilityWaiter& waiter : told) waiter.then(outcome);
}

// Other processes.

Bytes LmdbEngine::presence() const {
  Bytes life(sizeof(std::uint64_t), '\0');
  store_big(life.data(), environment_->bulletin->life());
  return life;
}

bool LmdbEngine::is_gone(BytesView presence) {
  return presence.size() == sizeof(std::uint64_t) &&
         environment_->bulletin->is_over(load_big<std::uint64_t>(presence.data()));
}

void LmdbEngine::listen(ChangeListener* listener) {
  MutexLock lock(listener_mutex_);
  listener_ = listener;
}

void LmdbEngine::peers_committed() {
  retire_old_snapshots(kSnapshotAge);
  auto changed = environment_->bulletin->changes();
  MutexLock lock(listener_mutex_);
  if (!listener_) return;
  if (!changed)
    listener_->anything_changed();
  else if (!changed->empty())
    listener_->keys_changed(*changed);
}

void LmdbEngine::peer_died(int pid) {
  log(options_, LogLevel::kWarning, "lmdb", "a process that had the store open has ended without closing it",
      {{"path", environment_->path}, {"pid", std::to_string(pid)}});
  count(options_, Metric::kPeerDeaths, 1);
  int dead = 0;
  mdb_reader_check(environment_->env, &dead);
  // It may have died between its commit and its announcement.
  tell_of_anything();
  // And within its last sync: see begin_write. If it held the writer lock then, its last commit is shown to readers
  // only when somebody has taken the lock over, so they are told once more.
  lane_->post([this] {
    if (auto txn = begin_write()) mdb_txn_abort(*txn);
    tell_of_anything();
  });
}

void LmdbEngine::tell_of_anything() {
  MutexLock lock(listener_mutex_);
  if (listener_) listener_->anything_changed();
}

}  // namespace perdure::lmdb
