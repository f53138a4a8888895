// How a session looks at the others: who is there, who is dead, and what the dead have left behind.
#include <algorithm>

#include "base/seeded_bug.h"
#include "session/session_impl.h"
#include "store/report.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure {

void SessionImpl::follow(SessionId holder) {
  if (seeded(SeededBug::kForgetToFollow)) return;
  {
    MutexLock lock(mutex_);
    if (!followed_.insert(holder).second) return;
  }
  look();
}

void SessionImpl::keep_following(SessionId holder) {
  auto use = enter();
  if (!use) return;
  {
    MutexLock lock(mutex_);
    kept_.insert(holder);
  }
  follow(holder);
}

void SessionImpl::stop_following(SessionId holder) {
  MutexLock lock(mutex_);
  if (auto found = kept_.find(holder); found != kept_.end()) kept_.erase(found);
}

void SessionImpl::look() {
  std::set<SessionId> followed;
  std::optional<SessionId> ended_after;
  {
    MutexLock lock(mutex_);
    if (is_over()) return;
    look_again_ = looking_;
    if (std::exchange(looking_, true)) return;
    followed = followed_;
    ended_after = ended_after_;
  }
  transact(
      [this, ended_after, followed = std::move(followed)](Transaction& txn) {
        SystemAccess access(txn);
        View view;
        view.ended_after = ended_after;
        view.open = session::is_open(txn, id_);
        Watch watch = txn.watch(session::open_key(id_));
        Reader snapshot = txn.snapshot();
        for (const Row& row : snapshot.get_range(session::table_range("open"))) {
          auto id = session::id_of("open", row.key);
          auto open = session::OpenRow::decode(row.value);
          if (id && open && *id != id_) view.others.push_back({*id, 0, std::move(*open)});
        }
        for (Sight& other : view.others) {
          Bytes key = session::beat_key(other.id);
          other.beat = static_cast<std::uint64_t>(decode_counter(snapshot.get(key)));
          if (followed.contains(other.id)) view.watches.push_back(txn.watch(key));
        }
        KeyRange ended = session::table_range("ended");
        if (ended_after) ended.begin = next_key(session::ended_key(*ended_after));
        for (const Row& row : snapshot.get_range(ended, {.limit = kEndedRead}))
          if (auto id = session::id_of("ended", row.key)) view.ended.push_back(*id);
        {
          MutexLock lock(mutex_);
          std::swap(watch_, watch);
        }
        watch.cancel();
        return view;
      },
      [this](Result<View> view, Receipt) { looked(std::move(view)); }, Body::kOptimistic);
}

void SessionImpl::looked(Result<View> view) {
  bool again;
  std::vector<Watch> watches;
  std::vector<SessionId> to_sweep;
  std::set<SessionId> awaited = leases_.awaited();
  {
    MutexLock lock(mutex_);
    looking_ = false;
    again = look_again_;
    awaited.insert(kept_.begin(), kept_.end());
    std::erase_if(followed_, [&](SessionId id) { return !awaited.contains(id); });
    if (view) {
      for (Watch& old : beat_watches_) old.cancel();
      beat_watches_ = view->watches;
      watches = std::move(view->watches);
      watches.push_back(watch_);
      std::vector<SessionId> known;
      for (const Sight& other : view->others) known.push_back(other.id);
      observer_.keep_only(known);
      to_sweep = choose_to_sweep(*view);
    }
  }
  // Without a view the next renewal looks again.
  if (!view) return;
  if (!view->open && !seeded(SeededBug::kBelieveAfterRefusal)) return lose(ended_by_another());
  // Where nobody is told that a process has died, its TTL counts from when it was last seen to be alive, which must not
  // be much later than that was so.
  const Capabilities& engine = StoreAccess::impl(store_).engine().capabilities();
  bool is_told = !engine.remote && !engine.far_reads;
  Duration next = is_told ? options_.renew : options_.renew / 2;
  for (const Sight& other : view->others) {
    Duration left = saw(other);
    if (left == Duration::zero())
      end(other, [](const Result<void>&) {});
    else
      next = std::min(next, left);
  }
  // A renewal looks as well.
  if (next < options_.renew) look_within(next);
  for (SessionId dead : to_sweep) sweep(dead);
  for (Watch& watch : watches) watch.then(guarded([this] { look(); }));
  if (again) look();
}

void SessionImpl::look_within(Duration delay) {
  SteadyTime when = scheduler_.now() + delay;
  {
    MutexLock lock(mutex_);
    if (next_look_ <= when) return;
    next_look_ = when;
  }
  at(when, [this, when] {
    {
      MutexLock lock(mutex_);
      if (next_look_ != when) return;
      next_look_ = SteadyTime::max();
    }
    look();
  });
}

SteadyTime SessionImpl::observer_now() {
  if (seeded(SeededBug::kTrustWallClock)) return SteadyTime(scheduler_.wall_now().time_since_epoch());
  return scheduler_.now();
}

Duration SessionImpl::saw(const Sight& sight) {
  if (StoreAccess::impl(store_).engine().is_gone(sight.open.presence)) return Duration::zero();
  MutexLock lock(mutex_);
  observer_.contact(observer_now());
  observer_.saw(sight.id, sight.beat, sight.open.ttl);
  return observer_.left(sight.id);
}

void SessionImpl::end(const Sight& dead, std::move_only_function<void(Result<void>)> then) {
  if (!believes()) return;
  bool gone = StoreAccess::impl(store_).engine().is_gone(dead.open.presence);
  transact(
      [dead, gone](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, dead.id)) return false;
        // Who is gone may have renewed itself once more before; who is not must not have.
        bool unchanged = decode_counter(txn.get(session::beat_key(dead.id))) == static_cast<std::int64_t>(dead.beat);
        if (!gone && !unchanged && !seeded(SeededBug::kEndWithoutCompare)) return false;
        session::end_rows(txn, dead.id);
        return true;
      },
      [this, dead, then = std::move(then)](Result<bool> ended, Receipt) mutable {
        if (ended && *ended)
          log(StoreAccess::impl(store_).options(), LogLevel::kInfo, "session", "ended the session of a dead process",
              {{"session", dead.id.to_string()}, {"name", dead.open.name}});
        if (ended) sweep(dead.id);
        Result<void> result;
        if (!ended) result = std::unexpected(std::move(ended.error()));
        then(std::move(result));
      });
}

}  // namespace perdure
