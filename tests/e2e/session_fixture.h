// What the tests of sessions share: their worker, and a store that the test itself looks into.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "lease_load.h"
#include "perdure/session.h"
#include "scratch.h"
#include "store/ranges.h"
#include "store/system_access.h"
#include "worker.h"

namespace perdure::e2e {

/// A session_worker; see session_worker.cc for its commands.
class SessionWorker : public Child {
 public:
  SessionWorker() : Child({PERDURE_E2E_SESSION_WORKER}) {}
  explicit SessionWorker(const std::map<std::string, std::string>& environment)
      : Child({PERDURE_E2E_SESSION_WORKER}, {.environment = environment}) {}

  /// Asks for `name`, waiting for up to a minute; see acquired().
  void want(const std::string& name) { EXPECT_EQ(ask("acquire " + name + " 60000"), "ok"); }
};

struct Acquired {
  std::string name, token;
  std::int64_t at_ns = 0;
};

/// Parses the next event of `worker`, which must tell of a lease that was acquired.
inline Acquired acquired(Child& worker) {
  std::string event = worker.event().value_or("(no event)"), word;
  Acquired result;
  std::istringstream words(event);
  words >> word >> result.name >> result.token >> result.at_ns;
  if (word != "acquired") throw std::runtime_error("not acquired: " + event);
  return result;
}

inline double ms_between(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e6;
}

/// Prints what was measured, and returns its median.
inline double report_ms(const char* what, std::vector<double> measured) {
  std::ranges::sort(measured);
  double median = measured[measured.size() / 2];
  std::printf("%s: median %.1f ms, worst %.1f ms of %zu\n", what, median, measured.back(), measured.size());
  return median;
}

/// The times of a worker's session, as options of its command `open`.
inline const std::string kQuick = " ttl=1000 renew=250";

/// Of one whose process is going to die. LMDB knows at once who is gone, whatever the times are; on a server that is
/// known when a session has been silent for its TTL, within a second. So the default there would only take longer.
inline const std::string kMortal = by_engine<std::string>("", kQuick);
/// From such a death to when others know of it, at most.
inline const double kNoticedMs = by_engine(0, 1000 + 1000);

class SessionProcesses : public ::testing::Test {
 protected:
  /// Opens a session in `worker`, and answers its id.
  std::string open(Child& worker, const std::string& options = "") {
    std::string answer = worker.ask("open " + url_ + options);
    EXPECT_TRUE(answer.starts_with("ok ")) << answer;
    return answer.substr(std::min<std::size_t>(3, answer.size()));
  }

  /// Stops `worker` at a moment at which it holds no lock of the store: others can write.
  void stop_outside_of_a_commit(Child& worker) {
    for (;;) {
      worker.signal(SIGSTOP);
      ASSERT_TRUE(worker.wait_until_stopped());
      if (set(store_, "probe", "x", {.timeout = std::chrono::milliseconds(200)})) return;
      worker.signal(SIGCONT);
      // Others go on as well before the next try.
      worker.gather(Milliseconds(20));
    }
  }

  std::size_t sessions() {
    return must(store_.read([](Reader& reader) { return Session::list(reader).size(); }));
  }
  /// Everything that is stored, perdure's own rows included; but not those by which each handle on a server finds out
  /// about commits whose answers were lost.
  std::uint64_t rows() {
    auto of_handles = store_.read([](Reader& reader) {
      SystemAccess access(reader);
      return reader.get_range(prefix_range(Bytes(kSystemKeys) + "batch/")).size();
    });
    return must(store_.verify()).rows - must(std::move(of_handles));
  }
  /// Waits until nothing of ended sessions is left, which others do in the background.
  bool wait_for_rows(std::uint64_t wanted) {
    std::int64_t until = steady_ns() + std::chrono::nanoseconds(kPatience).count();
    while (steady_ns() < until) {
      // Armed before the look, so that no change falls between.
      Watch watch = must(store_.transact([](Transaction& txn) { return txn.watch("never written"); }));
      if (rows() == wanted) return true;
      (void)watch.wait(std::chrono::milliseconds(20));
    }
    return false;
  }

  Scratch scratch_;
  std::string url_ = fresh_store_url(lmdb_url(scratch_ / "store"));
  Store store_ = must(Store::open(url_));
};

}  // namespace perdure::e2e
