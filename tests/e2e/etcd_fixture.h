// What tests of the server on etcd have in common. `open` is all that a suite for every server needs of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "etcd_server.h"
#include "runtime/latch.h"
#include "runtime/mutex.h"
#include "scratch.h"
#include "store/etcd/etcd_server.h"

namespace perdure::e2e {

using ServerPtr = std::unique_ptr<remote::RowServer>;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return std::move(*result);
}

inline ServerPtr open_etcd(const std::string& url, LogSink log = {}) {
  return must(etcd::EtcdServer::open({url, std::move(log)}));
}

inline remote::LogEntry entry(std::uint64_t version, Bytes batch = "batch") {
  return {Version{version}, std::move(batch)};
}

inline remote::FoldedRow row(Bytes key, Bytes value, std::uint64_t version) {
  return {std::move(key), Versioned{std::move(value), Version{version}}};
}

inline bool append(remote::RowServer& server, std::uint64_t expected, const remote::LogEntry& entry) {
  return must(server.append({{expected}}, entry)).done;
}

inline remote::Moment look(remote::RowServer& server, std::uint64_t since = 0, std::vector<Bytes> keys = {},
                           std::vector<RangeRead> ranges = {}) {
  return must(server.read(Version{since}, keys, ranges));
}

/// "1 2 5"
inline std::string versions_of(const remote::Moment& moment) {
  std::string text;
  for (const remote::LogEntry& each : moment.log)
    text += (text.empty() ? "" : " ") + std::to_string(each.version.number);
  return text;
}

/// "a=1 b=2", with versions if they are asked for: "a=1@7".
inline std::string text_of(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& each : rows)
    text += (text.empty() ? "" : " ") + each.key + "=" + each.value + "@" + std::to_string(each.version.number);
  return text;
}

/// What a bell has rung with, and what a log was told.
class Heard {
 public:
  void add(std::string what) {
    MutexLock lock(mutex_);
    heard_.push_back(std::move(what));
    changed_.notify_all();
  }
  remote::Bell bell() {
    return [this](remote::Ring ring) { add(ring.turn_wanted ? "turn" : std::to_string(ring.reached.number)); };
  }
  LogSink sink() {
    return [this](const LogRecord& record) { add(std::string(record.message)); };
  }
  /// Waits for it; what came before is forgotten. False if it does not come.
  bool wait_for(const std::string& what) {
    MutexLock lock(mutex_);
    for (SteadyTime until = steady_now() + kPatience; steady_now() < until;) {
      while (!heard_.empty()) {
        bool found = heard_.front() == what;
        heard_.pop_front();
        if (found) return true;
      }
      changed_.wait_until(lock, until);
    }
    return false;
  }
  std::deque<std::string> all() {
    MutexLock lock(mutex_);
    return heard_;
  }
  std::size_t count(const std::string& what) {
    MutexLock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(heard_, what));
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> heard_;
};

inline bool within(Duration patience, const std::function<bool()>& holds) {
  for (SteadyTime until = steady_now() + patience; steady_now() < until;)
    if (holds()) return true;
  return false;
}

/// One member, and as many servers on it as a test opens.
class EtcdTest : public ::testing::Test {
 protected:
  ServerPtr open(const std::string& rest = "") { return open_etcd(cluster_.url(rest)); }

  Scratch scratch_;
  EtcdCluster cluster_{scratch_ / "etcd",
                       {.members = 1, .arguments = {"--heartbeat-interval=50", "--election-timeout=500"}}};
};

}  // namespace perdure::e2e
