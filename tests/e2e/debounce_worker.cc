// A process that touches keys of a debouncer as fast as it may, and runs its windows; both leave rows by which
// sim/workloads/debounce_check.h can tell what became of every touch. It does what it is told on its standard input,
// one command a line, and answers each with "ok ..." or "error ...".
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "child.h"
#include "debounce_check.h"
#include "perdure/debounce.h"
#include "seed_bug_by_name.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

const std::string kName = "e2e";
constexpr int kUnderWay = 32;

class Worker {
 public:
  std::string run(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "open") return open(words);
    if (name == "rest") return rest();
    return "error unknown command " + name;
  }

  void finish() {
    rest();
    if (queue_) (void)queue_->close();
    queue_.reset();
    debouncers_.reset();
    if (store_) (void)store_->close();
  }

 private:
  /// open URL LIFE KEYS: touches any of so many keys from now on, with numbers that no other life has.
  std::string open(std::istringstream& words) {
    std::string url;
    words >> url >> life_ >> keys_;
    random_.seed(static_cast<unsigned>(life_));
    auto store = Store::open(url);
    if (!store) return "error " + to_string(store.error());
    store_.emplace(std::move(*store));
    auto debouncers = Debouncers::open(*store_);
    auto queue =
        Queue::open(*store_, {.session = {.ttl = std::chrono::seconds(2), .renew = std::chrono::milliseconds(500)}});
    if (!debouncers || !queue) return "error " + to_string(debouncers ? queue.error() : debouncers.error());
    debouncers_.emplace(std::move(*debouncers));
    queue_.emplace(std::move(*queue));
    auto works = debouncers_->handle(*queue_, kName, [](DebounceRun& run) { handle(run); }, {.concurrency = 16});
    if (!works) return "error " + to_string(works.error());
    touching_ = true;
    for (int i = 0; i < kUnderWay; ++i) touch();
    return "ok touching";
  }

  static void handle(DebounceRun& run) {
    std::vector<std::int64_t> numbers;
    for (const Value& payload : run.payloads())
      if (payload.is_integer()) numbers.push_back(*payload.as_integer());
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    run.complete(
        [key = run.key(), token = run.token(), count = run.count(), numbers](Transaction& txn) -> Result<void> {
          sim::debouncing::write_run(txn, key, token, count, numbers);
          return {};
        });
  }

  void touch() {
    std::string key;
    std::int64_t number = 0;
    {
      std::lock_guard lock(mutex_);
      if (!touching_) return;
      ++under_way_;
      key = "k" + std::to_string(random_() % keys_);
      number = (life_ << 32) + ++last_;
    }
    store_->transact_async(
        [this, key, number](Transaction& txn) {
          debouncers_->touch(txn, kName, key, number);
          sim::debouncing::write_touch(txn, key, number);
          txn.add("touched", 1);
        },
        [this](Result<void>) {
          {
            std::lock_guard lock(mutex_);
            --under_way_;
          }
          touch();
        });
  }

  /// Touches nothing any more; runs go on.
  std::string rest() {
    {
      std::lock_guard lock(mutex_);
      touching_ = false;
    }
    for (;; usleep(1000)) {
      std::lock_guard lock(mutex_);
      if (under_way_ == 0) return "ok resting";
    }
  }

  std::optional<Store> store_;
  std::optional<Debouncers> debouncers_;
  std::optional<Queue> queue_;
  std::int64_t life_ = 0;
  unsigned keys_ = 1;
  std::mutex mutex_;
  std::mt19937 random_;
  std::int64_t last_ = 0;
  int under_way_ = 0;
  bool touching_ = false;
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
