#include "node/advance.h"

#include <algorithm>
#include <utility>

#include "base/rfc3339.h"
#include "session/store_clock.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure {
namespace {

/// What is under way is asked after again and again: most of it takes less than a commit, and a handler as long as it
/// likes.
constexpr Duration kFirstPause = std::chrono::microseconds(100);
constexpr Duration kLongestPause = std::chrono::milliseconds(5);

}  // namespace

Advance::Advance(Store& store, TestClock& clock, std::vector<TimedPart*> parts, Options options, Done done)
    : store_(store),
      clock_(clock),
      parts_(std::move(parts)),
      options_(std::move(options)),
      done_(std::move(done)),
      pause_(kFirstPause) {}

Scheduler& Advance::scheduler() {
  return StoreAccess::impl(store_).scheduler();
}

void Advance::begin() {
  look();
  check();
}

TimedPart::Activity Advance::activity() {
  TimedPart::Activity sum;
  for (TimedPart* part : parts_) {
    auto one = part->activity_now();
    sum.busy = sum.busy || one.busy;
    sum.begun += one.begun;
  }
  return sum;
}

void Advance::look() {
  for (TimedPart* part : parts_) part->look();
}

void Advance::check() {
  if (options_.stopped()) return done_(fail(ErrorCode::kClosed, "this node is closed"));
  auto before = activity();
  if (before.busy) return check_later();
  store_.transact_async(
      [self = shared_from_this()](Transaction& txn) {
        SystemAccess access(txn);
        Reader snapshot = txn.snapshot();
        Seen seen;
        WallTime now = self->clock_.now();
        for (TimedPart* part : self->parts_) {
          seen.work = seen.work || part->has_work(snapshot, now);
          seen.next = earlier(seen.next, part->next_due(snapshot));
        }
        return seen;
      },
      [self = shared_from_this(), before](Result<Seen> seen) { self->seen(before, std::move(seen)); });
}

void Advance::seen(TimedPart::Activity before, Result<Seen> seen) {
  if (!seen && !seen.error().retryable()) return done_(std::unexpected(std::move(seen.error())));
  // Something may have come and gone since, and left work that the look did not see.
  auto after = activity();
  bool calm = seen && !after.busy && after.begun == before.begun;
  if (calm && !seen->work) return quiet(seen->next);
  if (seen && seen->work) look();
  check_later();
}

void Advance::check_later() {
  if (scheduler().now() >= options_.deadline)
    return done_(fail(ErrorCode::kDeadline, "something is still to be done at " + format_rfc3339(clock_.now()) +
                                                " in store time; the clock stands there"));
  scheduler().at(scheduler().now() + pause_, [self = shared_from_this()] { self->check(); });
  pause_ = std::min(2 * pause_, kLongestPause);
}

void Advance::quiet(std::optional<WallTime> next) {
  WallTime now = clock_.now();
  if (now >= options_.target) return note_and_end();
  WallTime stop = options_.target;
  if (next && *next > now) stop = std::min(stop, *next);
  clock_.move_to(stop);
  pause_ = kFirstPause;
  begin();
}

void Advance::note_and_end() {
  store_.transact_async(
      [now = clock_.now()](Transaction& txn) {
        SystemAccess access(txn);
        StoreClock::advance(txn, now);
        return now;
      },
      [self = shared_from_this()](Result<WallTime> now) { self->done_(std::move(now)); }, {.body = Body::kShort});
}

}  // namespace perdure
