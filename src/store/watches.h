// Watches.
//
// A watch is registered before the key's version is read, so that no change can fall between the two: whoever changes
// the key afterwards finds the watch here. Until its transaction has committed a change is only noted; the commit then
// arms the watch, or fires it if a change was noted.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "perdure/transaction.h"
#include "runtime/fork_mark.h"
#include "runtime/latch.h"
#include "runtime/mutex.h"
#include "runtime/scheduler.h"
#include "store/engine.h"

namespace perdure {

class WatchRegistry;

class WatchState : public std::enable_shared_from_this<WatchState> {
 public:
  WatchState(std::shared_ptr<WatchRegistry> registry, std::uint64_t key_hash)
      : registry_(std::move(registry)), key_hash_(key_hash) {}

  /// A change by the transaction with `version`; one that it does not know of has the largest.
  void changed(Version version);
  /// The transaction has committed. Changes up to `own` are its own: 0 if it did not write the key.
  void arm(Version own);
  void cancel();
  void then(Task callback);
  bool wait(Duration timeout) { return fired_.wait_for(timeout); }
  /// In a child of fork() nobody will ever tell it anything, and its locks may be held for ever.
  bool forked() const;

 private:
  friend class WatchRegistry;
  enum class State {
    kPending,   ///< From `watch` until its transaction has committed or failed.
    kArmed,     ///< Committed; waits for a change.
    kFired,     ///< Something changed. Final.
    kCancelled  ///< Given up, or its transaction failed. Final.
  };

  void finish(State state) PERDURE_EXCLUDES(mutex_);

  const std::shared_ptr<WatchRegistry> registry_;
  const std::uint64_t key_hash_;
  Latch fired_;
  Mutex mutex_;
  State state_ PERDURE_GUARDED_BY(mutex_) = State::kPending;
  /// The newest change seen while pending.
  Version noted_ PERDURE_GUARDED_BY(mutex_);
  Task callback_ PERDURE_GUARDED_BY(mutex_);
};

/// All watches of one store that have not ended. Thread-safe. It is shared with them, since they may outlive the store.
class WatchRegistry final : public ChangeListener, public std::enable_shared_from_this<WatchRegistry> {
 public:
  struct Change {
    std::uint64_t key_hash;
    Version version;
  };

  WatchRegistry(Executor& executor, std::size_t watches_max, std::shared_ptr<const ForkMark> fork_mark)
      : watches_max_(watches_max), fork_mark_(std::move(fork_mark)), executor_(&executor) {}

  [[nodiscard]] Result<std::shared_ptr<WatchState>> add(BytesView key);
  void notify(std::span<const Change> changes);
  void keys_changed(std::span<const std::uint64_t> key_hashes) override;
  void anything_changed() override;
  /// The store is closing: nobody will tell of changes any more.
  void cancel_all();

 private:
  friend class WatchState;
  void remove(const WatchState& watch);
  /// Drops the callback if the store is closed: its threads are gone.
  void post(Task callback);
  std::vector<std::shared_ptr<WatchState>> all();

  const std::size_t watches_max_;
  const std::shared_ptr<const ForkMark> fork_mark_;
  Mutex mutex_;
  /// Null once the store closes.
  Executor* executor_ PERDURE_GUARDED_BY(mutex_);
  std::unordered_multimap<std::uint64_t, std::shared_ptr<WatchState>> watches_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
