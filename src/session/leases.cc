#include "session/leases.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "session/session_impl.h"
#include "store/system_access.h"

namespace perdure {
namespace {

using session::LeaseRow;

constexpr Duration kBackOffMin = std::chrono::milliseconds(5);
constexpr unsigned kBackOffDoublings = 7;

std::string quoted(std::string_view name) {
  return "'" + std::string(name) + "'";
}

}  // namespace

/// What a transaction that wants a lease found.
struct Leases::Attempt {
  bool taken = false;
  SessionImpl::Sight holder = {};
  std::vector<Watch> watches = {};
  /// Only for SeededBug::kReuseToken.
  std::optional<Stamp> reused = {};
};

// Acquiring.

void Leases::acquire(std::string_view name, Duration timeout, AcquireDone done) {
  if (auto valid = session::check_name(name, "the name of the lease"); !valid) {
    std::vector<Answer> refusal;
    refusal.push_back({std::move(done), std::unexpected(std::move(valid.error()))});
    return answer(std::move(refusal));
  }
  SteadyTime now = session_.scheduler().now();
  SteadyTime deadline = timeout > SteadyTime::max() - now ? SteadyTime::max() : now + timeout;
  std::string key(name);
  std::vector<Answer> late;
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (refusing_) {
      late.push_back({std::move(done), std::unexpected(*refusing_)});
    } else {
      Entry& entry = entries_[key];
      std::uint64_t number = ++last_request_;
      Executor::TimerId timer = 0;
      if (timeout > Duration::zero() && deadline < SteadyTime::max())
        timer = session_.at(deadline, [this, key, number] { expire(key, number); });
      first = entry.phase == Phase::kIdle;
      if (timeout <= Duration::zero() && !first && entry.phase != Phase::kTrying) {
        late.push_back({std::move(done), std::unexpected(why_not_yet(entry))});
      } else {
        entry.queue.push_back({number, deadline, timer, std::move(done)});
        if (timeout <= Duration::zero()) ++entry.impatient;
      }
      if (first) enter(entry, Phase::kTrying);
    }
  }
  answer(std::move(late));
  if (first) attempt(key);
}

void Leases::attempt(const std::string& name) {
  session_.transact(
      [id = session_.id(), name](Transaction& txn) {
        SystemAccess access(txn);
        Attempt found;
        if (!session::is_open(txn, id))
          access.refuse({ErrorCode::kStaleToken, "the session has been ended by another"});
        auto row = session::read_lease(txn, name);
        // A row of our own is what an attempt with an unknown outcome left: taken anew, with a new token.
        if (row && row->session != id) {
          if (auto open = session::read_open(txn, row->session)) {
            SessionId holder = row->session;
            std::int64_t beat = decode_counter(txn.get(session::beat_key(holder)));
            found.holder = {holder, static_cast<std::uint64_t>(beat), std::move(*open)};
            for (const Bytes& key : {session::lease_key(name), session::open_key(holder)})
              found.watches.push_back(txn.watch(key));
            return found;
          }
        }
        found.taken = true;
        txn.set_stamped(session::lease_key(name), LeaseRow::taken_by(id));
        txn.set_stamped(session::held_key(id, session::kLeaseKind, name), Stamped{});
        if (row && seeded(SeededBug::kReuseToken)) {
          found.reused = row->token;
          txn.set(session::lease_key(name), LeaseRow{id, row->token}.encode());
        }
        return found;
      },
      [this, name](Result<Attempt> found, Receipt receipt) { attempted(name, std::move(found), receipt); });
}

