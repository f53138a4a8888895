// What a worker does to a store until its input ends or it is killed.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "perdure/store.h"

namespace perdure::e2e {

/// Writes one line in one call, so that it is in the kernel when this returns.
void put_line(int fd, const std::string& line);

/// Transactions that are started one behind the other's end, several chains at once, until `stop`.
class Chains {
 public:
  /// Starts the next transaction of a chain and sees to it that `ended` is called when it has ended.
  using Step = std::function<void(int chain, std::function<void()> ended)>;

  Chains(int count, Step step);
  /// Starts no more, and waits for those under way.
  void stop();

 private:
  void next(int chain);

  const Step step_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> running_;
};

/// The load of the kill test: counters by add and by read-modify-write, and list appends over a few keys that change
/// every second. Life `life` of process `process` records it in `directory`, see kill_records.h.
struct MixedLoad {
  Store store;
  int process;
  int life;
  std::string directory;
};
std::function<void()> start_mixed_load(const MixedLoad& load);

/// The load of the power cuts: each transaction takes the next place in one log, writes (process, chain, n) there, n to
/// three keys of its chain, and adds one to a counter. Chain c goes on at the n it finds. Each acknowledgement is told
/// on standard output as the event "ack PLACE PROCESS CHAIN N". See log_check.h for what must hold.
struct LogLoad {
  Store store;
  int process;
  int chains;
};
std::function<void()> start_log_load(const LogLoad& load);

}  // namespace perdure::e2e
