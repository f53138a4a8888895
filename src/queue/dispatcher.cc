// The turns of a dispatcher. Its jobs are in dispatcher_jobs.cc.
#include "queue/dispatcher.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/queue_impl.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

/// Claims, and settlements, in one turn: enough to make the commit cheap for each, few enough to be quick.
constexpr std::size_t kAtOnce = 256;
/// Of results, in one turn: well below what a transaction holds.
constexpr std::size_t kBytesAtOnce = 2'000'000;
/// Under way at once: while one is synced, the next is gathered.
constexpr std::size_t kTurnsMax = 4;
/// Settlements that are worth a turn beside one that is under way; fewer wait for its end.
constexpr std::size_t kWorthATurn = 64;
constexpr Duration kBackOff = std::chrono::milliseconds(100);

constexpr TransactOptions kOptions = {.body = Body::kShort, .reserve = Reserve::kMayUse};

/// What the body of a turn went for when it ran last, and how often it was beaten to it.
struct LastRun {
  std::optional<Uuid> first;
  std::size_t losses = 0;
};

bool is_taken(Transaction& txn, std::string_view space, const Uuid& id) {
  SystemAccess access(txn);
  Reader snapshot = txn.snapshot();
  auto event = load(snapshot, space, id);
  return !event || event->row.state != Stored::kReady;
}

}  // namespace

void unserve(Transaction& txn, std::string_view space, std::string_view worker, SessionId session) {
  txn.clear(tuple::pack_onto(servers_key(worker_prefix(space, worker)), session.stamp));
  txn.clear(session::held_key(session, kHeldServer, space, worker));
}

void sweep_server(Transaction& txn, SessionId dead, BytesView rest) {
  auto parts = tuple::unpack_as<std::string, std::string>(rest);
  if (parts) unserve(txn, std::get<0>(*parts), std::get<1>(*parts), dead);
}

void Dispatcher::announce() {
  auto session = home_.session_id();
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    // Another may have been told of a newer one meanwhile.
    if (session && session_ && *session_ > *session) return;
    if (session) session_ = session;
  }
  // None is believed in at this moment; that may pass without anybody being told.
  if (!session) {
    home_.at(home_.scheduler().now() + kBackOff, [self = shared_from_this()] { self->announce(); });
    return;
  }
  home_.transact(
      [self = shared_from_this(), id = *session](Transaction& txn) {
        SystemAccess access(txn);
        if (!session::is_open(txn, id)) return;
        txn.set(tuple::pack_onto(servers_key(worker_prefix(self->space_, self->worker_)), id.stamp), {});
        txn.set(session::held_key(id, kHeldServer, self->space_, self->worker_), {});
      },
      [self = shared_from_this()](Result<void> done, Receipt) {
        if (!done && done.error().code != ErrorCode::kClosed)
          self->home_.at(self->home_.scheduler().now() + kBackOff, [self] { self->announce(); });
      },
      kOptions);
  ring();
}

void Dispatcher::ring() {
  {
    MutexLock lock(mutex_);
    hint_ = true;
    ++rings_;
  }
  pump();
}

void Dispatcher::stop() {
  std::vector<Watch> watches;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    watches.swap(watches_);
  }
  for (Watch& watch : watches) watch.cancel();
}

void Dispatcher::pump() {
  for (;;) {
    std::optional<SentTurn> sent;
    {
      MutexLock lock(mutex_);
      sent = next_turn();
    }
    if (!sent) return;
    send(std::move(*sent));
  }
}

std::optional<Dispatcher::SentTurn> Dispatcher::next_turn() {
  if (turns_ >= kTurnsMax || backing_off_ || !session_) return std::nullopt;
  if (pending_.empty()) one_by_one_ = 0;
  SentTurn sent{{space_, worker_, {}, {}, {}}, *session_, rings_};
  const bool carefully = one_by_one_ > 0;
  std::size_t settling = std::min(pending_.size(), carefully ? std::size_t{1} : kAtOnce);
  std::size_t taken = running_ + claiming_;
  // While a turn is under way, what trickles in is left to the next: a turn costs far more than an event in it.
  const bool alone = turns_ == 0;
  bool claims = !stopped_ && !home_.held() && !carefully && hint_ && (alone || more_) && taken < options_.concurrency;
  std::size_t room = claims ? options_.concurrency - taken : 0;
  if (room == 0 && (settling == 0 || (!alone && !carefully && settling < kWorthATurn))) return std::nullopt;
  if (carefully) --one_by_one_;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < settling && bytes < kBytesAtOnce; ++i) {
    bytes += pending_.front().bytes();
    sent.turn.settlements.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  sent.turn.emptied.swap(emptied_);
  if (room > 0) {
    std::size_t max = std::min(room, kAtOnce);
    sent.turn.claim = ClaimRequest{.max = max, .claimant = {*session_, {}}, .held_from = home_.take_numbers(max)};
    claiming_ += max;
  }
  ++turns_;
  return sent;
}

