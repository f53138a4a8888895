#include "debounce/tick_work.h"

#include <algorithm>

#include "debounce/tick_rows.h"
#include "runtime/guarded_handler.h"

namespace perdure {

const std::string& TickRun::key() const {
  return state_->key;
}

const Token& TickRun::token() const {
  return state_->token;
}

const CancelSignal& TickRun::cancel_signal() const {
  return state_->cancel.signal();
}

void TickRun::complete(std::function<Result<void>(Transaction&)> body) {
  state_->bodies.push_back(std::move(body));
}

void TickRun::fence(Transaction& txn) const {
  debounce::fence_run(txn, state_->row, state_->key, state_->token.stamp);
}

namespace debounce {
namespace {

constexpr unsigned kEagerThreads = 2, kSpareThreads = 64;

/// Ends that are still to be told: the last of them come just before a pool is closed, which drops what has not begun.
struct Reports {
  Mutex mutex;
  std::size_t left PERDURE_GUARDED_BY(mutex) = 0;
  std::vector<Task> waiting PERDURE_GUARDED_BY(mutex);

  void one_less() {
    std::vector<Task> tasks;
    {
      MutexLock lock(mutex);
      if (--left == 0) tasks.swap(waiting);
    }
    for (Task& task : tasks) task();
  }
  void when_none(Task task) {
    {
      MutexLock lock(mutex);
      if (left > 0) return waiting.push_back(std::move(task));
    }
    task();
  }
};

class PoolWork : public TickWork {
 public:
  PoolWork(Scheduler& scheduler, TickHandlers handlers, const TickOptions& options)
      : handlers_(std::make_shared<const TickHandlers>(std::move(handlers))),
        limit_(options.run_timeout),
        pool_(std::make_shared<HandlerPool>(
            scheduler, HandlerPool::Options{"perdure-tick", std::min(kEagerThreads, options.concurrency),
                                            options.concurrency, kSpareThreads})) {}

  void pending(const std::string& key, std::move_only_function<void(Result<Pending>)> done) override {
    auto answer = std::make_shared<std::move_only_function<void(Result<Pending>)>>(std::move(done));
    pool_->run({.run = [handlers = handlers_, key,
                        answer] { (*answer)(guarded_handler([&] { return handlers->pending(key); })); },
                .dropped = [answer] { (*answer)(fail(ErrorCode::kClosed, "the tick is closed")); }});
  }

  void run(std::shared_ptr<TickRunState> run, std::move_only_function<void(Result<void>)> done) override {
    auto answer = std::make_shared<std::move_only_function<void(Result<void>)>>(std::move(done));
    pool_->run({.run =
                    [handlers = handlers_, run, answer] {
                      TickRun shown = run->run();
                      (*answer)(guarded_handler([&] { return handlers->run(shown); }));
                    },
                // Who began it counts the time as well, and ends the run; this frees the place of the thread.
                .limit = limit_,
                .overrun = limit_ == Duration::max() ? Task() : [] {},
                .dropped = [answer] { (*answer)(fail(ErrorCode::kClosed, "the tick is closed")); }});
  }

  void ended(TickEnd end) override {
    if (!handlers_->ended) return;
    {
      MutexLock lock(reports_->mutex);
      ++reports_->left;
    }
    pool_->run({.run =
                    [handlers = handlers_, reports = reports_, end = std::move(end)] {
                      (void)guarded_handler([&]() -> Result<void> {
                        handlers->ended(end);
                        return {};
                      });
                      reports->one_less();
                    },
                .dropped = [reports = reports_] { reports->one_less(); }});
  }

  void close(Task idle) override {
    reports_->when_none([pool = pool_, idle = std::move(idle)]() mutable { pool->close(std::move(idle)); });
  }
  void leave_behind() override {
    pool_->close([] {});
    pool_->leave_behind();
  }
  void join() override { pool_->join(); }

 private:
  const std::shared_ptr<const TickHandlers> handlers_;
  const Duration limit_;
  const std::shared_ptr<HandlerPool> pool_;
  const std::shared_ptr<Reports> reports_ = std::make_shared<Reports>();
};

}  // namespace

std::unique_ptr<TickWork> pool_work(Scheduler& scheduler, TickHandlers handlers, const TickOptions& options) {
  return std::make_unique<PoolWork>(scheduler, std::move(handlers), options);
}

}  // namespace debounce
}  // namespace perdure