void Leases::attempted(const std::string& name, Result<Attempt> found, Receipt receipt) {
  if (!found && found.error().code == ErrorCode::kStaleToken) return session_.lose(std::move(found.error()));
  if (!found) return could_not_try(name, std::move(found.error()));
  if (found->taken) return taken(name, Token{found->reused.value_or(receipt.stamp()), session_.store_number()});
  if (session_.saw(found->holder) > Duration::zero()) return held_by_other(name, std::move(*found));
  for (Watch& watch : found->watches) watch.cancel();
  session_.end(found->holder, [this, name](Result<void> ended) {
    // Not at once again what has just failed: on a full disk reading goes on, so that this would turn in circles.
    if (!ended) return could_not_try(name, std::move(ended.error()));
    attempt(name);
  });
}

void Leases::taken(const std::string& name, Token token) {
  std::vector<Answer> answers;
  bool unwanted = false;
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(name);
    if (closed_ || found == entries_.end()) return;
    Entry& entry = found->second;
    entry.failures = 0;
    unwanted = entry.queue.empty();
    if (unwanted) {
      enter(entry, Phase::kReleasing);
    } else {
      Request first = std::move(entry.queue.front());
      entry.queue.pop_front();
      session_.cancel(first.timer);
      enter(entry, Phase::kHeld);
      entry.held = std::make_shared<LeaseState>(session_, name, token);
      answers = expired(entry);
      answers.push_back({std::move(first.done), Lease(entry.held)});
    }
  }
  answer(std::move(answers));
  if (unwanted) send_release(name, token);
}

void Leases::held_by_other(const std::string& name, Attempt found) {
  std::vector<Answer> late;
  std::vector<Watch> watches = found.watches;
  std::uint64_t round = 0;
  {
    MutexLock lock(mutex_);
    auto entry = entries_.find(name);
    if (closed_ || entry == entries_.end()) return;
    entry->second.failures = 0;
    round = enter(entry->second, Phase::kWaiting);
    entry->second.watches = std::move(found.watches);
    entry->second.holder = found.holder.id;
    entry->second.problem = {ErrorCode::kDeadline, "the lease " + quoted(name) + " is held by session " +
                                                       found.holder.id.to_string() + " (" + found.holder.open.name +
                                                       ")"};
    late = expired(entry->second);
    if (entry->second.queue.empty()) next_attempt(name, entry->second);
  }
  answer(std::move(late));
  for (Watch& watch : watches) watch.then(session_.guarded([this, name, round] { wake(name, round); }));
  session_.follow(found.holder.id);
}

void Leases::could_not_try(const std::string& name, Error why) {
  std::vector<Answer> late;
  std::uint64_t round = 0;
  Duration pause;
  {
    MutexLock lock(mutex_);
    auto entry = entries_.find(name);
    if (closed_ || entry == entries_.end()) return;
    round = enter(entry->second, Phase::kWaiting);
    entry->second.problem = std::move(why);
    pause = back_off(entry->second);
    late = expired(entry->second);
    if (entry->second.queue.empty() && !may_be_ours(entry->second)) next_attempt(name, entry->second);
  }
  answer(std::move(late));
  session_.after(pause, [this, name, round] { wake(name, round); });
}

void Leases::wake(const std::string& name, std::uint64_t round) {
  {
    MutexLock lock(mutex_);
    auto entry = entries_.find(name);
    if (closed_ || entry == entries_.end()) return;
    if (entry->second.phase != Phase::kWaiting || entry->second.round != round) return;
    enter(entry->second, Phase::kTrying);
  }
  attempt(name);
}

void Leases::expire(const std::string& name, std::uint64_t number) {
  std::vector<Answer> late;
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(name);
    if (closed_ || found == entries_.end()) return;
    Entry& entry = found->second;
    auto request = std::ranges::find(entry.queue, number, &Request::number);
    if (request == entry.queue.end()) return;
    late.emplace_back(std::move(request->done), std::unexpected(why_not_yet(entry)));
    entry.queue.erase(request);
    if (entry.phase == Phase::kWaiting && entry.queue.empty() && !may_be_ours(entry)) next_attempt(name, entry);
  }
  answer(std::move(late));
}

// Releasing.

