#include "node/node.h"

#include <algorithm>
#include <utility>

#include "actor/actors_impl.h"
#include "base/time_math.h"
#include "debounce/debouncers_impl.h"
#include "queue/queue_impl.h"
#include "runtime/latch.h"
#include "schedule/schedules_impl.h"
#include "store/store_access.h"

namespace perdure {
namespace {

/// Replies of calls that were made with a key are kept for as long as the key is, and a little longer.
constexpr Duration kRepliesKept = std::chrono::hours(25);

/// A clock that stands still begins where the store has been before, or now.
Result<void> set_clock(Store& store, StoreTime time) {
  StoreImpl& impl = StoreAccess::impl(store);
  const auto& clock = impl.options().clock;
  if (!clock) return {};
  auto floor = store.read([](Reader& reader) { return StoreClock::read(reader); });
  if (!floor) return std::unexpected(std::move(floor.error()));
  clock->move_to(*floor);
  if (time == StoreTime::kStandsStill) clock->move_to(impl.scheduler().wall_now());
  return {};
}

}  // namespace

Node::Node(Store store, Queue queue, Actors actors, Schedules schedules, Debouncers debouncers, Sequences sequences,
           const NodeOptions& options)
    : store_(std::move(store)),
      queue_(std::move(queue)),
      actors_(std::move(actors)),
      schedules_(std::move(schedules)),
      debouncers_(std::move(debouncers)),
      sequences_(std::move(sequences)),
      transcripts_(std::make_shared<transcript::Transcripts>(store_, queue_, debouncers_, options.transcripts)),
      clock_(store_),
      held_(options.dispatch == Dispatch::kHeld) {
  if (held_) transcripts_->hold();
  transcripts_->start();
}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options) {
  auto wrong = [](auto& result) { return std::unexpected(std::move(result.error())); };
  const bool held = options.dispatch == Dispatch::kHeld;
  StoreTime time = options.time;
  if (options.store_options.clock)
    time = StoreTime::kPasses;
  else if (time == StoreTime::kStandsStill)
    options.store_options.clock = std::make_shared<TestClock>(WallTime());
  auto store = Store::open(options.store, std::move(options.store_options));
  if (!store) return wrong(store);
  if (auto set = set_clock(*store, time); !set) return wrong(set);
  auto queue = Queue::open(*store, {.session = options.session, .held = held});
  if (!queue) return wrong(queue);
  // Handlers of remote behaviours wait for other processes, each on a thread.
  auto actors = Actors::open(
      *store, {.session = options.session, .handler_threads_max = 64, .abandoned_after = kRepliesKept, .held = held});
  if (!actors) return wrong(actors);
  auto schedules = Schedules::open(*store, {.trigger = !held});
  if (!schedules) return wrong(schedules);
  auto debouncers = Debouncers::open(*store, {.fire = !held});
  if (!debouncers) return wrong(debouncers);
  auto sequences = Sequences::open(*store);
  if (!sequences) return wrong(sequences);
  return std::unique_ptr<Node>(new Node(std::move(*store), std::move(*queue), std::move(*actors), std::move(*schedules),
                                        std::move(*debouncers), std::move(*sequences), options));
}

Node::~Node() {
  (void)close(Duration::zero());
}

WallTime Node::now() {
  return clock_.now();
}

// Holding.

void Node::hold() {
  MutexLock lock(mutex_);
  held_ = true;
  queue_.hold();
  actors_.hold();
  schedules_.hold();
  debouncers_.hold();
  transcripts_->hold();
}

void Node::release() {
  {
    MutexLock lock(mutex_);
    if (closed_ || !std::exchange(held_, false)) return;
  }
  // Without the lock: they begin at once, and what they do may come back to here.
  queue_.release();
  actors_.release();
  schedules_.release();
  debouncers_.release();
  transcripts_->release();
}

bool Node::held() {
  MutexLock lock(mutex_);
  return held_;
}

// Time.

Result<WallTime> Node::advance(Duration by, Duration timeout) {
  auto promise = std::make_shared<Promise<Result<WallTime>>>();
  advance_async(by, timeout, [promise](Result<WallTime> now) { promise->set(std::move(now)); });
  return promise->take();
}

void Node::advance_async(Duration by, Duration timeout, Advance::Done done) {
  const auto clock = StoreAccess::impl(store_).options().clock;
  if (!clock)
    return done(fail(ErrorCode::kInvalidArgument,
                     "the time of this node passes by itself; only one that was opened with a test clock is moved"));
  if (by < Duration::zero()) return done(fail(ErrorCode::kInvalidArgument, "time cannot be moved back"));
  auto shared = std::make_shared<Advance::Done>(std::move(done));
  auto begin = [this, clock, by, timeout, shared] {
    Scheduler& scheduler = StoreAccess::impl(store_).scheduler();
    std::vector<TimedPart*> parts = {&PartAccess::impl(queue_), &PartAccess::impl(actors_),
                                     &PartAccess::impl(schedules_), &PartAccess::impl(debouncers_), transcripts_.get()};
    auto stopped = [this] {
      MutexLock lock(mutex_);
      return closed_;
    };
    auto ended = [this, shared](Result<WallTime> now) {
      (*shared)(std::move(now));
      advanced();
    };
    std::make_shared<Advance>(store_, *clock, std::move(parts),
                              Advance::Options{.target = plus(clock->now(), by),
                                               .deadline = plus(scheduler.now(), timeout),
                                               .stopped = std::move(stopped)},
                              std::move(ended))
        ->begin();
  };
  bool closed, first;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    first = advances_.empty();
    if (!closed) advances_.push_back(std::move(begin));
  }
  if (closed) return (*shared)(fail(ErrorCode::kClosed, "this node is closed"));
  if (first) next_advance();
}

void Node::next_advance() {
  std::function<void()> begin;
  {
    MutexLock lock(mutex_);
    if (!advances_.empty()) begin = advances_.front();
  }
  if (begin) begin();
}

void Node::advanced() {
  bool more;
  {
    MutexLock lock(mutex_);
    advances_.pop_front();
    more = !advances_.empty();
    // Whoever waits for the last may take all of this down from here on.
    if (!more) changed_.notify_all();
  }
  if (more) next_advance();
}

// Closing.

Result<void> Node::close(Duration grace) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return {};
    while (!advances_.empty()) changed_.wait(lock);
  }
  schedules_.hold();
  debouncers_.hold();
  transcripts_->stop();
  auto queue = queue_.close(grace);
  auto actors = actors_.close(grace);
  auto store = store_.close(grace);
  if (!queue) return queue;
  return actors ? store : actors;
}

}  // namespace perdure
