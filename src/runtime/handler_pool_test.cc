#include "runtime/handler_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <system_error>

#include "runtime/latch.h"
#include "runtime/thread_pool.h"
#include "runtime/timer_queue.h"

namespace perdure {
namespace {

using std::chrono::hours;

/// Real threads, which it counts, and a clock that stands still unless it is moved.
class HandDriven final : public Scheduler {
 public:
  void post(Task task) override { at(SteadyTime::min(), std::move(task)); }
  TimerId at(SteadyTime when, Task task) override {
    MutexLock lock(mutex_);
    ++timers_set_;
    return timers_.add(when, std::move(task));
  }
  bool cancel(TimerId timer) override {
    MutexLock lock(mutex_);
    return timers_.remove(timer).has_value();
  }
  SteadyTime now() override {
    MutexLock lock(mutex_);
    return now_;
  }
  WallTime wall_now() override { return {}; }
  std::uint64_t random() override { return 0; }
  bool runs_here() const override { return false; }
  std::unique_ptr<Executor> lane(std::string name) override {
    MutexLock lock(mutex_);
    if (threads_ == threads_max_) throw std::system_error(EAGAIN, std::generic_category());
    ++threads_;
    return std::make_unique<ThreadPool>(std::move(name), 1);
  }

  /// Runs what is due by then, and what that makes due.
  void advance(Duration by) {
    SteadyTime until = now() + by;
    for (;;) {
      std::deque<Task> due;
      {
        MutexLock lock(mutex_);
        now_ = until;
        timers_.take_due(now_, due);
      }
      if (due.empty()) return;
      for (Task& task : due) task();
    }
  }
  void refuse_threads_beyond(std::size_t most) {
    MutexLock lock(mutex_);
    threads_max_ = most;
  }
  std::size_t threads() {
    MutexLock lock(mutex_);
    return threads_;
  }
  std::size_t timers_set() {
    MutexLock lock(mutex_);
    return timers_set_;
  }
  bool timer_is_set() {
    MutexLock lock(mutex_);
    return timers_.next().has_value();
  }

 private:
  Mutex mutex_;
  TimerQueue timers_ PERDURE_GUARDED_BY(mutex_);
  SteadyTime now_ PERDURE_GUARDED_BY(mutex_) = SteadyTime(hours(1));
  std::size_t threads_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t threads_max_ PERDURE_GUARDED_BY(mutex_) = SIZE_MAX;
  std::size_t timers_set_ PERDURE_GUARDED_BY(mutex_) = 0;
};

/// Handlers that stay until they are let go.
class Blocked {
 public:
  HandlerPool::Job job() {
    return {.run = [this] {
      {
        MutexLock lock(mutex_);
        most_ = std::max(most_, ++inside_);
        changed_.notify_all();
      }
      go_.wait();
      MutexLock lock(mutex_);
      --inside_;
      ++done_;
      changed_.notify_all();
    }};
  }
  void wait_inside(std::size_t count) {
    MutexLock lock(mutex_);
    while (inside_ < count) changed_.wait(lock);
  }
  void wait_done(std::size_t count) {
    MutexLock lock(mutex_);
    while (done_ < count) changed_.wait(lock);
  }
  void let_go() { go_.set(); }
  std::size_t most() {
    MutexLock lock(mutex_);
    return most_;
  }

