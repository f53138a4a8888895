// Leadership by leases of the store.
//
// The key is a lease of a session; beside it is a row with what its owner says of itself:
//
//     ("lease", "leadership/NAME/KEY")  -> session, token                                     as of every lease
//     ("leader", NAME, KEY)             -> stamp of the last write, token, status, owner, time
//
// The row counts only while the lease is held with the token that it names, so that a crash needs no cleaning up. The
// stamp is the revision. Keys are kept alive by the session, all at once: an update to the same status writes nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perdure/leadership.h"
#include "session/session_keeper.h"
#include "store/store_part.h"

namespace perdure {

class StoreLeadership final : public Leadership, public StorePart<StoreLeadership> {
 public:
  /// `store` outlives it.
  StoreLeadership(Store& store, StoreLeadershipOptions options, std::shared_ptr<SessionKeeper> keeper);
  /// The last handle goes.
  void close();

  const std::string& instance_id() const override { return options_.instance_id; }
  Duration max_age() const override { return options_.session.ttl; }
  Renewal renewal() const override { return Renewal::kByItself; }
  Result<void> check_key(std::string_view key) const override;
  void acquire(const std::string& key, Done<std::uint64_t> done) override PERDURE_EXCLUDES(mutex_);
  void update(const std::string& key, std::uint64_t revision, LeaderStatus status, Done<std::uint64_t> done) override
      PERDURE_EXCLUDES(mutex_);
  void release(const std::string& key, std::uint64_t revision, Done<void> done) override PERDURE_EXCLUDES(mutex_);
  void watch(const std::string& key, Watcher watcher) override PERDURE_EXCLUDES(mutex_);
  void unwatch(const std::string& key) override PERDURE_EXCLUDES(mutex_);
  void look(const std::string& key, Done<std::optional<LeadershipView>> done) override;
  /// The session would keep it alive, so it is given back.
  void abandon(const std::string& key) override PERDURE_EXCLUDES(mutex_);
  void fence(Transaction& txn, const std::string& key) override PERDURE_EXCLUDES(mutex_);

 private:
  struct Held {
    Lease lease;
    std::uint64_t revision;
    LeaderStatus status;
  };
  struct Watched {
    Watcher watcher;
    /// A later watcher of the same key has another.
    std::uint64_t number = 0;
    std::vector<Watch> watches = {};
    /// Whose renewals are followed, and by which session of ours.
    std::shared_ptr<SessionImpl> follows = {};
    std::optional<SessionId> holder = {};
  };
  struct Seen;

  std::string lease_name(const std::string& key) const { return "leadership/" + options_.name + "/" + key; }
  Bytes row_key(const std::string& key) const;
  Stamped row(const Lease& lease, LeaderStatus status);
  std::optional<Held> held(const std::string& key) PERDURE_EXCLUDES(mutex_);
  void taken(const std::string& key, Lease lease, Done<std::uint64_t> done);
  /// The lease is lost, or was given back.
  bool let_go(const std::string& key, const Token& token) PERDURE_EXCLUDES(mutex_);
  void tell(const std::string& key, const LeadershipEvent& event) PERDURE_EXCLUDES(mutex_);
  void see(const std::string& key, std::uint64_t number);
  void seen(const std::string& key, std::uint64_t number, Result<Seen> seen) PERDURE_EXCLUDES(mutex_);
  static void drop(Watched& watched);

  const StoreLeadershipOptions options_;
  const std::shared_ptr<SessionKeeper> keeper_;

  Mutex mutex_;
  std::map<std::string, Held> held_ PERDURE_GUARDED_BY(mutex_);
  std::map<std::string, Watched> watched_ PERDURE_GUARDED_BY(mutex_);
  std::uint64_t last_number_ PERDURE_GUARDED_BY(mutex_) = 0;
};

}  // namespace perdure
