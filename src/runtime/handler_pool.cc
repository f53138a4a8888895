#include "runtime/handler_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace perdure {
namespace {

/// A thread that takes so many jobs within kPatience runs quick ones: more of its kind would only be in its way.
constexpr std::size_t kQuickJobs = 16;
/// Threads are begun in steps of so many: each costs as much as many quick jobs, which want the lock meanwhile.
constexpr std::size_t kBegunAtOnce = 4;

thread_local bool in_handler = false;
/// The lane that this thread is; a thread is never more than one.
thread_local const void* this_lane = nullptr;

void run_all(std::vector<Task>& tasks) {
  for (Task& task : tasks)
    if (task) task();
}

}  // namespace

HandlerPool::HandlerPool(Scheduler& scheduler, Options options)
    : scheduler_(scheduler),
      name_(std::move(options.name)),
      eager_(options.eager),
      spare_(options.spare),
      most_(options.most) {}

HandlerPool::~HandlerPool() {
  join();
}

bool HandlerPool::runs_here() {
  return in_handler;
}

bool HandlerPool::idle() {
  MutexLock lock(mutex_);
  return is_idle();
}

std::size_t HandlerPool::hanging() {
  MutexLock lock(mutex_);
  return hanging_;
}

void HandlerPool::run(Job job) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      queue_.push_back({std::move(job), scheduler_.now()});
      if (Lane* lane = free_lane(eager_))
        begin(*lane);
      else
        watch_queue(kPatience);
      return;
    }
  }
  if (job.dropped) job.dropped();
}

void HandlerPool::run_many(std::vector<Job> jobs) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      SteadyTime now = scheduler_.now();
      for (Job& job : jobs) queue_.push_back({std::move(job), now});
      // As single jobs if there are but a few: they may block, and should not wait for each other.
      bool few = jobs.size() <= eager_;
      while (queue_.size() > coming_ && (few || busy_ < eager_)) {
        Lane* lane = free_lane(eager_);
        if (!lane) break;
        begin(*lane);
      }
      if (queue_.size() > coming_) watch_queue(kPatience);
      return;
    }
  }
  for (Job& job : jobs)
    if (job.dropped) job.dropped();
}

void HandlerPool::set_most(unsigned most) {
  MutexLock lock(mutex_);
  most_ = most;
  if (!closed_) begin_eagerly();
}

// Threads.

std::size_t HandlerPool::busy_max() {
  // A thread that hangs still counts, but up to `spare` others may stand in for such.
  return most_ + std::min(hanging_, spare_);
}

HandlerPool::Lane* HandlerPool::free_lane(std::size_t threads) {
  if (busy_ >= busy_max()) return nullptr;
  if (free_.empty() && (lanes_.size() >= threads + std::min(hanging_, spare_) || !add_lane())) return nullptr;
  Lane* lane = lanes_[free_.top()].get();
  free_.pop();
  return lane;
}

bool HandlerPool::add_lane() {
  try {
    auto executor = scheduler_.lane(name_);
    free_.push(lanes_.size());
    lanes_.push_back(std::make_unique<Lane>(lanes_.size(), std::move(executor)));
    return true;
  } catch (const std::system_error&) {
    // The system has no more threads for this process. Those that are there will do.
    if (lanes_.empty()) throw;
    return false;
  }
}

void HandlerPool::begin(Lane& lane) {
  lane.busy = true;
  ++busy_;
  ++coming_;
  lane.executor->post([self = shared_from_this(), &lane] {
    this_lane = &lane;
    self->work(lane);
  });
}

void HandlerPool::begin_eagerly() {
  while (queue_.size() > coming_) {
    Lane* lane = free_lane(eager_);
    if (!lane) return watch_queue(kPatience);
    begin(*lane);
  }
}

void HandlerPool::work(Lane& lane) {
  MutexLock lock(mutex_);
  --coming_;
  while (!queue_.empty() && !lane.given_up && busy_ <= busy_max()) {
    Job job;
    take_job(lane, job);
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
  --busy_;
  free_.push(lane.index);
  if (lane.given_up) {
    // Nobody waits for it, and the scheduler may be gone by now.
    lane.given_up = false;
    --hanging_;
    if (!queue_.empty() && !closed_ && busy_ < busy_max()) begin(*free_lane(0));
    return;
  }
  changed_.notify_all();
  auto idle = take_idle();
  lock.unlock();
  run_all(idle);
}

void HandlerPool::take_job(Lane& lane, Job& job) {
  job = std::move(queue_.front().job);
  queue_.pop_front();
  ++taken_;
  SteadyTime now = scheduler_.now();
  if (job.limit >= SteadyTime::max() - now) return;
  lane.deadline = now + job.limit;
  lane.overrun = std::move(job.overrun);
  watch(lane.deadline);
}

// Growth.

void HandlerPool::watch_queue(Duration patience) {
  bool must_wait = queue_.size() > coming_;
  bool could_grow = free_.empty() && busy_ < busy_max();
  if (closed_ || queue_watched_ || !must_wait || !could_grow) return;
  queue_watched_ = true;
  taken_ = 0;
  scheduler_.at(scheduler_.now() + patience, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->check_queue();
  });
}

void HandlerPool::check_queue() {
  MutexLock lock(mutex_);
  queue_watched_ = false;
  if (closed_) return;
  bool quick = taken_ > kQuickJobs * busy_;
  auto waited = static_cast<std::size_t>(
      std::ranges::upper_bound(queue_, scheduler_.now() - kPatience, {}, &Queued::since) - queue_.begin());
  for (std::size_t begun = 0; !quick && coming_ < waited; ++begun) {
    if (begun == kBegunAtOnce) return watch_queue(Duration::zero());
    Lane* lane = free_lane(most_);
    if (!lane) break;
    begin(*lane);
  }
  watch_queue(kPatience);
}

// Handlers that hang.

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
    if (!closed_) begin_eagerly();
    for (Task& idle : take_idle()) overruns.push_back(std::move(idle));
    changed_.notify_all();
  }
  run_all(overruns);
}

// The end.

bool HandlerPool::is_idle() {
  return busy_ == hanging_;
}

std::vector<Task> HandlerPool::take_idle() {
  return is_idle() ? std::exchange(idle_, {}) : std::vector<Task>();
}

void HandlerPool::close(Task idle) {
  std::deque<Queued> dropped;
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
    idle_.push_back(std::move(idle));
    tasks = take_idle();
  }
  for (Queued& queued : dropped)
    if (queued.job.dropped) queued.job.dropped();
  run_all(tasks);
}

void HandlerPool::leave_behind() {
  MutexLock lock(mutex_);
  for (auto& lane : lanes_) {
    if (!lane->busy || lane->given_up) continue;
    lane->deadline = SteadyTime::max();
    lane->given_up = true;
    ++hanging_;
  }
  changed_.notify_all();
}

void HandlerPool::wait() {
  MutexLock lock(mutex_);
  while (!is_idle()) changed_.wait(lock);
}

void HandlerPool::keep_for_ever(std::unique_ptr<Lane> lane) {
  // Where leak checkers find it.
  static Mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<Lane>>;
  MutexLock lock(mutex);
  kept.push_back(std::move(lane));
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
      keep_for_ever(std::move(lane));
    else
      lane->executor.reset();  // Waits for its thread, which uses the rest of the lane until then.
  }
}

}  // namespace perdure
