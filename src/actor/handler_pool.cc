#include "actor/handler_pool.h"

#include <algorithm>

namespace perdure::actor {
namespace {

thread_local bool in_handler = false;

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
  MutexLock lock(mutex_);
  if (closed_) return;
  queue_.push_back(std::move(job));
  if (Lane* lane = free_lane()) begin(*lane);
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
  lane.executor->post([self = shared_from_this(), &lane] { self->work(lane); });
}

void HandlerPool::work(Lane& lane) {
  MutexLock lock(mutex_);
  while (!queue_.empty() && !lane.given_up) {
    Job job = std::move(queue_.front());
    queue_.pop_front();
    if (job.limit != Duration::max()) {
      lane.deadline = scheduler_.now() + job.limit;
      lane.overrun = std::move(job.overrun);
      watch(lane.deadline);
    }
    lock.unlock();
    in_handler = true;
    job.run();
    in_handler = false;
    job = {};
    lock.lock();
    lane.deadline = SteadyTime::max();
    lane.overrun = nullptr;
  }
  lane.busy = false;
  if (lane.given_up) {
    lane.given_up = false;
    --hanging_;
    // Nobody waits for it, and the scheduler may be gone by now.
    return;
  }
  if (!idle_ || !is_idle()) return;
  Task idle = std::move(idle_);
  idle_ = nullptr;
  lock.unlock();
  scheduler_.post(std::move(idle));
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
  }
  for (Task& overrun : overruns)
    if (overrun) overrun();
}

bool HandlerPool::is_idle() {
  return std::ranges::all_of(lanes_, [](const auto& lane) { return !lane->busy || lane->given_up; });
}

void HandlerPool::close(Task idle) {
  std::deque<Job> dropped;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
    if (!is_idle()) {
      idle_ = std::move(idle);
      return;
    }
  }
  idle();
}

void HandlerPool::leave_behind() {
  MutexLock lock(mutex_);
  for (auto& lane : lanes_) {
    if (!lane->busy || lane->given_up) continue;
    lane->given_up = true;
    ++hanging_;
  }
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
      hangs = lane->given_up;
    }
    // Waiting for a thread that hangs could take for ever; its lane is left to the end of the process.
    if (hangs)
      (void)lane.release();
    else
      lane->executor.reset();  // Waits for its thread, which uses the rest of the lane until then.
  }
}

}  // namespace perdure::actor
