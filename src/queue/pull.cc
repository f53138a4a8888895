// Claims by hand: what an outside worker asks for, and waits for.
#include "queue/inspect.h"
#include "queue/queue_impl.h"

namespace perdure {
namespace {

constexpr std::size_t kClaimMax = 1'000;
constexpr std::size_t kClaimBytesMax = 4 << 20;

/// One call of Queue::claim. It is tried when it comes, and whenever there may be something, until its time is over.
class Pull : public std::enable_shared_from_this<Pull> {
 public:
  using Done = std::move_only_function<void(Result<std::vector<Claimed>>)>;
  Pull(QueueImpl& home, std::string space, std::string worker, const ClaimOptions& options, SteadyTime deadline,
       Done done)
      : home_(home),
        space_(std::move(space)),
        worker_(std::move(worker)),
        options_(options),
        deadline_(deadline),
        done_(std::move(done)) {}

  /// Once, before the first attempt.
  void heed_cancel() {
    // Not on the thread that gives the signal: whoever waits is answered there.
    auto wake = [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->home_.wake_waiter(self->waiter_);
    };
    options_.cancel.then(home_.guarded([&home = home_, wake] { home.scheduler().post(home.guarded(wake)); }));
  }

  void attempt() {
    if (options_.cancel.cancelled()) return done_(std::vector<Claimed>());
    home_.transact(
        [self = shared_from_this()](Transaction& txn) { return self->claim(txn); },
        [self = shared_from_this()](Result<Tried> tried, Receipt receipt) { self->claimed(std::move(tried), receipt); },
        {.body = Body::kShort, .reserve = Reserve::kMayUse});
  }

 private:
  struct Tried {
    /// Their tokens have no version yet.
    std::vector<Claimed> events;
    bool more = false;
    std::optional<WallTime> again_at;
    std::vector<Watch> watches;
  };

  Tried claim(Transaction& txn) {
    Tried tried;
    if (!options_.cancel.cancelled() && !home_.held()) claim_into(txn, tried);
    if (options_.also && !tried.events.empty()) options_.also(txn, tried.events);
    return tried;
  }

  void claim_into(Transaction& txn, Tried& tried) {
    WallTime now = home_.now(txn);
    queue::WorkerTable table(txn, space_, worker_, now);
    auto result = queue::claim_some(
        table,
        {.max = options_.max, .bytes_max = kClaimBytesMax, .claimant = {{}, queue::due_after(now, options_.lock)}});
    Reader snapshot = txn.snapshot();
    const std::uint64_t store = queue::store_number(snapshot);
    for (auto& [event, order, held_number] : result.events) {
      auto given = queue::readable(txn, queue::Given::decode(event.row.given()));
      event.row.stamp = {Version{}, order};
      tried.events.push_back(queue::describe(space_, event.id, event.row, given, WorkerState::kRun, store));
      tried.events.back().value = queue::readable(txn, queue::read_value(snapshot, event.key, given));
    }
    tried.more = result.more;
    tried.again_at = result.again_at;
    table.finish();
    if (tried.events.empty()) tried.watches = queue::watch_worker(txn, table.prefix());
  }

  void claimed(Result<Tried> tried, Receipt receipt) {
    if (!tried) return done_(std::unexpected(std::move(tried.error())));
    bool over = !tried->events.empty() || home_.scheduler().now() >= deadline_;
    if (!over) return wait(*tried);
    for (Watch& watch : tried->watches) watch.cancel();
    for (Claimed& event : tried->events) event.token->stamp = receipt.stamp(event.token->stamp.order);
    done_(std::move(tried->events));
  }

  void wait(Tried& tried) {
    // Nothing but more to look through: those it found wait for slots of their keys.
    if (tried.more) {
      for (Watch& watch : tried.watches) watch.cancel();
      return attempt();
    }
    auto taken = home_.add_waiter([self = shared_from_this(), watches = tried.watches]() mutable {
      for (Watch& watch : watches) watch.cancel();
      self->done_(std::unexpected(self->home_.closed_error()));
    });
    if (taken == 0) return;
    waiter_ = taken;
    SteadyTime when = deadline_;
    // If time stands still, whoever moves it wakes all who wait.
    if (tried.again_at && !home_.clock().stands_still()) {
      Duration left = std::max(*tried.again_at - home_.now(), Duration::zero());
      if (left < when - home_.scheduler().now()) when = home_.scheduler().now() + left;
    }
    auto again = [self = shared_from_this(), taken, watches = tried.watches]() mutable {
      if (!self->home_.remove_waiter(taken)) return false;
      for (Watch& watch : watches) watch.cancel();
      self->attempt();
      return true;
    };
    Executor::TimerId timer = 0;
    if (when < SteadyTime::max()) timer = home_.at(when, [again]() mutable { again(); });
    auto woken = [again, timer, &home = home_]() mutable {
      if (again() && timer != 0) home.scheduler().cancel(timer);
    };
    for (Watch& watch : tried.watches) watch.then(home_.guarded(woken));
    home_.when_woken(taken, std::move(woken), tried.again_at.has_value());
    // With all that may end it in its place: what came meanwhile found nobody to wake.
    bool was_held = tried.watches.empty();
    if (options_.cancel.cancelled() || (was_held && !home_.held())) home_.wake_waiter(taken);
  }

  QueueImpl& home_;
  const std::string space_;
  const std::string worker_;
  const ClaimOptions options_;
  const SteadyTime deadline_;
  /// What it waits as, or last did.
  std::atomic<std::uint64_t> waiter_ = 0;
  Done done_;
};

}  // namespace

void QueueImpl::claim(const std::string& space, std::string_view worker, const ClaimOptions& options,
                      std::move_only_function<void(Result<std::vector<Claimed>>)> done) {
  auto wrong = [&](std::string message) { done(fail(ErrorCode::kInvalidArgument, std::move(message))); };
  if (auto good = queue::check_worker(worker); !good) return done(std::unexpected(std::move(good.error())));
  if (auto good = session::check_short_name(space, "the space"); !good)
    return done(std::unexpected(std::move(good.error())));
  if (options.max == 0 || options.max > kClaimMax) return wrong("a claim is for 1 to 1000 events");
  if (options.lock <= Duration::zero() || options.lock > queue::kLockMax)
    return wrong("the lock of a claim must last for more than nothing, and at most a year");
  if (options.wait < Duration::zero()) return wrong("the wait of a claim cannot be negative");
  auto use = enter();
  if (!use) return done(std::unexpected(closed_error()));
  SteadyTime now = scheduler_.now();
  SteadyTime deadline = options.wait < SteadyTime::max() - now ? now + options.wait : SteadyTime::max();
  auto pull = std::make_shared<Pull>(*this, space, std::string(worker), options, deadline, std::move(done));
  pull->heed_cancel();
  pull->attempt();
}

}  // namespace perdure
