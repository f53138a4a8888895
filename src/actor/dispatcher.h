// Finds the mailboxes of one kind that have messages, for this node.
//
// A push marks the mailbox in the ready index and rings the bell of the kind. The dispatcher watches the bell, walks
// the index and hands what it finds to the slots, a bounded number at once. Several nodes may serve a kind: so that
// they rarely meet, each leaves to the others what hashing gives to them, and takes it all the same if it is still
// there a moment later. That is a hint and no more: correctness comes from the commits.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actor/batch.h"
#include "runtime/mutex.h"

namespace perdure {
class ActorsImpl;
}

namespace perdure::actor {

class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  Dispatcher(ActorsImpl& home, std::shared_ptr<ServedKind> kind) : home_(home), kind_(std::move(kind)) {}

  const std::shared_ptr<ServedKind>& kind() const { return kind_; }
  /// Makes it known that this node serves the kind, under the session it has now; walks the index then.
  void announce() PERDURE_EXCLUDES(mutex_);
  /// From now on it finds nothing.
  void stop() PERDURE_EXCLUDES(mutex_);

 private:
  struct Found {
    ActorId actor;
    Version marked;
  };
  struct Page {
    std::vector<Found> found;
    std::vector<SessionId> servers;
    bool last = false;
    Watch bell;
    Watch servers_bell;
  };
  void ring() PERDURE_EXCLUDES(mutex_);
  void scan() PERDURE_EXCLUDES(mutex_);
  Page read_page(Transaction& txn, const Bytes& after) const;
  void scanned(Result<Page> page, bool from_start) PERDURE_EXCLUDES(mutex_);
  /// Something that was found has been looked after.
  void drained() PERDURE_EXCLUDES(mutex_);
  bool is_ours(const ActorId& actor) const PERDURE_REQUIRES(mutex_);
  void look_again_later(Version newest) PERDURE_EXCLUDES(mutex_);

  ActorsImpl& home_;
  const std::shared_ptr<ServedKind> kind_;

  Mutex mutex_;
  bool stopped_ PERDURE_GUARDED_BY(mutex_) = false;
  bool scanning_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Rung while it was walking, so that it has to begin anew.
  bool again_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Enough is under way: goes on from the cursor when some of it is done.
  bool waiting_ PERDURE_GUARDED_BY(mutex_) = false;
  Bytes cursor_ PERDURE_GUARDED_BY(mutex_);
  std::size_t active_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::vector<SessionId> servers_ PERDURE_GUARDED_BY(mutex_);
  std::optional<SessionId> self_ PERDURE_GUARDED_BY(mutex_);
  /// What was left to others and marked up to here is taken now.
  Version overdue_ PERDURE_GUARDED_BY(mutex_);
  Version skipped_ PERDURE_GUARDED_BY(mutex_);
  bool timer_ PERDURE_GUARDED_BY(mutex_) = false;
  std::vector<Watch> watches_ PERDURE_GUARDED_BY(mutex_);
};

/// The sweepers of what the sessions of dead nodes leave behind.
void sweep_server(Transaction& txn, SessionId dead, BytesView rest);
void sweep_lock(Transaction& txn, SessionId dead, BytesView rest, WallTime now);

}  // namespace perdure::actor