 private:
  Latch go_;
  Mutex mutex_;
  CondVar changed_;
  std::size_t inside_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t most_ PERDURE_GUARDED_BY(mutex_) = 0;
  std::size_t done_ PERDURE_GUARDED_BY(mutex_) = 0;
};

void run_many(HandlerPool& pool, Blocked& handlers, int count) {
  for (int i = 0; i < count; ++i) pool.run(handlers.job());
}

/// A pool that ends before what its handlers use.
class Pool {
 public:
  Pool(Scheduler& scheduler, unsigned eager, unsigned most, unsigned spare = 0)
      : pool_(std::make_shared<HandlerPool>(
            scheduler, HandlerPool::Options{.name = "test", .eager = eager, .most = most, .spare = spare})) {}
  ~Pool() {
    pool_->close([] {});
    pool_->wait();
    pool_->join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  HandlerPool* operator->() { return pool_.get(); }
  HandlerPool& operator*() { return *pool_; }

 private:
  const std::shared_ptr<HandlerPool> pool_;
};

TEST(HandlerPool, AThreadMoreIsBegunOnlyForAJobThatHasWaited) {
  HandDriven scheduler;
  Blocked handlers;
  Pool pool(scheduler, 2, 16);
  run_many(*pool, handlers, 3);
  scheduler.advance(HandlerPool::kPatience / 2);
  run_many(*pool, handlers, 1);
  handlers.wait_inside(2);
  EXPECT_EQ(scheduler.threads(), 2u);
  scheduler.advance(HandlerPool::kPatience / 2);
  handlers.wait_inside(3);
  EXPECT_EQ(scheduler.threads(), 3u) << "the last has not waited for that long";
  scheduler.advance(HandlerPool::kPatience);
  handlers.wait_inside(4);
  EXPECT_EQ(scheduler.threads(), 4u);
  EXPECT_FALSE(scheduler.timer_is_set()) << "nothing waits";
  handlers.let_go();
}

TEST(HandlerPool, BlockedJobsGetAThreadEachAtOnceWhenPatienceIsOver) {
  HandDriven scheduler;
  Blocked handlers;
  Pool pool(scheduler, 4, 1000);
  run_many(*pool, handlers, 200);
  handlers.wait_inside(4);
  EXPECT_EQ(scheduler.timers_set(), 1u) << "not one for each job";
  scheduler.advance(HandlerPool::kPatience);
  handlers.wait_inside(200);
  EXPECT_EQ(scheduler.threads(), 200u);
  handlers.let_go();
}

TEST(HandlerPool, BlockedJobsGetAThreadEachOnRealTime) {
  ThreadPool scheduler("test", 2);
  Blocked handlers;
  Pool pool(scheduler, 2, 200);
  run_many(*pool, handlers, 200);
  handlers.wait_inside(200);
  handlers.let_go();
  pool->wait();
}

TEST(HandlerPool, ALongQueueOfQuickJobsIsLeftToTheEagerThreads) {
  HandDriven scheduler;
  Blocked first, last;
  Pool pool(scheduler, 2, 1024);
  run_many(*pool, first, 2);
  for (int i = 0; i < 1024; ++i) pool->run({.run = [] {}});
  run_many(*pool, last, 4);
  first.let_go();
  last.wait_inside(2);
  scheduler.advance(HandlerPool::kPatience);
  EXPECT_EQ(scheduler.threads(), 2u) << "a thousand jobs were taken meanwhile";
  scheduler.advance(HandlerPool::kPatience);
  last.wait_inside(4);
  EXPECT_EQ(scheduler.threads(), 4u) << "now none was";
  last.let_go();
}

TEST(HandlerPool, ThreadsThatWereBegunAreUsedAgainAtOnce) {
  HandDriven scheduler;
  Blocked before, after;
  Pool pool(scheduler, 1, 8);
  run_many(*pool, before, 8);
  scheduler.advance(HandlerPool::kPatience);
  before.wait_inside(8);
  before.let_go();
  pool->wait();
  run_many(*pool, after, 8);
  after.wait_inside(8);
  EXPECT_EQ(scheduler.threads(), 8u);
  after.let_go();
}

TEST(HandlerPool, NoMoreThanMostRunAtOnceAlsoWhenThatChanges) {
  HandDriven scheduler;
  Blocked handlers, later;
  Pool pool(scheduler, 2, 4);
  run_many(*pool, handlers, 9);
  scheduler.advance(HandlerPool::kPatience);
  handlers.wait_inside(4);
  EXPECT_FALSE(scheduler.timer_is_set()) << "there may be no more";
  pool->set_most(6);
  scheduler.advance(HandlerPool::kPatience);
  handlers.wait_inside(6);
  EXPECT_EQ(scheduler.threads(), 6u);
  EXPECT_EQ(handlers.most(), 6u);

  pool->set_most(1);
  run_many(*pool, later, 2);
  handlers.let_go();
  handlers.wait_done(9);
  later.wait_inside(1);
  scheduler.advance(HandlerPool::kPatience);
  later.let_go();
  later.wait_done(2);
  EXPECT_EQ(later.most(), 1u);
}

TEST(HandlerPool, NoneBeginsWhileMostIsNothing) {
  HandDriven scheduler;
  Blocked handlers;
  Pool pool(scheduler, 2, 0);
  run_many(*pool, handlers, 3);
  EXPECT_EQ(scheduler.threads(), 0u);
  pool->set_most(2);
  handlers.wait_inside(2);
  handlers.let_go();
  handlers.wait_done(3);
}

TEST(HandlerPool, ThreadsThatAreAllEagerNeedNoTimer) {
  HandDriven scheduler;
  Blocked handlers;
  Pool pool(scheduler, 3, 3);
  run_many(*pool, handlers, 10);
  handlers.wait_inside(3);
  EXPECT_EQ(scheduler.timers_set(), 0u);
  handlers.let_go();
  handlers.wait_done(10);
}

TEST(HandlerPool, ASystemWithoutMoreThreadsLeavesTheWorkToThoseThatAreThere) {
  HandDriven scheduler;
  scheduler.refuse_threads_beyond(2);
  Blocked handlers;
  Pool pool(scheduler, 3, 8);
  run_many(*pool, handlers, 5);
  scheduler.advance(HandlerPool::kPatience);
  handlers.wait_inside(2);
  EXPECT_TRUE(scheduler.timer_is_set()) << "it tries again";
  scheduler.refuse_threads_beyond(3);
  scheduler.advance(HandlerPool::kPatience);
  handlers.wait_inside(3);
  handlers.let_go();
  handlers.wait_done(5);
}

TEST(HandlerPool, AThreadStandsInForOneThatHangs) {
  HandDriven scheduler;
  Blocked hanging, handlers;
  Latch given_up;
  Pool pool(scheduler, 1, 1, 1);
  auto job = hanging.job();
  job.limit = hours(1);
  job.overrun = [&] { given_up.set(); };
  pool->run(std::move(job));
  hanging.wait_inside(1);
  run_many(*pool, handlers, 2);
  scheduler.advance(hours(1));
  given_up.wait();
  handlers.wait_inside(1);
  EXPECT_EQ(pool->hanging(), 1u);
  hanging.let_go();
  hanging.wait_done(1);
  handlers.let_go();
  handlers.wait_done(2);
  EXPECT_EQ(handlers.most(), 1u);
}

TEST(HandlerPool, ClosingDropsWhatHasNotBegunAndTellsWhenTheRestHasEnded) {
  HandDriven scheduler;
  Blocked handlers;
  Latch dropped, idle;
  Pool pool(scheduler, 1, 8);
  pool->run(handlers.job());
  handlers.wait_inside(1);
  pool->run({.run = [] { FAIL(); }, .dropped = [&] { dropped.set(); }});
  pool->close([&] { idle.set(); });
  EXPECT_TRUE(dropped.is_set());
  EXPECT_FALSE(idle.is_set());
  scheduler.advance(HandlerPool::kPatience);
  handlers.let_go();
  idle.wait();
  EXPECT_EQ(scheduler.threads(), 1u);
}

}  // namespace
}  // namespace perdure
