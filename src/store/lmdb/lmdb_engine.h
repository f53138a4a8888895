// The LMDB engine: the default place for perdure's rows.
//
// One dedicated thread, the commit lane, begins, fills and commits each write transaction, since LMDB's writer lock
// belongs to a thread. Any other thread reads. Two more threads sleep in the kernel: one on the bell that other
// processes ring when they commit, one on the deaths of those processes.
//
// What a reader sees is not always durable yet: a process may die within the last write of its commit, after the kernel
// has taken it and before the disk has, and the next to take the writer lock then makes that commit visible. So the
// bulletin keeps the number of the newest commit that is known to be synced, and an answer that rests on a newer one
// waits until it is.
#pragma once

#include <list>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "runtime/thread.h"
#include "store/engine.h"
#include "store/lmdb/environment.h"
#include "store/lmdb/peers.h"
#include "store/lmdb/views.h"

namespace perdure::lmdb {

Result<std::unique_ptr<Engine>> open_engine(const std::string& directory, Scheduler& scheduler,
                                            const StoreOptions& options);

class LmdbEngine final : public Engine, private PeerListener {
 public:
  LmdbEngine(std::unique_ptr<Environment> environment, Scheduler& scheduler, const StoreOptions& options);
  ~LmdbEngine() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  bool was_new() const override { return environment_->was_new; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  bool is_durable(std::uint64_t epoch) override { return environment_->bulletin->durable() >= epoch; }
  void when_durable(std::uint64_t epoch, std::move_only_function<void(Result<void>)> then) override;
  void commit(CommitJob& job) override;
  void listen(ChangeListener* listener) override;
  Bytes presence() const override;
  bool is_gone(BytesView presence) override;
  Result<VerifyReport> verify(const std::function<void(double)>& progress) override;
  Result<void> backup(const std::string& path) override;

  const RowReader& reader() const { return reader_; }
  /// From a snapshot that ends.
  void give_back(LmdbSnapshot& snapshot);

 private:
  struct DurabilityWaiter {
    std::uint64_t epoch;
    std::move_only_function<void(Result<void>)> then;
  };

  // PeerListener: on the threads of peers_.
  void peers_committed() override;
  void peer_died(int pid) override;

  void tell_of_anything();
  void run(CommitJob& job);
  Result<void> run_inside(MDB_txn* txn, CommitJob& job);
  /// Takes the writer lock: waits for commits of other processes, and syncs after one that died within its own.
  Result<MDB_txn*> begin_write();
  Result<void> commit_write(MDB_txn* txn);
  void report_commit(Duration took);
  bool meta_write_failed();
  /// The caller holds resize_gate_ shared until the transaction has ended or is listed in open_snapshots_.
  Result<MDB_txn*> begin_read();
  Result<std::unique_ptr<LmdbSnapshot>> try_snapshot();
  Result<void> follow_resize();
  bool has_room();
  /// Tells the log when the room on the disk comes to its end, and when there is some again.
  void note_room(bool there_is);
  std::uint64_t free_page_bytes();

  void retire_old_snapshots(Duration age);
  void settle_durability();
  void tell_durable(Result<void> outcome);

  const StoreOptions options_;
  Scheduler& scheduler_;
  const std::unique_ptr<Environment> environment_;
  const Capabilities capabilities_;
  const RowReader reader_;
  /// Set on the lane by a commit or a sync that failed for good.
  std::optional<Error> failure_;
  /// What the log was last told; of the lane.
  bool room_noted_ = true;

  /// Held shared while a read transaction is begun, exclusively while the map changes its size.
  std::shared_mutex resize_gate_;
  Mutex snapshots_mutex_;
  /// In the order of their opening.
  std::list<LmdbSnapshot*> open_snapshots_ PERDURE_GUARDED_BY(snapshots_mutex_);
  std::vector<MDB_txn*> idle_readers_ PERDURE_GUARDED_BY(snapshots_mutex_);

  Mutex durability_mutex_;
  std::vector<DurabilityWaiter> durability_waiters_ PERDURE_GUARDED_BY(durability_mutex_);

  Mutex listener_mutex_;
  ChangeListener* listener_ PERDURE_GUARDED_BY(listener_mutex_) = nullptr;

  std::unique_ptr<Executor> lane_;
  std::unique_ptr<Peers> peers_;
};

}  // namespace perdure::lmdb
