// A process that works on tasks, see task.h, and does what it is told on its standard input, one command a line. Each
// gets one answer: "ok ...", or "error CODE message". Lines that begin with '!' tell what happened meanwhile, if it was
// asked to:
//
//     !began ID     !ended ID     !cancelled ID
//
// PERDURE_SEED_BUG in its environment names one of the bugs of base/seeded_bug.h, to see the tests fail.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "child.h"
#include "perdure/store.h"
#include "seed_bug_by_name.h"
#include "task.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

using Words = std::istringstream;

class Worker {
 public:
  std::string run(const std::string& line) {
    Words words(line);
    std::string name;
    words >> name;
    if (name == "open") return open(words);
    if (name == "close") return close(words);
    if (name == "activity") return activity();
    return "error unknown command " + name;
  }

  void finish() {
    if (queue_) (void)queue_->close();
    queue_.reset();
    if (store_) store_->close();
  }

 private:
  /// open URL [ttl=MS] [renew=MS] [concurrency=N] [timeout=MS] [tell=1]: works on tasks from now on.
  std::string open(Words& words) {
    QueueOptions options;
    WorkOptions work;
    std::function<void(const std::string&)> tell;
    std::string url, option;
    for (words >> url; words >> option;) {
      long long number = std::stoll(option.substr(option.find('=') + 1));
      std::chrono::milliseconds time(number);
      if (option.starts_with("ttl=")) options.session.ttl = time;
      if (option.starts_with("renew=")) options.session.renew = time;
      if (option.starts_with("concurrency=")) work.concurrency = static_cast<unsigned>(number);
      if (option.starts_with("timeout=")) work.timeout = time;
      if (option.starts_with("tell=")) tell = [](const std::string& event) { put_line(STDOUT_FILENO, "!" + event); };
    }
    auto store = Store::open(url);
    if (!store) return "error " + to_string(store.error());
    store_.emplace(std::move(*store));
    auto queue = Queue::open(*store_, options);
    if (!queue) return "error " + to_string(queue.error());
    queue_.emplace(std::move(*queue));
    // A node of its own for what tasks emit: the one that runs them must not be kept by its own handler.
    auto emitter = Queue::open(*store_, {.dispatch = false});
    if (!emitter) return "error " + to_string(emitter.error());
    auto works =
        queue_->work(kTasks, [emitter = *emitter, tell](Job& job) { return run_task(emitter, job, tell); }, work);
    return works ? "ok working" : "error " + to_string(works.error());
  }

  /// close MS: with that grace.
  std::string close(Words& words) {
    long long grace_ms = 0;
    words >> grace_ms;
    auto closed = queue_->close(std::chrono::milliseconds(grace_ms));
    return closed ? "ok closed" : "error " + to_string(closed.error());
  }

  std::string activity() {
    QueueActivity now = queue_->activity();
    return "ok " + std::to_string(now.running) + " " + std::to_string(now.settling);
  }

  std::optional<Store> store_;
  std::optional<Queue> queue_;
};

}  // namespace
}  // namespace perdure::e2e

int main() {
  // Nothing of a test outlives it: a worker whose test was killed goes with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  perdure::e2e::seed_bug_by_name();
  perdure::e2e::Worker worker;
  for (std::string line; std::getline(std::cin, line);) perdure::e2e::put_line(STDOUT_FILENO, worker.run(line));
  worker.finish();
}
