#include "sim/sim_scheduler.h"

#include <algorithm>

#include "base/assert.h"

namespace perdure::sim {
namespace {

/// Virtual time does not begin at 0, so that "never" and "at the beginning" are not confused.
constexpr SteadyTime kStart{std::chrono::hours(1)};
constexpr Duration kWallStart = std::chrono::hours(24 * 365 * 50);
/// What one task costs at most. With tasks that take no time, races would vanish: everybody would be done before
/// anybody else begins.
constexpr std::uint64_t kTaskCostMax = 20'000;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

}  // namespace

/// Hands its tasks to a queue of the scheduler, which runs them first to last.
class SimScheduler::Lane final : public Executor {
 public:
  Lane(SimScheduler& scheduler, Queue& queue) : scheduler_(scheduler), queue_(queue) {}
  ~Lane() override {
    while (!queue_.tasks.empty()) {
      Task task = std::move(queue_.tasks.front().task);
      queue_.tasks.pop_front();
      task();
    }
    std::erase_if(scheduler_.timers_, [this](const auto& timer) { return timer.second.queue == &queue_; });
  }

  void post(Task task) override { scheduler_.post_to(queue_, std::move(task)); }
  TimerId at(SteadyTime when, Task task) override { return scheduler_.at_on(queue_, when, std::move(task)); }
  bool cancel(TimerId timer) override { return scheduler_.cancel(timer); }

 private:
  SimScheduler& scheduler_;
  Queue& queue_;
};

SimScheduler::SimScheduler(std::uint64_t seed) : random_(seed), now_(kStart), wall_offset_(kWallStart) {
  queues_.push_back(std::make_unique<Queue>(Queue{Queue::Order::kAny, {}}));
}

SimScheduler::~SimScheduler() = default;

void SimScheduler::post(Task task) {
  post_to(*queues_.front(), std::move(task));
}

Executor::TimerId SimScheduler::at(SteadyTime when, Task task) {
  return at_on(*queues_.front(), when, std::move(task));
}

std::unique_ptr<Executor> SimScheduler::lane(std::string) {
  queues_.push_back(std::make_unique<Queue>(Queue{Queue::Order::kFirstIn, {}}));
  return std::make_unique<Lane>(*this, *queues_.back());
}

void SimScheduler::post_to(Queue& queue, Task task) {
  queue.tasks.push_back({++last_number_, std::move(task)});
}

Executor::TimerId SimScheduler::at_on(Queue& queue, SteadyTime when, Task task) {
  TimerId id = ++last_number_;
  timers_.emplace(TimerKey{when, id}, Timer{&queue, std::move(task)});
  due_.emplace(id, when);
  return id;
}

bool SimScheduler::cancel(TimerId timer) {
  auto due = due_.find(timer);
  if (due == due_.end()) return false;
  bool waiting = timers_.erase({due->second, timer}) > 0;
  due_.erase(due);
  return waiting;
}

void SimScheduler::promote_due_timers() {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    auto timer = timers_.begin();
    timer->second.queue->tasks.push_back({timer->first.second, std::move(timer->second.task)});
    due_.erase(timer->first.second);
    timers_.erase(timer);
  }
}

SimScheduler::Ready SimScheduler::take_next() {
  std::uint64_t choices = 0;
  auto choices_of = [](const Queue& queue) {
    return queue.order == Queue::Order::kAny ? queue.tasks.size() : std::min<std::size_t>(queue.tasks.size(), 1);
  };
  for (const auto& queue : queues_) choices += choices_of(*queue);
  std::uint64_t pick = random_() % choices;
  for (const auto& queue : queues_) {
    if (pick >= choices_of(*queue)) {
      pick -= choices_of(*queue);
      continue;
    }
    auto place = queue->tasks.begin() + static_cast<std::ptrdiff_t>(pick);
    Ready ready = std::move(*place);
    queue->tasks.erase(place);
    return ready;
  }
  die("a ready task was counted but not found");
}

bool SimScheduler::step() {
  check(!running_, "a simulated task must not run the scheduler that runs it");
  promote_due_timers();
  bool nothing_ready = std::ranges::all_of(queues_, [](const auto& queue) { return queue->tasks.empty(); });
  if (nothing_ready) {
    if (timers_.empty()) return false;
    now_ = timers_.begin()->first.first;
    promote_due_timers();
  }
  Ready next = take_next();
  trace_ = mix(mix(trace_, next.number), static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  ++steps_;
  running_ = true;
  next.task();
  next.task = nullptr;
  running_ = false;
  now_ += Duration(static_cast<Duration::rep>(random_() % kTaskCostMax));
  return true;
}

bool SimScheduler::run(std::uint64_t steps_max) {
  for (std::uint64_t i = 0; i < steps_max; ++i)
    if (!step()) return true;
  return false;
}

}  // namespace perdure::sim
