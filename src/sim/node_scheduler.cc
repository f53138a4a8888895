#include "sim/node_scheduler.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "sim/streams.h"

namespace perdure::sim {
namespace {

constexpr Duration kWallStart = std::chrono::hours(24 * 365 * 50);

}  // namespace

/// Hands its tasks to a queue of the scheduler, which runs them first to last.
class NodeScheduler::Lane final : public Executor {
 public:
  Lane(NodeScheduler& scheduler, Queue& queue, std::string name)
      : scheduler_(scheduler), queue_(queue), name_(std::move(name)) {}
  ~Lane() override {
    while (!queue_.empty()) {
      Task task = std::move(queue_.front().task);
      queue_.pop_front();
      task();
    }
    scheduler_.forget(queue_);
  }

  void post(Task task) override { scheduler_.post_on_lane(queue_, name_, std::move(task)); }
  TimerId at(SteadyTime when, Task task) override { return scheduler_.at_on(queue_, when, std::move(task)); }
  bool cancel(TimerId timer) override { return scheduler_.cancel(timer); }

 private:
  NodeScheduler& scheduler_;
  Queue& queue_;
  const std::string name_;
};

NodeScheduler::NodeScheduler(Timeline& timeline, std::string name, std::uint64_t seed)
    : timeline_(timeline),
      name_(std::move(name)),
      random_(stream(seed, "node/" + name_)),
      wall_offset_(kWallStart),
      paused_until_(timeline.now()) {
  timeline_.nodes_.push_back(this);
}

NodeScheduler::~NodeScheduler() {
  drop_everything();
  std::erase(timeline_.nodes_, this);
}

void NodeScheduler::post(Task task) {
  post_to(pool_, std::move(task));
}

Executor::TimerId NodeScheduler::at(SteadyTime when, Task task) {
  return at_on(pool_, when, std::move(task));
}

std::unique_ptr<Executor> NodeScheduler::lane(std::string name) {
  lanes_.push_back(std::make_unique<Queue>());
  return std::make_unique<Lane>(*this, *lanes_.back(), std::move(name));
}

void NodeScheduler::post_to(Queue& queue, Task task) {
  queue.push_back({++last_number_, std::move(task)});
}

void NodeScheduler::post_on_lane(Queue& queue, const std::string& lane, Task task) {
  auto slow = slow_.find(lane);
  if (slow == slow_.end()) return post_to(queue, std::move(task));
  at_on(queue, now() + draw_delay(random_, slow->second), std::move(task));
}

Executor::TimerId NodeScheduler::at_on(Queue& queue, SteadyTime when, Task task) {
  TimerId id = ++last_number_;
  timers_.emplace(TimerKey{when, id}, Timer{&queue, std::move(task)});
  due_.emplace(id, when);
  return id;
}

bool NodeScheduler::cancel(TimerId timer) {
  auto due = due_.find(timer);
  if (due == due_.end()) return false;
  auto cancelled = timers_.extract({due->second, timer});  // Its task dies at the end, when both maps are right.
  due_.erase(due);
  return true;
}

void NodeScheduler::promote_due_timers(SteadyTime now) {
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto timer = timers_.extract(timers_.begin());
    due_.erase(timer.key().second);
    timer.mapped().queue->push_back({timer.key().second, std::move(timer.mapped().task)});
  }
}

std::uint64_t NodeScheduler::ready_at(SteadyTime now) {
  if (draining_ || now < paused_until_) return 0;
  promote_due_timers(now);
  std::uint64_t choices = pool_.size();
  for (const auto& lane : lanes_) choices += lane->empty() ? 0 : 1;
  return choices;
}

SteadyTime NodeScheduler::next_at() const {
  if (draining_) return SteadyTime::max();
  bool has_ready = !pool_.empty() || std::ranges::any_of(lanes_, [](const auto& lane) { return !lane->empty(); });
  if (has_ready) return paused_until_;
  return timers_.empty() ? SteadyTime::max() : std::max(paused_until_, timers_.begin()->first.first);
}

NodeScheduler::Ready NodeScheduler::take(std::uint64_t pick) {
  if (pick < pool_.size()) {
    std::swap(pool_[pick], pool_.back());
    Ready ready = std::move(pool_.back());
    pool_.pop_back();
    return ready;
  }
  pick -= pool_.size();
  for (const auto& lane : lanes_) {
    if (lane->empty() || pick-- > 0) continue;
    Ready ready = std::move(lane->front());
    lane->pop_front();
    return ready;
  }
  die("a ready task was counted but not found");
}

bool NodeScheduler::drain(const std::function<bool()>& quiet, std::uint64_t steps_max) {
  check(!timeline_.running_, "a node is not drained inside a task");
  paused_until_ = {};
  bool is_quiet = quiet();
  for (std::uint64_t steps = 0; !is_quiet && steps < steps_max; ++steps) {
    draining_ = false;
    std::uint64_t choices = ready_at(now());
    if (choices == 0 && timers_.empty()) break;
    if (choices == 0) ahead_ += timers_.begin()->first.first - now();
    choices = ready_at(now());
    draining_ = true;
    Ready ready = take(random_() % choices);
    ready.task();
    ready.task = nullptr;
    is_quiet = quiet();
  }
  draining_ = true;
  return is_quiet;
}

void NodeScheduler::drop_everything() {
  while (!pool_.empty() || !timers_.empty() || std::ranges::any_of(lanes_, [](auto& lane) { return !lane->empty(); })) {
    // What they own may hand over more, or cancel, while it dies: so they die outside of our containers.
    auto timers = std::exchange(timers_, {});
    due_.clear();
    std::vector<Queue> dropped;
    dropped.push_back(std::exchange(pool_, {}));
    for (auto& lane : lanes_) dropped.push_back(std::exchange(*lane, {}));
  }
}

void NodeScheduler::forget(Queue& queue) {
  std::vector<Task> dropped;
  for (auto timer = timers_.begin(); timer != timers_.end();) {
    if (timer->second.queue == &queue) {
      due_.erase(timer->first.second);
      dropped.push_back(std::move(timer->second.task));
      timer = timers_.erase(timer);
    } else {
      ++timer;
    }
  }
  std::erase_if(lanes_, [&](const auto& lane) { return lane.get() == &queue; });
}

}  // namespace perdure::sim
