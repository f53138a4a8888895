#include "store/postgres/pool.h"

#include <algorithm>
#include <utility>

#include "runtime/latch.h"
#include "store/postgres/schema.h"

namespace perdure::postgres {

namespace {

/// How long a server that has no room for another connection is left in peace; and if room is being made: it takes the
/// server a moment to notice that a session is over.
constexpr Duration kCrowdedPause = std::chrono::seconds(1), kYieldPause = std::chrono::milliseconds(20);

}  // namespace

Result<std::unique_ptr<Connection>> connect_ready(const Target& target, const Lane& lane, Reach& reach, bool* crowded) {
  if (auto may = reach.may_try(); !may) return std::unexpected(std::move(may.error()));
  bool has_no_room = false;
  auto connection = Connection::open(target, lane, &has_no_room);
  if (connection) {
    if (auto ready = prepare(**connection); !ready) connection = std::unexpected(std::move(ready.error()));
  }
  if (connection) {
    reach.reached();
  } else if (has_no_room) {
    reach.crowded(connection.error());
  } else {
    reach.failed(connection.error());
  }
  if (crowded) *crowded = has_no_room;
  return connection;
}

Result<std::unique_ptr<Connection>> Pool::take() {
  const SteadyTime until = steady_now() + lane_.patience;
  for (;;) {
    auto idle = wait_for_one(until);
    if (!idle || *idle) return idle;
    bool crowded = false;
    auto made = connect_ready(target_, lane_, reach_, &crowded);
    {
      MutexLock lock(mutex_);
      --connecting_;
    }
    if (made) return made;
    if (crowded) no_room_for_more(made.error());
    leave();
    if (!crowded) return made;
  }
}

Result<std::unique_ptr<Connection>> Pool::wait_for_one(SteadyTime until) {
  std::vector<Idle> dead;  // Ended outside of the lock.
  MutexLock lock(mutex_);
  for (;;) {
    if (auto good = reach_.check(); !good) return std::unexpected(std::move(good.error()));
    const std::size_t room = this->room();
    if (used_ < room) break;
    if (room == 0 && (!room_comes_ || steady_now() >= until)) return std::unexpected(*why_crowded_);
    if (steady_now() >= until)
      return fail(ErrorCode::kUnavailable, target_.name + ": all " + std::to_string(room) + " connections for '" +
                                               lane_.name + "' are busy; try again");
    freed_.wait_until(lock, room < lane_.size ? std::min(until, crowded_until_) : until);
  }
  ++used_;
  while (!idle_.empty()) {
    Idle found = std::move(idle_.back());
    idle_.pop_back();
    if (found.losses == reach_.losses() && found.connection->still_there()) return std::move(found.connection);
    dead.push_back(std::move(found));
  }
  ++connecting_;
  return nullptr;
}

std::size_t Pool::connected() const {
  return used_ - connecting_ + idle_.size();
}

std::size_t Pool::room() const {
  return steady_now() < crowded_until_ ? crowded_room_ : lane_.size;
}

void Pool::no_room_for_more(const Error& why) {
  const bool room_comes = yields_ && yields_->give_way();
  MutexLock lock(mutex_);
  // But for the one that could not be made.
  crowded_room_ = used_ - 1 + idle_.size();
  crowded_until_ = steady_now() + (room_comes ? kYieldPause : kCrowdedPause);
  why_crowded_ = why;
  room_comes_ = room_comes;
}

bool Pool::give_way() {
  Idle ended;  // Outside of the lock.
  MutexLock lock(mutex_);
  if (connected() <= 1) return false;
  crowded_room_ = connected() - 1;
  crowded_until_ = steady_now() + kCrowdedPause;
  owes_one_ = idle_.empty();
  if (owes_one_) return true;
  ended = std::move(idle_.front());
  idle_.erase(idle_.begin());
  return true;
}

void Pool::leave() {
  MutexLock lock(mutex_);
  --used_;
  // All of them, for if the server was found away they are all to hear of it now.
  freed_.notify_all();
}

void Pool::give_back(std::unique_ptr<Connection> connection) {
  if (connection->broken()) {
    // What the call that found it out says may be of its own: nobody else's commit is unknown.
    if (connection->timed_out()) reach_.failed({ErrorCode::kUnavailable, target_.name + " does not answer"});
    connection.reset();
    return leave();
  }
  std::unique_ptr<Connection> ended;  // Outside of the lock.
  MutexLock lock(mutex_);
  --used_;
  if (std::exchange(owes_one_, false) && connected() > 0)
    ended = std::move(connection);
  else
    idle_.push_back({std::move(connection), reach_.losses()});
  freed_.notify_one();
}

}  // namespace perdure::postgres