void Leases::release(LeaseState& lease, ReleaseDone done) {
  Result<void> result;
  bool send = false;
  {
    MutexLock lock(mutex_);
    auto entry = entries_.find(lease.name);
    bool ours = entry != entries_.end() && entry->second.held.get() == &lease;
    if (closed_ && !(ours && seeded(SeededBug::kReleaseAfterLoss))) {
      result = std::unexpected(*closed_);
    } else if (ours) {
      entry->second.release_waiters.push_back(std::move(done));
      send = entry->second.phase == Phase::kHeld;
      if (send) enter(entry->second, Phase::kReleasing);
      lease.let_go();
    }
  }
  if (send) send_release(lease.name, lease.token);
  if (done) session_.post([done = std::move(done), result]() mutable { done(std::move(result)); });
}

void Leases::send_release(const std::string& name, Token token) {
  if (!session_.believes() && !seeded(SeededBug::kReleaseAfterLoss))
    return released(name, token, std::unexpected(session_.why_not()));
  session_.transact(
      [id = session_.id(), name, token](Transaction& txn) -> Result<void> {
        SystemAccess access(txn);
        auto row = session::read_lease(txn, name);
        bool ours = session::is_open(txn, id) && row == LeaseRow{id, token.stamp};
        if (!ours && !seeded(SeededBug::kReleaseAfterLoss))
          return fail(ErrorCode::kStaleToken, "the lease " + quoted(name) + " is not held any more");
        txn.clear(session::lease_key(name));
        txn.clear(session::held_key(id, session::kLeaseKind, name));
        return {};
      },
      [this, name, token](Result<void> result, Receipt) { released(name, token, std::move(result)); });
}

void Leases::released(const std::string& name, Token token, Result<void> result) {
  std::vector<ReleaseDone> waiters;
  std::shared_ptr<LeaseState> gone;
  bool again = false, next = false;
  std::uint64_t round = 0;
  Duration pause;
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(name);
    if (found == entries_.end() || found->second.phase != Phase::kReleasing) return;
    Entry& entry = found->second;
    bool stale = !result && result.error().code == ErrorCode::kStaleToken;
    if (stale && entry.release_unknown) result = {};
    waiters.swap(entry.release_waiters);
    if (!result && !stale && !closed_) {
      again = true;
      entry.release_unknown |= result.error().outcome() == Outcome::kUnknown;
      pause = back_off(entry);
      round = entry.round;
    } else {
      entry.release_unknown = false;
      entry.failures = 0;
      gone = std::exchange(entry.held, nullptr);
      next = next_attempt(name, entry);
    }
  }
  if (gone) gone->cancel.drop();
  for (ReleaseDone& waiter : waiters)
    if (waiter) waiter(result);
  if (next) attempt(name);
  if (!again) return session_.lease_released();
  session_.after(pause, [this, name, token, round] {
    {
      MutexLock lock(mutex_);
      auto entry = entries_.find(name);
      if (closed_ || entry == entries_.end() || entry->second.round != round) return;
    }
    send_release(name, token);
  });
}

// The end.

void Leases::cancel_all() {
  std::vector<std::shared_ptr<LeaseState>> all;
  {
    MutexLock lock(mutex_);
    for (auto& [name, entry] : entries_)
      if (entry.held) all.push_back(entry.held);
  }
  if (seeded(SeededBug::kCancelNobody)) return;
  for (auto& lease : all) lease->cancel.cancel();
}

std::set<SessionId> Leases::awaited() {
  MutexLock lock(mutex_);
  std::set<SessionId> holders;
  for (const auto& [name, entry] : entries_)
    if (entry.holder) holders.insert(*entry.holder);
  return holders;
}

bool Leases::none_held() {
  MutexLock lock(mutex_);
  return std::ranges::none_of(entries_, [](const auto& entry) {
    return entry.second.phase == Phase::kHeld || entry.second.phase == Phase::kReleasing;
  });
}