void Dispatcher::send(SentTurn sent) {
  home_.count_turn();
  auto shared = std::make_shared<SentTurn>(std::move(sent));
  auto run = std::make_shared<LastRun>();
  home_.transact(
      [self = shared_from_this(), shared, run](Transaction& txn) {
        // Whoever lost to another node looks behind what that one was after. A body runs again for other reasons too,
        // and then events stay in their order.
        if (run->first && is_taken(txn, self->space_, *run->first)) ++run->losses;
        if (shared->turn.claim)
          shared->turn.claim->skip = std::min<std::size_t>(run->losses, 8) * shared->turn.claim->max;
        // It may run again long after it was sent: what came when the node was held already is not for it.
        if (shared->turn.claim) shared->turn.claim->leave_all = self->home_.held();
        TurnResult result = take_turn(txn, shared->turn, self->home_.now());
        run->first.reset();
        if (!result.claimed.events.empty()) run->first = result.claimed.events[0].event.id;
        return result;
      },
      [self = shared_from_this(), shared](Result<TurnResult> result, Receipt receipt) {
        self->turned(*shared, std::move(result), receipt);
      },
      kOptions);
}

void Dispatcher::turned(SentTurn& sent, Result<TurnResult> result, Receipt receipt) {
  if (!result) return turn_failed(sent, result.error());
  std::vector<JobPtr> started, stale_jobs;
  std::vector<Watch> watches;
  bool ours;
  {
    MutexLock lock(mutex_);
    --turns_;
    // Otherwise all of it belongs to whoever sweeps the old one.
    ours = session_ == sent.session;
    for (std::size_t i : result->stale) stale_jobs.push_back(sent.turn.settlements[i].job);
    if (ours)
      for (const Settlement& settlement : sent.turn.settlements) forget(settlement.job);
    if (sent.turn.claim) {
      claiming_ -= sent.turn.claim->max;
      if (ours) adopt(sent.session, std::move(result->claimed.events), receipt.version, started);
      more_ = result->claimed.more;
      again_at_ = result->claimed.again_at;
      if (!more_ && rings_ == sent.rings) hint_ = false;
      watches = std::move(result->watches);
    }
  }
  for (const JobPtr& job : stale_jobs) stale(job);
  start(std::move(started));
  if (!watches.empty()) watch(std::move(watches));
  if (result->claimed.again_at) ring_at(*result->claimed.again_at);
  pump();
  tell_if_settled();
}

void Dispatcher::adopt(SessionId session, std::vector<ClaimedRow> rows, Version version, std::vector<JobPtr>& started) {
  std::shared_ptr<HeldRow> held;
  std::uint64_t number = 0;
  for (ClaimedRow& row : rows) {
    if (!held || row.held_number != number) {
      number = row.held_number;
      held = std::make_shared<HeldRow>(HeldRow{session::held_key(session, kHeldClaims, number), 0});
    }
    ++held->left;
    Loaded& event = row.event;
    if (version != Version{}) event.row.stamp = {version, row.order};
    Token token{event.row.stamp, home_.store_number()};
    auto job = std::make_shared<JobState>(std::move(event), token, session, held);
    job->running = true;
    ++running_;
    jobs_[job->token.stamp] = job;
    started.push_back(std::move(job));
  }
}

void Dispatcher::forget(const JobPtr& job) {
  if (jobs_.erase(job->token.stamp) == 0) return;
  if (--job->held->left == 0) emptied_.push_back(job->held->key);
}

void Dispatcher::turn_failed(SentTurn& sent, const Error& error) {
  if (error.code == ErrorCode::kClosed) return;
  bool hopeless = !error.retryable() && error.outcome() == Outcome::kNone && error.code != ErrorCode::kStaleToken;
  if (hopeless) home_.warn("a turn failed, and is tried again in parts: " + to_string(error), space_ + "/" + worker_);
  bool unknown = error.outcome() == Outcome::kUnknown && !seeded(SeededBug::kLeaveUnknownClaims);
  bool ours;
  {
    MutexLock lock(mutex_);
    --turns_;
    ours = session_ == sent.session;
    bool alone = hopeless && sent.turn.settlements.size() == 1 && !sent.turn.claim;
    if (ours && alone) forget(sent.turn.settlements[0].job);
    if (ours && !alone) {
      for (auto it = sent.turn.settlements.rbegin(); it != sent.turn.settlements.rend(); ++it)
        pending_.push_front(std::move(*it));
      std::ranges::move(sent.turn.emptied, std::back_inserter(emptied_));
      if (hopeless) one_by_one_ = pending_.size();
    }
    if (sent.turn.claim && !(unknown && ours)) claiming_ -= sent.turn.claim->max;
    backing_off_ = true;
  }
  // What may have been claimed is ours, and nobody else's: it must not be left lying.
  if (sent.turn.claim && unknown && ours)
    look_for_claims(sent.session, sent.turn.claim->held_from, sent.turn.claim->max);
  home_.at(home_.scheduler().now() + kBackOff, [self = shared_from_this()] {
    {
      MutexLock lock(self->mutex_);
      self->backing_off_ = false;
    }
    self->pump();
  });
  tell_if_settled();
}

