// A process with a store, which does what it is told on its standard input, one command a line. Each gets one answer:
// "ok ...", or "error CODE message". Lines that begin with '!' tell what happened meanwhile.
#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "child.h"
#include "faults.h"
#include "log_check.h"
#include "perdure/fatal.h"
#include "perdure/store.h"
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

void tell_record(const LogRecord& record) {
  std::string line = "log " + std::string(name_of(record.level)) + " " + std::string(record.component) + ": " +
                     std::string(record.message);
  for (const LogField& field : record.fields) line += " " + std::string(field.name) + "=" + std::string(field.value);
  tell(line);
}

/// A host's own handler: the library prints nothing.
void tell_abort(int) {
  const char* why = abort_message();
  (void)!write(STDOUT_FILENO, "!abort ", 7);
  (void)!write(STDOUT_FILENO, why, std::strlen(why));
  (void)!write(STDOUT_FILENO, "\n", 1);
}

class Worker {
 public:
  /// The answer to one command.
  std::string run(const std::string& line) {
    Words words(line);
    std::string name;
    words >> name;
    auto found = commands_.find(name);
    if (found == commands_.end()) return "error unknown command " + name;
    if (!store_ && !kWithoutStore.contains(name)) return "error no store is open";
    return found->second(words);
  }

  void finish() {
    if (stop_load_) stop_load_();
    if (store_) (void)store_->close();
  }

 private:
  /// open URL [fatal=abort] [log] [map=BYTES] [reserve=BYTES]
  std::string open(Words& words) {
    StoreOptions options;
    options.on_fatal = [](const Error& error) { tell("fatal " + to_string(error)); };
    options.when_failed = WhenFailed::kRefuseCalls;
    std::string url, option;
    for (words >> url; words >> option;) {
      std::string value = option.substr(option.find('=') + 1);
      if (option.starts_with("fatal=abort")) options.when_failed = WhenFailed::kAbort;
      if (option == "log") options.log = tell_record;
      if (option.starts_with("map=")) options.map_bytes = std::stoull(value);
      if (option.starts_with("reserve=")) options.reserve_bytes = std::stoull(value);
    }
    auto opened = Store::open(url, options);
    if (!opened) return show(opened.error());
    store_.emplace(std::move(*opened));
    return "ok";
  }

  /// set KEY VALUE [TIMEOUT-MS]: answers with the moment of the acknowledgement.
  std::string set(Words& words) {
    std::string key, value;
    int timeout_ms = 5000;
    words >> key >> value >> timeout_ms;
    auto done = store_->transact([&](Transaction& txn) { txn.set(key, value); },
                                 {.timeout = std::chrono::milliseconds(timeout_ms)});
    return done ? "ok " + std::to_string(steady_ns()) : show(done.error());
  }

  /// fill PREFIX COUNT BYTES: as many rows, ten in a transaction.
  std::string fill(Words& words) {
    std::string prefix;
    std::size_t count = 0, bytes = 0;
    words >> prefix >> count >> bytes;
    for (std::size_t first = 0; first < count; first += 10) {
      auto done = store_->transact([&](Transaction& txn) {
        for (std::size_t i = first; i < std::min(first + 10, count); ++i)
          txn.set(prefix + std::to_string(i), Bytes(bytes, 'x'));
      });
      if (!done) return show(done.error());
    }
    return "ok";
  }

  /// get KEY [TIMEOUT-MS]
  std::string get(Words& words) {
    std::string key;
    int timeout_ms = 5000;
    words >> key >> timeout_ms;
    auto value = store_->read([&](Reader& reader) { return reader.get(key); },
                              {.timeout = std::chrono::milliseconds(timeout_ms)});
    if (!value) return show(value.error());
    return "ok " + value->value_or("(absent)");
  }

  /// read-log: tells how far the log goes, once the store answers for it.
  std::string read_log(Words&) {
    auto end = store_->read([](Reader& reader) { return decode_counter(reader.get(kLogEnd)); });
    if (!end) return show(end.error());
    tell("end " + std::to_string(*end));
    return "ok";
  }

  /// stop-in-body KEY short|optimistic: a transaction that reads, writes KEY, and stops the whole process in its body.
  std::string stop_in_body(Words& words) {
    std::string key, kind;
    words >> key >> kind;
    TransactOptions options;
    options.body = kind == "short" ? Body::kShort : Body::kOptimistic;
    auto body = [key, stopped = false](Transaction& txn) mutable {
      (void)txn.get(key);
      if (!stopped) raise(SIGSTOP);  // Unlike kill it stops this thread before all others.
      stopped = true;
      txn.set(key, "after the stop");
    };
    store_->transact_async(body, [](Result<void> result) { tell("stopped body: " + show(result)); }, options);
    return "ok";
  }