void Leases::refuse_new(const Error& why) {
  std::vector<Answer> answers;
  {
    MutexLock lock(mutex_);
    if (refusing_) return;
    refusing_ = why;
    for (auto& [name, entry] : entries_) {
      for (Request& request : entry.queue) {
        session_.cancel(request.timer);
        answers.push_back({std::move(request.done), std::unexpected(why)});
      }
      entry.queue.clear();
    }
  }
  answer(std::move(answers));
}

std::size_t Leases::close(const Error& why) {
  refuse_new(why);
  cancel_all();
  std::size_t lost = 0;
  std::vector<ReleaseDone> releasing;
  {
    MutexLock lock(mutex_);
    if (closed_) return 0;
    closed_ = why;
    for (auto& [name, entry] : entries_) {
      for (Watch& watch : entry.watches) watch.cancel();
      for (ReleaseDone& waiter : entry.release_waiters) releasing.push_back(std::move(waiter));
      if (!entry.held) continue;
      entry.held->let_go();
      ++lost;
    }
    if (!seeded(SeededBug::kReleaseAfterLoss)) entries_.clear();
  }
  for (ReleaseDone& waiter : releasing)
    if (waiter) waiter(std::unexpected(why));
  return lost;
}

void Leases::forget(const Error& why) {
  Entries forgotten;  // Dies outside of the lock: callbacks may own anything.
  {
    MutexLock lock(mutex_);
    refusing_ = closed_ = why;
    forgotten.swap(entries_);
  }
  for (auto& [name, entry] : forgotten) {
    if (!entry.held) continue;
    entry.held->let_go();
    entry.held->cancel.drop();
  }
}

// Bookkeeping.

std::uint64_t Leases::enter(Entry& entry, Phase phase) {
  for (Watch& watch : entry.watches) watch.cancel();
  entry.watches.clear();
  entry.holder.reset();
  entry.phase = phase;
  if (phase == Phase::kHeld || phase == Phase::kReleasing) entry.problem = {ErrorCode::kDeadline, ""};
  return ++entry.round;
}

std::vector<Leases::Answer> Leases::expired(Entry& entry) {
  std::vector<Answer> late;
  if (std::exchange(entry.impatient, 0) == 0) return late;
  SteadyTime now = session_.scheduler().now();
  std::erase_if(entry.queue, [&](Request& request) {
    if (request.deadline > now) return false;
    session_.cancel(request.timer);
    late.push_back({std::move(request.done), std::unexpected(why_not_yet(entry))});
    return true;
  });
  return late;
}

Error Leases::why_not_yet(const Entry& entry) {
  if (entry.held)
    return {ErrorCode::kDeadline,
            "the lease " + quoted(entry.held->name) + " is held by this very session; release it first"};
  if (entry.problem.message.empty()) return {ErrorCode::kDeadline, "the store did not answer in time"};
  return entry.problem;
}

/// An attempt whose outcome is unknown may have left the lease with us, so it is not left at that.
bool Leases::may_be_ours(const Entry& entry) {
  return entry.problem.outcome() == Outcome::kUnknown;
}

bool Leases::next_attempt(const std::string& name, Entry& entry) {
  if (closed_) return false;
  if (!entry.queue.empty()) {
    enter(entry, Phase::kTrying);
    return true;
  }
  enter(entry, Phase::kIdle);
  entries_.erase(name);
  return false;
}

void Leases::answer(std::vector<Answer> answers) {
  for (Answer& each : answers)
    session_.post([answer = std::move(each)]() mutable { answer.done(std::move(answer.result)); });
}

Duration Leases::back_off(Entry& entry) {
  Duration pause = kBackOffMin * (1 << std::min(entry.failures++, kBackOffDoublings));
  return pause + pause * static_cast<Duration::rep>(session_.scheduler().random() % 100) / 100;
}

}  // namespace perdure