void Dispatcher::look_for_claims(SessionId session, std::uint64_t held_from, std::size_t claiming) {
  // It writes, if nothing that matters: so it is behind the commit that it asks about in the order of commits.
  home_.transact(
      [self = shared_from_this(), session, held_from, claiming, unused = home_.take_numbers(1)](Transaction& txn) {
        SystemAccess access(txn);
        txn.clear(session::held_key(session, kHeldClaims, unused));
        std::vector<ClaimedRow> rows;
        for (std::size_t i = 0; i * kClaimsPerRow < claiming; ++i) {
          auto value = txn.get(session::held_key(session, kHeldClaims, held_from + i));
          auto held = value ? HeldClaims::decode(*value) : std::nullopt;
          for (const Uuid& id : held ? held->ids : std::vector<Uuid>()) {
            auto event = load(txn, self->space_, id);
            if (event && event->row.state == Stored::kRunning && event->row.session == session)
              rows.push_back({std::move(*event), 0, held_from + i});
          }
        }
        return rows;
      },
      [self = shared_from_this(), session, held_from, claiming](Result<std::vector<ClaimedRow>> rows, Receipt) {
        if (!rows && rows.error().code == ErrorCode::kClosed) return;
        std::vector<JobPtr> started;
        bool ours;
        {
          MutexLock lock(self->mutex_);
          ours = self->session_ == session;
          if (rows || !ours) self->claiming_ -= claiming;
          if (rows && ours) self->adopt(session, std::move(*rows), Version{}, started);
        }
        self->start(std::move(started));
        if (!rows && ours) {
          self->home_.at(self->home_.scheduler().now() + kBackOff,
                         [self, session, held_from, claiming] { self->look_for_claims(session, held_from, claiming); });
          return;
        }
        self->pump();
        self->tell_if_settled();
      },
      kOptions);
}

void Dispatcher::watch(std::vector<Watch> watches) {
  std::vector<Watch> old = watches;
  bool stopped;
  {
    MutexLock lock(mutex_);
    stopped = stopped_;
    if (!stopped) old.swap(watches_);
  }
  for (Watch& watch : old) watch.cancel();
  if (stopped) return;
  for (Watch& watch : watches) watch.then(home_.guarded([self = shared_from_this()] { self->ring(); }));
}

void Dispatcher::ring_at(WallTime time) {
  // Whoever moves it rings.
  if (home_.clock().stands_still()) return;
  Duration wait = std::clamp<Duration>(time - home_.now(), Duration::zero(), std::chrono::minutes(1));
  SteadyTime when = home_.scheduler().now() + wait;
  {
    MutexLock lock(mutex_);
    // An earlier one will find out about this.
    if (timer_ && timer_at_ <= when) return;
    timer_ = true;
    timer_at_ = when;
  }
  home_.at(when, [self = shared_from_this(), when] {
    {
      MutexLock lock(self->mutex_);
      if (self->timer_at_ == when) self->timer_ = false;
    }
    self->ring();
  });
}

void Dispatcher::when_settled(Task settled) {
  {
    MutexLock lock(mutex_);
    settled_.push_back(std::move(settled));
  }
  pump();
  tell_if_settled();
}

void Dispatcher::tell_if_settled() {
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    if (is_settled()) tasks.swap(settled_);
  }
  for (Task& task : tasks) task();
}

void Dispatcher::session_over() {
  std::map<Stamp, JobPtr> lost;
  {
    MutexLock lock(mutex_);
    session_.reset();
    pending_.clear();
    emptied_.clear();
    lost.swap(jobs_);
    for (auto& [token, job] : lost) job->decided = true;
  }
  for (auto& [token, job] : lost) job->cancel.cancel();
  tell_if_settled();
}

bool Dispatcher::is_busy() {
  MutexLock lock(mutex_);
  return !is_settled() || running_ + claiming_ > 0;
}

std::optional<WallTime> Dispatcher::again_at() {
  MutexLock lock(mutex_);
  return again_at_;
}

QueueActivity Dispatcher::activity() {
  MutexLock lock(mutex_);
  return {running_, jobs_.size() - std::min(jobs_.size(), running_)};
}

}  // namespace perdure::queue
