// A process that serves ledgers, see ledger.h, and does what it is told on its standard input, one command a line. Each
// gets one answer: "ok ...", or "error CODE message". Lines that begin with '!' tell what happened meanwhile:
//
//     !locked ID     !worked ID     !acked LEDGER ID     !refused LEDGER ID error CODE message
//
// PERDURE_SEED_BUG in its environment names one of the bugs of base/seeded_bug.h, to see the tests fail.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <sstream>

#include "child.h"
#include "ledger.h"
#include "perdure/store.h"
#include "seed_bug_by_name.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

using Words = std::istringstream;

void tell(const std::string& event) {
  put_line(STDOUT_FILENO, "!" + event);
}

class Worker {
 public:
  std::string run(const std::string& line) {
    Words words(line);
    std::string name;
    words >> name;
    if (name == "open") return open(words);
    if (name == "call") return call(words);
    if (name == "load") return load(words);
    if (name == "rest") return rest();
    return "error unknown command " + name;
  }

  void finish() {
    stopping_ = true;
    if (actors_) (void)actors_->close();
    actors_.reset();
    if (store_) store_->close();
  }

 private:
  /// open URL [ttl=MS] [renew=MS] [tell=1]: serves ledgers from now on; tells of work under locks if asked to.
  std::string open(Words& words) {
    ActorsOptions options;
    Ledger ledger;
    std::string url, option;
    for (words >> url; words >> option;) {
      std::chrono::milliseconds value(std::stoll(option.substr(option.find('=') + 1)));
      if (option.starts_with("ttl=")) options.session.ttl = value;
      if (option.starts_with("renew=")) options.session.renew = value;
      if (option.starts_with("tell=")) ledger.tell = tell;
    }
    auto store = Store::open(url);
    if (!store) return "error " + to_string(store.error());
    store_.emplace(std::move(*store));
    auto actors = Actors::open(*store_, options);
    if (!actors) return "error " + to_string(actors.error());
    actors_.emplace(std::move(*actors));
    auto serves = actors_->serve(std::move(ledger));
    return serves ? "ok serving" : "error " + to_string(serves.error());
  }

  /// call LEDGER ID: records it, and answers with how often it has been.
  std::string call(Words& words) {
    std::string ledger, id;
    words >> ledger >> id;
    auto count = actors_->of<Ledger>(ledger).call(Record{id});
    return count ? "ok " + std::to_string(*count) : "error " + to_string(count.error());
  }

  /// load NAME LEDGERS CHAINS: records NAME-0, NAME-1 ... from now on, so many at once, one in five under the lock, and
  /// tells of each.
  std::string load(Words& words) {
    int chains = 0;
    words >> name_ >> ledgers_ >> chains;
    chains_ += chains;
    for (int i = 0; i < chains; ++i) next();
    return "ok";
  }

  /// rest: no more of that. Those under way are answered first: nothing comes from here afterwards.
  std::string rest() {
    stopping_ = true;
    for (int left; (left = chains_) > 0;) chains_.wait(left);
    return "ok";
  }

  void next() {
    if (stopping_) {
      --chains_;
      chains_.notify_all();
      return;
    }
    std::uint64_t number = ++last_;
    std::string ledger = ledger_name(number % ledgers_), id = name_ + "-" + std::to_string(number);
    auto answered = [this, ledger, id](const Result<std::int64_t>& count) {
      std::string what = " " + ledger + " " + id;
      tell(count ? "acked" + what : "refused" + what + " error " + to_string(count.error()));
      next();
    };
    auto actor = actors_->of<Ledger>(ledger);
    if (number % 5 == 0)
      actor.call_async(RecordLocked{id, 5}, {}, std::move(answered));
    else
      actor.call_async(Record{id}, {}, std::move(answered));
  }

  std::atomic<bool> stopping_ = false;
  /// Of calls, one after another.
  std::atomic<int> chains_ = 0;
  std::optional<Store> store_;
  std::optional<Actors> actors_;
  std::string name_;
  std::uint64_t ledgers_ = 1;
  std::atomic<std::uint64_t> last_ = 0;
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
