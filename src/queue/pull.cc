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

  void attempt() {
    home_.transact(
        [self = shared_from_this()](Transaction& txn) { return self->claim(txn); },
        [self = shared_from_this()](Result<Tried> tried, Receipt receipt) { self->claimed(std::move(tried), receipt); },
        {.body = Body::kShort, .reserve = Reserve::kMayUse});
  }

 private:
  struct Tried {
    queue::ClaimResult result;
    std::vector<Value> values;
    std::uint64_t store = 0;
    std::vector<Watch> watches;
  };

  Tried claim(Transaction& txn) {
    WallTime now = home_.now(txn);
    queue::WorkerTable table(txn, space_, worker_, now);
    Tried tried;
    tried.result = queue::claim_some(
        table,
        {.max = options_.max, .bytes_max = kClaimBytesMax, .claimant = {{}, queue::due_after(now, options_.lock)}});
    Reader snapshot = txn.snapshot();
    for (const auto& row : tried.result.events) {
      auto given = queue::readable(txn, queue::Given::decode(row.event.row.given()));
      tried.values.push_back(queue::readable(txn, queue::read_value(snapshot, row.event.key, given)));
    }
    tried.store = queue::store_number(snapshot);
    table.finish();
    if (tried.result.events.empty()) tried.watches = queue::watch_worker(txn, table.prefix());
    return tried;
  }

  void claimed(Result<Tried> tried, Receipt receipt) {
    if (!tried) return done_(std::unexpected(std::move(tried.error())));
    bool over = !tried->result.events.empty() || home_.scheduler().now() >= deadline_;
    if (!over) return wait(*tried);
    for (Watch& watch : tried->watches) watch.cancel();
    std::vector<Claimed> events;
    for (std::size_t i = 0; i < tried->result.events.size(); ++i) {
      auto& row = tried->result.events[i].event;
      row.row.stamp = receipt.stamp(tried->result.events[i].order);
      auto given = queue::Given::decode(row.row.given());
      if (!given) continue;
      events.push_back(queue::describe(space_, row.id, row.row, *given, WorkerState::kRun, tried->store));
      events.back().value = std::move(tried->values[i]);
    }
    done_(std::move(events));
  }

  void wait(Tried& tried) {
    // Nothing but more to look through: those it found wait for slots of their keys.
    if (tried.result.more) {
      for (Watch& watch : tried.watches) watch.cancel();
      return attempt();
    }
    auto taken = home_.add_waiter([self = shared_from_this(), watches = tried.watches]() mutable {
      for (Watch& watch : watches) watch.cancel();
      self->done_(std::unexpected(self->home_.closed_error()));
    });
    if (taken == 0) return;
    SteadyTime when = deadline_;
    if (tried.result.again_at) {
      Duration left = std::max(*tried.result.again_at - home_.now(), Duration::zero());
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
    for (Watch& watch : tried.watches)
      watch.then(home_.guarded([again, timer, &home = home_]() mutable {
        if (again() && timer != 0) home.scheduler().cancel(timer);
      }));
  }

  QueueImpl& home_;
  const std::string space_;
  const std::string worker_;
  const ClaimOptions options_;
  const SteadyTime deadline_;
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
  std::make_shared<Pull>(*this, space, std::string(worker), options, deadline, std::move(done))->attempt();
}

}  // namespace perdure
