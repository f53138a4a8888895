// A process that follows keys with a tick debouncer, and does what it is told on its standard input, one command a
// line. Each gets one answer: "ok ...", or "error CODE message". Lines that begin with '!' tell what happened
// meanwhile:
//
//     !run KEY TOKEN      !cancelled KEY      !fenced KEY ok|CODE      !ended KEY ok|CODE
//
// What is pending of a key is the counter pending/KEY. A run moves it to done/KEY, when it has lasted as long as it was
// told to, and adds its token to tokens/KEY.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "perdure/nats.h"
#include "perdure/tick.h"
#include "worker_loads.h"

namespace perdure::e2e {
namespace {

using Words = std::istringstream;
using Milliseconds = std::chrono::milliseconds;

void tell(const std::string& event) {
  put_line(STDOUT_FILENO, "!" + event);
}

template <class T>
std::string code(const Result<T>& result) {
  return result ? "ok" : std::string(result.error().name());
}

class Worker {
 public:
  std::string run(const std::string& line) {
    Words words(line);
    std::string name, key;
    words >> name;
    if (name == "open") return open(words);
    words >> key;
    if (name == "follow") return show(tick_->follow(key));
    if (name == "state") return "ok " + std::string(name_of(state(key)));
    if (name == "inspect") return inspect(key);
    if (name == "stop") return show(tick_->stop());
    return "error unknown command " + name;
  }
  void finish() {
    tick_.reset();
    leadership_.reset();
    if (store_) store_->close();
  }

 private:
  static std::string show(const Result<void>& result) { return result ? "ok" : "error " + to_string(result.error()); }

  /// open STORE store|NATS-URL MAX-AGE-MS WINDOW-MS RUN-MS [MISSING-CHECK-MS]
  std::string open(Words& words) {
    std::string url, elects;
    int max_age_ms = 0, window_ms = 0, run_ms = 0, missing_ms = 0;
    words >> url >> elects >> max_age_ms >> window_ms >> run_ms;
    TickOptions options{.window = Milliseconds(window_ms), .restart_max = Milliseconds(500)};
    if (words >> missing_ms) options.missing_check = Milliseconds(missing_ms);
    Duration max_age = Milliseconds(max_age_ms);
    run_takes_ = Milliseconds(run_ms);
    auto store = Store::open(url);
    if (!store) return "error " + to_string(store.error());
    store_.emplace(std::move(*store));
    auto leadership = elects == "store"
                          ? store_leadership(*store_, {.session = {.ttl = max_age, .renew = max_age / 4}})
                          : nats_leadership(*store_, {.url = elects, .bucket = "e2e", .max_age = max_age});
    if (!leadership) return "error " + to_string(leadership.error());
    leadership_ = std::move(*leadership);
    auto tick = Tick::open(*store_, leadership_, options,
                           {.pending = [this](const std::string& key) { return pending(key); },
                            .run = [this](TickRun& run) { return work(run); },
                            .ended = [](const TickEnd& end) { tell("ended " + end.key + " " + code(end.result)); }});
    if (!tick) return "error " + to_string(tick.error());
    tick_.emplace(std::move(*tick));
    return "ok " + leadership_->instance_id();
  }

  Result<Pending> pending(const std::string& key) {
    auto left = store_->read([&](Reader& reader) { return decode_counter(reader.get("pending/" + key)); });
    if (!left) return std::unexpected(left.error());
    return *left > 0 ? Pending::kWork : Pending::kNothing;
  }

  Result<void> work(TickRun& run) {
    std::string key = run.key(), token = run.token().to_string();
    tell("run " + key + " " + token);
    if (run.cancel_signal().wait(run_takes_)) tell("cancelled " + key);
    // Beside the end, so that the store has to refuse what the process itself would.
    auto written = store_->transact([&](Transaction& txn) {
      run.fence(txn);
      txn.set("middle/" + key, token);
    });
    tell("fenced " + key + " " + code(written));
    run.complete([key, token](Transaction& txn) -> Result<void> {
      txn.add("done/" + key, decode_counter(txn.get("pending/" + key)));
      txn.clear("pending/" + key);
      txn.set("tokens/" + key, txn.get("tokens/" + key).value_or("") + token + "\n");
      return {};
    });
    return {};
  }

  TickState state(const std::string& key) {
    auto info = tick_->info(key);
    return info ? info->state : TickState::kStopped;
  }

  std::string inspect(const std::string& key) {
    auto info = tick_->inspect(key);
    if (!info) return "error " + to_string(info.error());
    std::string text =
        "ok " + std::string(name_of(info->state)) + " restarted=" + std::to_string(info->restarted_count);
    if (!info->leader) return text + " nobody";
    return text + " owner=" + info->leader->owner + " status=" + std::string(name_of(info->leader->status)) +
           " revision=" + std::to_string(info->leader->revision);
  }

  std::optional<Store> store_;
  std::shared_ptr<Leadership> leadership_;
  std::optional<Tick> tick_;
  Duration run_takes_ = {};
};

}  // namespace
}  // namespace perdure::e2e

int main() {
  // Nothing of a test outlives it: a worker whose test was killed goes with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  perdure::e2e::Worker worker;
  for (std::string line; std::getline(std::cin, line);) perdure::e2e::put_line(STDOUT_FILENO, worker.run(line));
  worker.finish();
}
