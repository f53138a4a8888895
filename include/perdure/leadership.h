// Leadership: a key that one instance at a time owns.
//
//     watch { ( gone -> acquire -> { update } -> release ) | changed | unsure | lost } unwatch
//
// What elects may be the store itself, by the leases of a session (perdure::store_leadership), or a bucket of NATS
// (perdure/nats.h). Both only elect: an owner may be wrong about being one for a moment, so what it does in the end
// is fenced in the store, see perdure/tick.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/error.h"
#include "perdure/export.h"
#include "perdure/session.h"
#include "perdure/store.h"
#include "perdure/time.h"

namespace perdure {

/// What the owner of a key says that it is doing.
enum class LeaderStatus { kWaiting, kRunning };

/// "waiting" or "running".
PERDURE_EXPORT std::string_view name_of(LeaderStatus status);
PERDURE_EXPORT std::optional<LeaderStatus> parse_leader_status(std::string_view name);

/// A key that is owned.
struct LeadershipView {
  /// The instance id of the owner.
  std::string owner;
  /// Of the last write to the key; larger with each.
  std::uint64_t revision = 0;
  LeaderStatus status = LeaderStatus::kWaiting;
  /// Since that write, by wall clocks: for people, not for decisions.
  Duration age = {};
};

/// What a watcher is told.
struct LeadershipEvent {
  enum class What {
    kGone,     ///< Nobody owns the key now.
    kChanged,  ///< It was written: by `owner`, as `revision`.
    kUnsure,   ///< Something may have been missed: look.
    kLost,     ///< What this instance owned is not its own any more.
  };
  What what = What::kUnsure;
  /// Of the write; 0 if it is not known.
  std::uint64_t revision = 0;
  std::string owner = {};
};

/// Who sees to it that an owned key does not age out.
enum class Renewal {
  kByOwner,  ///< Each key by an update of its owner. An age-out is told late or never, so waiters look as well.
  kByItself  ///< Whatever holds it, all keys at once: an update to the same status costs nothing. Nobody need look.
};

/// One instance's share in the election. Thread-safe; nothing blocks, and each answer comes once, on one of the store's
/// threads, perhaps in the very call. It borrows its store: drop it before the last handle of that goes. Answers that
/// come after it is gone are dropped.
class PERDURE_EXPORT Leadership {
 public:
  template <class T>
  using Done = std::move_only_function<void(Result<T>)>;
  using Watcher = std::function<void(const LeadershipEvent&)>;

  virtual ~Leadership();

  /// Who this is, among all that may own a key.
  virtual const std::string& instance_id() const = 0;
  /// A key that was not updated for so long is gone.
  virtual Duration max_age() const = 0;
  virtual Renewal renewal() const = 0;
  /// Errors: kInvalidArgument for a key that cannot be.
  [[nodiscard]] virtual Result<void> check_key(std::string_view key) const = 0;

  /// Creates the key if it is absent, with the status waiting; answers its revision.
  /// Errors: kConflict if another owns it; kUnavailable and the like if that could not be found out.
  /// Crash: owned by nobody who updates it, and so gone before long.
  virtual void acquire(const std::string& key, Done<std::uint64_t> done) = 0;
  /// Writes the status if `revision` is still the last: keeps the key alive; answers the next revision.
  /// Errors: kStaleToken if it is not; others if that could not be found out, and then the key may be written yet.
  virtual void update(const std::string& key, std::uint64_t revision, LeaderStatus status,
                      Done<std::uint64_t> done) = 0;
  /// Deletes the key if `revision` is still the last, and wakes who watches it.
  /// Errors: as update.
  virtual void release(const std::string& key, std::uint64_t revision, Done<void> done) = 0;
  /// Tells of the key from now on, kGone also if it is gone already and that is known; one watcher a key, a later one
  /// replaces it. Ordinary updates are told as kChanged.
  virtual void watch(const std::string& key, Watcher watcher) = 0;
  virtual void unwatch(const std::string& key) = 0;
  /// Who owns it; nothing if nobody does.
  virtual void look(const std::string& key, Done<std::optional<LeadershipView>> done) = 0;

  /// This instance does not act as the owner any more, and may not know whether it still is: its last update failed,
  /// say. A key that can age out is left to that, without a write; nothing by default.
  virtual void abandon(const std::string& key);

  /// Lets `txn` commit only if this instance owns the key, as far as the store itself can know that. What elects
  /// outside of the store cannot, and does nothing here.
  virtual void fence(Transaction& txn, const std::string& key);
};

struct StoreLeadershipOptions {
  /// Its TTL is the max_age.
  SessionOptions session = {};
  /// Random by default.
  std::string instance_id = {};
  /// Leaderships of different names have nothing to do with each other.
  std::string name = "default";
};

/// Leadership by leases of a session in the store: an owner whose process dies is replaced at once where the engine can
/// tell, and within the TTL of the session where it cannot. A session that is lost is opened anew by itself.
/// Blocks until the session is there.
/// Errors: kInvalidArgument (the options), and those of Session::open.
PERDURE_EXPORT Result<std::shared_ptr<Leadership>> store_leadership(Store& store, StoreLeadershipOptions options = {});
/// The same without blocking. Keep a handle of the store until it is answered.
PERDURE_EXPORT void store_leadership_async(Store& store, StoreLeadershipOptions options,
                                           std::move_only_function<void(Result<std::shared_ptr<Leadership>>)> done);

}  // namespace perdure
