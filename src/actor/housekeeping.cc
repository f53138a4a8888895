#include "actor/housekeeping.h"

#include <algorithm>

#include "actor/actors_impl.h"
#include "actor/collect.h"
#include "actor/mailbox.h"
#include "base/seeded_bug.h"

namespace perdure::actor {
namespace {

constexpr std::size_t kPromotedAtOnce = 30;
/// Well below what a transaction may hold.
constexpr std::size_t kPromotedBytes = 2'000'000;
constexpr Duration kCollectEvery = std::chrono::minutes(10);
constexpr Duration kRetry = std::chrono::milliseconds(200);
/// Timers are set for at most this long: the wall clock may jump ahead meanwhile.
constexpr Duration kLongestSleep = std::chrono::minutes(1);

constexpr TransactOptions kOptions = {.body = Body::kShort, .reserve = Reserve::kMayUse};

/// Pushes a delayed cast whose time has come. A mailbox that is full takes it all the same: it was promised.
void push_due(Transaction& txn, const Row& row, WallTime now) {
  if (!seeded(SeededBug::kPromoteTwice)) txn.clear(row.key);
  auto delayed = decode_delayed(row.value);
  if (!delayed) return;
  Message message{MessageType::kCast, now, {}, std::move(delayed->body)};
  (void)push(txn, delayed->actor, {&message, 1}, Bound::kIgnored);
}

std::optional<WallTime> due_time(const Row& row) {
  auto parts = tuple::unpack_after<std::int64_t, Stamp>(due_prefix(), row.key);
  if (!parts) return std::nullopt;
  return WallTime(Duration(std::get<0>(*parts)));
}

}  // namespace

void Housekeeping::start() {
  follow_deaths();
  promote();
  home_.at(home_.scheduler().now() + kCollectEvery, [this] { collect_again(); });
}

// Deaths.

void Housekeeping::follow_deaths() {
  struct Seen {
    std::optional<Bytes> fallen;
    Watch watch;
  };
  home_.transact(
      [](Transaction& txn) {
        SystemAccess access(txn);
        Watch watch = txn.watch(fallen_key());
        return Seen{txn.snapshot().get(fallen_key()), watch};
      },
      [this](Result<Seen> seen, Receipt) {
        if (!seen && seen.error().code == ErrorCode::kClosed) return;
        if (!seen) {
          home_.at(home_.scheduler().now() + kRetry, [this] { follow_deaths(); });
          return;
        }
        if (auto stamp = Stamp::decode(seen->fallen.value_or(""))) home_.careful_from(stamp->version.number);
        seen->watch.then(home_.guarded([this] { follow_deaths(); }));
      },
      {});
}

// Delayed casts.

void Housekeeping::promote() {
  {
    MutexLock lock(mutex_);
    again_ = promoting_;
    if (std::exchange(promoting_, true)) return;
  }
  home_.transact(
      [this](Transaction& txn) {
        SystemAccess access(txn);
        DueSeen seen;
        seen.watch = txn.watch(due_bell_key());
        auto rows = txn.get_range(tuple::extensions(due_prefix()), {.limit = kPromotedAtOnce + 1});
        if (rows.empty()) return seen;
        Reader snapshot = txn.snapshot();
        home_.clock().learn(StoreClock::read(snapshot));
        WallTime now = home_.now();
        std::size_t count = 0, bytes = 0;
        for (const Row& row : rows) {
          seen.next = due_time(row);
          if (seen.next && *seen.next > now) break;
          seen.next.reset();
          seen.more = count == kPromotedAtOnce || bytes > kPromotedBytes;
          if (seen.more) break;
          ++count;
          bytes += row.value.size();
          push_due(txn, row, now);
        }
        if (count > 0) home_.clock().advance(txn, now);
        return seen;
      },
      [this](Result<DueSeen> seen, Receipt) { promoted(std::move(seen)); }, kOptions);
}

void Housekeeping::promoted(Result<DueSeen> seen) {
  if (!seen && seen.error().code == ErrorCode::kClosed) return;
  bool at_once;
  std::optional<Duration> sleep;
  {
    MutexLock lock(mutex_);
    promoting_ = false;
    at_once = std::exchange(again_, false) || (seen && seen->more);
    if (!seen) sleep = kRetry;
    if (seen && seen->next) sleep = std::clamp(*seen->next - home_.now(), Duration::zero(), kLongestSleep);
  }
  if (at_once) {
    if (seen) seen->watch.cancel();
    return promote();
  }
  if (seen) {
    Watch before = seen->watch;
    {
      MutexLock lock(mutex_);
      std::swap(before, watch_);
    }
    before.cancel();
    seen->watch.then(home_.guarded([this] { promote(); }));
  }
  if (!sleep) return;
  auto timer = home_.at(home_.scheduler().now() + *sleep, [this] { promote(); });
  {
    MutexLock lock(mutex_);
    std::swap(timer, timer_);
  }
  if (timer != 0) home_.canceller(timer)();
}

// Abandoned callers.

void Housekeeping::collect_again() {
  collect(home_.options().abandoned_after, [this](const Result<std::uint64_t>&) {
    home_.at(home_.scheduler().now() + kCollectEvery, [this] { collect_again(); });
  });
}

void Housekeeping::collect(Duration age, std::move_only_function<void(Result<std::uint64_t>)> done) {
  auto before = std::chrono::duration_cast<std::chrono::seconds>((home_.now() - age).time_since_epoch()).count();
  collect_from({}, before, 0, std::move(done));
}

void Housekeeping::collect_from(Bytes after, std::int64_t before_seconds, std::uint64_t so_far,
                                std::move_only_function<void(Result<std::uint64_t>)> done) {
  home_.transact([after, before_seconds](Transaction& txn) { return collect_some(txn, after, before_seconds); },
                 [this, before_seconds, so_far, done = std::move(done)](Result<Collected> part, Receipt) mutable {
                   if (!part) return done(std::unexpected(std::move(part.error())));
                   if (!part->more) return done(so_far + part->callers);
                   collect_from(std::move(part->last), before_seconds, so_far + part->callers, std::move(done));
                 },
                 kOptions);
}

}  // namespace perdure::actor