  std::string verify(Words&) {
    auto report = store_->verify();
    if (!report) return show(report.error());
    return report->ok() ? "ok" : "error " + report->problems.front();
  }

  /// burst COUNT: as many transactions at once, each told when it ends as "burst: ok" or "burst: error ...".
  std::string burst(Words& words) {
    int count = 0;
    words >> count;
    for (int i = 0; i < count; ++i)
      store_->transact_async([i](Transaction& txn) { txn.set("burst/" + std::to_string(i), "x"); },
                             [](Result<void> result) { tell("burst: " + show(result)); });
    return "ok";
  }

  /// mixed PROCESS LIFE DIRECTORY
  std::string mixed(Words& words) {
    int process = 0, life = 0;
    std::string directory;
    words >> process >> life >> directory;
    stop_load_ = start_mixed_load({*store_, process, life, directory});
    return "ok";
  }

  /// log PROCESS CHAINS
  std::string log(Words& words) {
    int process = 0, chains = 0;
    words >> process >> chains;
    stop_load_ = start_log_load({*store_, process, chains});
    return "ok";
  }

  std::string arm(Words& words) {
    std::string what;
    int calls = 0;
    words >> what >> calls;
    auto* faults = static_cast<PerdureFaults*>(dlsym(RTLD_DEFAULT, kFaultsSymbol));
    if (!faults) return "error the faults are not loaded";
    faults->arm(what.c_str(), calls);
    return "ok";
  }

  std::string syncs_after(Words&) {
    auto* faults = static_cast<PerdureFaults*>(dlsym(RTLD_DEFAULT, kFaultsSymbol));
    return faults ? "ok " + std::to_string(faults->syncs_after()) : "error the faults are not loaded";
  }

  /// fds: what the open descriptors of this process name.
  static std::string fds(Words&) {
    std::string names = "ok";
    DIR* directory = opendir("/proc/self/fd");
    while (dirent* entry = readdir(directory)) {
      char target[4096];
      ssize_t size = readlinkat(dirfd(directory), entry->d_name, target, sizeof target);
      if (size > 0) names += " " + std::string(target, static_cast<std::size_t>(size));
    }
    closedir(directory);
    return names;
  }

  /// fork-linger: makes a child that does nothing until the input ends, and outlives this process until then.
  static std::string fork_linger(Words&) {
    pid_t child = fork();
    if (child != 0) return "ok " + std::to_string(child);
    pollfd input = {STDIN_FILENO, 0, 0};
    while (poll(&input, 1, -1) <= 0 || !(input.revents & POLLHUP)) {
    }
    _exit(0);
  }

  /// become UID: drops all rights but those of that user.
  static std::string become(Words& words) {
    unsigned uid = 0;
    words >> uid;
    if (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0) return "error cannot change the user";
    return "ok";
  }

  using Command = std::function<std::string(Words&)>;
  Command own(std::string (Worker::*method)(Words&)) {
    return [this, method](Words& words) { return (this->*method)(words); };
  }

  inline static const std::set<std::string> kWithoutStore = {"open",   "arm",         "fds",
                                                             "become", "fork-linger", "syncs-after"};
  std::optional<Store> store_;
  std::function<void()> stop_load_;
  const std::map<std::string, Command> commands_ = {
      {"open", own(&Worker::open)},
      {"set", own(&Worker::set)},
      {"get", own(&Worker::get)},
      {"fill", own(&Worker::fill)},
      {"burst", own(&Worker::burst)},
      {"stop-in-body", own(&Worker::stop_in_body)},
      {"verify", own(&Worker::verify)},
      {"mixed", own(&Worker::mixed)},
      {"log", own(&Worker::log)},
      {"read-log", own(&Worker::read_log)},
      {"arm", own(&Worker::arm)},
      {"syncs-after", own(&Worker::syncs_after)},
      {"fds", &Worker::fds},
      {"become", &Worker::become},
      {"fork-linger", &Worker::fork_linger},
  };
};

}  // namespace
}  // namespace perdure::e2e

int main() {
  // Nothing of a test outlives it: a worker whose test was killed goes with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGABRT, perdure::e2e::tell_abort);
  perdure::e2e::Worker worker;
  for (std::string line; std::getline(std::cin, line);) perdure::e2e::put_line(STDOUT_FILENO, worker.run(line));
  worker.finish();
}
