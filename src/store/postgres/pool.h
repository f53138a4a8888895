// Connections of one lane: made when they are needed, kept, and given to one user at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/mutex.h"
#include "store/postgres/connection.h"
#include "store/postgres/reach.h"

namespace perdure::postgres {

class Pool {
 public:
  /// If the server has no room for a connection of this lane, `yields` gives way: a lane that must not be without one
  /// goes before one that has several.
  Pool(const Target& target, Lane lane, Reach& reach, Pool* yields = nullptr)
      : target_(target), lane_(std::move(lane)), reach_(reach), yields_(yields) {}

  /// Runs `use` with a connection that is ready; blocks until one is free, for as long as the lane has patience. A
  /// server that has no room for as many as the lane may have is left with those that there are. If the connection
  /// breaks, it is dropped, and a server that was silent counts as away. Errors: those of `use`, and kUnavailable
  /// without a connection.
  template <class T>
  Result<T> with(const std::function<Result<T>(Connection&)>& use) {
    auto connection = take();
    if (!connection) return std::unexpected(std::move(connection.error()));
    auto result = use(**connection);
    give_back(std::move(*connection));
    return result;
  }

  /// Ends a connection for the sake of another lane, one that is idle or the next that is given back, and makes no new
  /// one for a moment. False if there is none but the last, which is kept.
  bool give_way();

 private:
  struct Idle {
    std::unique_ptr<Connection> connection;
    std::uint64_t losses;  ///< Of the reach, when it was last of use.
  };

  Result<std::unique_ptr<Connection>> take();
  /// One that is idle and of use; null if a new one has to be made, which is counted already.
  Result<std::unique_ptr<Connection>> wait_for_one(SteadyTime until);
  /// How many connections there may be now.
  std::size_t room() const PERDURE_REQUIRES(mutex_);
  /// How many there are, without those that are being made and may never be.
  std::size_t connected() const PERDURE_REQUIRES(mutex_);
  void no_room_for_more(const Error& why);
  void give_back(std::unique_ptr<Connection> connection);
  void leave();

  const Target target_;
  const Lane lane_;
  Reach& reach_;
  Pool* const yields_;

  Mutex mutex_;
  CondVar freed_;
  std::size_t used_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// Of those that are used.
  std::size_t connecting_ PERDURE_GUARDED_BY(mutex_) = 0;
  /// The last one used is the next: the others may be ended by the server if they are never needed.
  std::vector<Idle> idle_ PERDURE_GUARDED_BY(mutex_);
  /// Until then no more are made than there were when the server had no room for another, and why.
  SteadyTime crowded_until_ PERDURE_GUARDED_BY(mutex_) = {};
  std::size_t crowded_room_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::optional<Error> why_crowded_ PERDURE_GUARDED_BY(mutex_);
  /// Whether another lane is giving way to this one, so that it is worth waiting.
  bool room_comes_ PERDURE_GUARDED_BY(mutex_) = false;
  /// Whether the next connection that is given back is to be ended.
  bool owes_one_ PERDURE_GUARDED_BY(mutex_) = false;
};

/// A connection that knows its statements, or why there is none; tells `reach` about it. `crowded` is that of
/// Connection::open.
Result<std::unique_ptr<Connection>> connect_ready(const Target& target, const Lane& lane, Reach& reach,
                                                  bool* crowded = nullptr);

}  // namespace perdure::postgres
