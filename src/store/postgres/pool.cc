#include "store/postgres/pool.h"

#include "runtime/latch.h"
#include "store/postgres/schema.h"

namespace perdure::postgres {

Result<std::unique_ptr<Connection>> connect_ready(const Target& target, const Lane& lane, Reach& reach) {
  if (auto may = reach.may_try(); !may) return std::unexpected(std::move(may.error()));
  auto connection = Connection::open(target, lane);
  if (connection) {
    if (auto ready = prepare(**connection); !ready) connection = std::unexpected(std::move(ready.error()));
  }
  if (connection) {
    reach.reached();
  } else {
    reach.failed(connection.error());
  }
  return connection;
}

Result<std::unique_ptr<Connection>> Pool::take() {
  if (auto good = reach_.check(); !good) return std::unexpected(std::move(good.error()));
  std::vector<Idle> dead;  // Ended outside of the lock.
  {
    MutexLock lock(mutex_);
    SteadyTime until = steady_now() + lane_.patience;
    while (used_ >= lane_.size) {
      if (auto good = reach_.check(); !good) return std::unexpected(std::move(good.error()));
      if (steady_now() >= until)
        return fail(ErrorCode::kUnavailable, target_.name + ": all " + std::to_string(lane_.size) +
                                                 " connections for '" + lane_.name + "' are busy; try again");
      freed_.wait_until(lock, until);
    }
    ++used_;
    while (!idle_.empty()) {
      Idle found = std::move(idle_.back());
      idle_.pop_back();
      if (found.losses == reach_.losses() && found.connection->still_there()) return std::move(found.connection);
      dead.push_back(std::move(found));
    }
  }
  auto made = connect_ready(target_, lane_, reach_);
  if (!made) leave();
  return made;
}

void Pool::leave() {
  MutexLock lock(mutex_);
  --used_;
  freed_.notify_one();
}

void Pool::give_back(std::unique_ptr<Connection> connection) {
  if (connection->broken()) {
    // What the call that found it out says may be of its own: nobody else's commit is unknown.
    if (connection->timed_out()) reach_.failed({ErrorCode::kUnavailable, target_.name + " does not answer"});
    connection.reset();
    return leave();
  }
  MutexLock lock(mutex_);
  idle_.push_back({std::move(connection), reach_.losses()});
  --used_;
  freed_.notify_one();
}

}  // namespace perdure::postgres
