// A process with a store and a session, which does what it is told on its standard input, one command a line. Each gets
// one answer: "ok ...", or "error CODE message". Lines that begin with '!' tell what happened meanwhile:
//
//     !acquired NAME TOKEN NANOSECONDS     !refused NAME error CODE message
//     !cancelled NAME                      !lost CODE message
//
// PERDURE_SEED_BUG in its environment names one of the bugs of base/seeded_bug.h, to see the tests fail.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <condition_variable>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

#include "child.h"
#include "lease_load.h"
#include "perdure/session.h"
#include "perdure/store.h"
#include "seed_bug_by_name.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

using Words = std::istringstream;

std::string show(const Error& error) {
  return "error " + to_string(error);
}

template <class T>
std::string show(const Result<T>& result) {
  return result ? "ok" : show(result.error());
}

void tell(const std::string& event) {
  put_line(STDOUT_FILENO, "!" + event);
}

class Worker {
 public:
  std::string run(const std::string& line) {
    Words words(line);
    std::string name;
    words >> name;
    auto found = commands_.find(name);
    if (found == commands_.end()) return "error unknown command " + name;
    return found->second(words);
  }

  void finish() {
    if (stop_load_) stop_load_();
    session_.reset();
    if (store_) store_->close();
  }

 private:
  /// open URL [ttl=MS] [renew=MS]: a store with a session; answers with the session's id.
  std::string open(Words& words) {
    SessionOptions options;
    options.on_lost = [](const Error& why) { tell("lost " + to_string(why)); };
    std::string url, option;
    for (words >> url; words >> option;) {
      std::chrono::milliseconds value(std::stoll(option.substr(option.find('=') + 1)));
      if (option.starts_with("ttl=")) options.ttl = value;
      if (option.starts_with("renew=")) options.renew = value;
    }
    auto store = Store::open(url);
    if (!store) return show(store.error());
    store_.emplace(std::move(*store));
    auto session = Session::open(*store_, options);
    if (!session) return show(session.error());
    session_.emplace(std::move(*session));
    options_ = options;
    return "ok " + session_->id().to_string();
  }

  /// acquire NAME TIMEOUT-MS: answers at once; what came of it is told.
  std::string acquire(Words& words) {
    std::string name;
    int timeout_ms = 0;
    words >> name >> timeout_ms;
    session_->acquire_async(name, std::chrono::milliseconds(timeout_ms), [this, name](Result<Lease> lease) {
      std::int64_t now = steady_ns();
      if (!lease) return tell("refused " + name + " " + show(lease.error()));
      // Kept before it is told of, for the next command may name it.
      keep(*lease);
      tell("acquired " + name + " " + lease->token().to_string() + " " + std::to_string(now));
    });
    return "ok";
  }

  /// acquire-many PREFIX COUNT TIMEOUT-MS: PREFIX0, PREFIX1 ...; answers when all were answered, with the moment.
  std::string acquire_many(Words& words) {
    std::string prefix;
    int count = 0, timeout_ms = 0;
    words >> prefix >> count >> timeout_ms;
    std::mutex mutex;
    std::condition_variable changed;
    int left = count;
    std::string problem;
    for (int i = 0; i < count; ++i)
      session_->acquire_async(prefix + std::to_string(i), std::chrono::milliseconds(timeout_ms),
                              [&](Result<Lease> lease) {
                                if (lease) keep(*lease);
                                std::lock_guard lock(mutex);
                                if (!lease) problem = show(lease.error());
                                if (--left == 0) changed.notify_one();
                              });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return left == 0; });
    return problem.empty() ? "ok " + std::to_string(steady_ns()) : problem;
  }

  std::string release(Words& words) {
    auto lease = named(words);
    return lease ? show(lease->release()) : "error no such lease";
  }

  std::string held(Words& words) {
    auto lease = named(words);
    return lease && lease->held() ? "ok yes" : "ok no";
  }

  std::string alive(Words&) { return session_->alive() ? "ok yes" : "ok no"; }

  /// write NAME KEY VALUE: fenced by the lease.
  std::string write(Words& words) {
    auto lease = named(words);
    if (!lease) return "error no such lease";
    return write_with(words, [&](Transaction& txn) { lease->fence(txn); });
  }

  /// write-by-token NAME KEY VALUE: fenced by its token, so that the store has to refuse what the lease itself would.
  std::string write_by_token(Words& words) {
    auto lease = named(words);
    if (!lease) return "error no such lease";
    return write_with(words, [&](Transaction& txn) { fence(txn, lease->name(), lease->token()); });
  }

  /// churn PROCESS PREFIX LEASES CHAINS: takes, writes under and releases leases; see lease_load.h.
  std::string churn(Words& words) {
    LeaseLoad load{.store = *store_, .options = options_, .process = 0, .prefix = "", .leases = 0, .chains = 0};
    words >> load.process >> load.prefix >> load.leases >> load.chains;
    session_.reset();
    stop_load_ = start_lease_load(load);
    return "ok";
  }

  /// wall: seconds on the wall clock, as this process sees it.
  static std::string wall(Words&) { return "ok " + std::to_string(std::time(nullptr)); }

  /// vanish: ends the process without a word to anybody.
  [[noreturn]] static std::string vanish(Words&) { _exit(0); }

  std::string write_with(Words& words, const std::function<void(Transaction&)>& check) {
    std::string key, value;
    words >> key >> value;
    return show(store_->transact([&](Transaction& txn) {
      check(txn);
      txn.set(key, value);
    }));
  }

  void keep(const Lease& lease) {
    lease.cancel_signal().then([name = lease.name()] { tell("cancelled " + name); });
    std::lock_guard lock(mutex_);
    leases_.insert_or_assign(lease.name(), lease);
  }

  std::optional<Lease> named(Words& words) {
    std::string name;
    words >> name;
    std::lock_guard lock(mutex_);
    auto found = leases_.find(name);
    if (found == leases_.end()) return std::nullopt;
    return found->second;
  }

  using Command = std::function<std::string(Words&)>;
  Command own(std::string (Worker::*method)(Words&)) {
    return [this, method](Words& words) { return (this->*method)(words); };
  }

  std::optional<Store> store_;
  std::optional<Session> session_;
  SessionOptions options_;
  std::function<void()> stop_load_;
  std::mutex mutex_;
  std::map<std::string, Lease> leases_;
  const std::map<std::string, Command> commands_ = {
      {"open", own(&Worker::open)},
      {"acquire", own(&Worker::acquire)},
      {"acquire-many", own(&Worker::acquire_many)},
      {"release", own(&Worker::release)},
      {"held", own(&Worker::held)},
      {"alive", own(&Worker::alive)},
      {"write", own(&Worker::write)},
      {"write-by-token", own(&Worker::write_by_token)},
      {"churn", own(&Worker::churn)},
      {"wall", &Worker::wall},
      {"vanish", &Worker::vanish},
  };
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
