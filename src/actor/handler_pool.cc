#include "actor/handler_pool.h"

#include <algorithm>
#include <utility>

namespace perdure::actor {
namespace {

thread_local bool in_handler = false;
/// The lane that this thread is; a thread is never more than one.
thread_local const void* this_lane = nullptr;

void run_all(std::vector<Task>& tasks) {
  for (Task& task : tasks)
    if (task) task();
}

}  // namespace

HandlerPool::HandlerPool(Scheduler& scheduler, std::string name, unsigned lanes, unsigned spare)
    : scheduler_(scheduler), name_(std::move(name)), lanes_max_(lanes), spare_max_(spare) {}

HandlerPool::~HandlerPool() {
  join();
}

bool HandlerPool::runs_here() {
  return in_handler;
}

std::size_t HandlerPool::hanging() {
  MutexLock lock(mutex_);
  return hanging_;
}

void HandlerPool::run(Job job) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      queue_.push_back(std::move(job));
      if (Lane* lane = free_lane()) begin(*lane);
      return;
    }
  }
  if (job.dropped) job.dropped();
}

HandlerPool::Lane* HandlerPool::free_lane() {
  for (auto& lane : lanes_)
    if (!lane->busy) return lane.get();
  // A thread that hangs still counts, but up to `spare` others may stand in for such.
  std::size_t most = lanes_max_ + std::min<std::size_t>(hanging_, spare_max_);
  if (lanes_.size() >= most) return nullptr;
  lanes_.push_back(std::make_unique<Lane>());
  lanes_.back()->executor = scheduler_.lane(name_);
  return lanes_.back().get();
}

void HandlerPool::begin(Lane& lane) {
  lane.busy = true;
  lane.executor->post([self = shared_from_this(), &lane] {
    this_lane = &lane;
    self->work(lane);
  });
}

void HandlerPool::work(Lane& lane) {
  MutexLock lock(mutex_);
  while (!queue_.empty() && !lane.given_up) {
    Job job = std::move(queue_.front());
    queue_.pop_front();
    SteadyTime now = scheduler_.now();
    if (job.limit < SteadyTime::max() - now) {
      lane.deadline = now + job.limit;
      lane.overrun = std::move(job.overrun);
      watch(lane.deadline);
    }
    lock.unlock();
    in_handler = true;
    job.run();
    job = {};  // What it holds may be the last of its kind, and must not wait for this thread.
    in_handler = false;
    lock.lock();
    lane.deadline = SteadyTime::max();
    lane.overrun = nullptr;
  }
  lane.busy = false;
  if (lane.given_up) {
    // Nobody waits for it, and the scheduler may be gone by now.
    lane.given_up = false;
    --hanging_;
    if (!queue_.empty() && !closed_) begin(lane);
    return;
  }
  changed_.notify_all();
  auto idle = take_idle();
  lock.unlock();
  run_all(idle);
}

std::vector<Task> HandlerPool::take_idle() {
  return is_idle() ? std::exchange(idle_, {}) : std::vector<Task>();
}

void HandlerPool::watch(SteadyTime deadline) {
  if (watched_until_ <= deadline) return;
  watched_until_ = deadline;
  scheduler_.at(deadline, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->check();
  });
}

void HandlerPool::check() {
  std::vector<Task> overruns;
  {
    MutexLock lock(mutex_);
    watched_until_ = SteadyTime::max();
    SteadyTime now = scheduler_.now();
    SteadyTime next = SteadyTime::max();
    for (auto& lane : lanes_) {
      if (lane->deadline > now) {
        next = std::min(next, lane->deadline);
        continue;
      }
      lane->deadline = SteadyTime::max();
      lane->given_up = true;
      ++hanging_;
      overruns.push_back(std::move(lane->overrun));
      lane->overrun = nullptr;
    }
    if (next != SteadyTime::max()) watch(next);
    while (!queue_.empty() && !closed_) {
      Lane* lane = free_lane();
      if (!lane) break;
      begin(*lane);
      if (queue_.size() <= 1) break;
    }
    for (Task& idle : take_idle()) overruns.push_back(std::move(idle));
    changed_.notify_all();
  }
  run_all(overruns);
}

bool HandlerPool::is_idle() {
  return std::ranges::all_of(lanes_, [](const auto& lane) { return !lane->busy || lane->given_up; });
}

void HandlerPool::close(Task idle) {
  std::deque<Job> dropped;
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
    idle_.push_back(std::move(idle));
    tasks = take_idle();
  }
  for (Job& job : dropped)
    if (job.dropped) job.dropped();
  run_all(tasks);
}

void HandlerPool::leave_behind() {
  MutexLock lock(mutex_);
  for (auto& lane : lanes_) {
    if (!lane->busy || lane->given_up) continue;
    lane->given_up = true;
    ++hanging_;
  }
  changed_.notify_all();
}

void HandlerPool::wait() {
  MutexLock lock(mutex_);
  while (!is_idle()) changed_.wait(lock);
}

void HandlerPool::join() {
  std::vector<std::unique_ptr<Lane>> lanes;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    lanes.swap(lanes_);
  }
  for (auto& lane : lanes) {
    bool hangs;
    {
      MutexLock lock(mutex_);
      hangs = lane->given_up || lane.get() == this_lane;
    }
    // Waiting for a thread that hangs could take for ever; its lane is left to the end of the process.
    if (hangs)
      (void)lane.release();
    else
      lane->executor.reset();  // Waits for its thread, which uses the rest of the lane until then.
  }
}

}  // namespace perdure::actor
