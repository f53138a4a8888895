// Taking in what hooks have left while no daemon listened to them: see transcript/spool.h.
//
// A hook that finds no daemon, or a busy one, may be the last of its session, so nothing else tells a daemon to look.
// It looks every two seconds, at the spool and at what a daemon that failed or died has left of it.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "node/node.h"
#include "runtime/mutex.h"
#include "transcript/spool.h"

namespace perdure::http {

struct SpoolTakerOptions {
  /// The files that hooks write.
  std::vector<std::string> paths = {};
  Duration every = std::chrono::seconds(2);
};

/// It has a thread of its own, and holds up nobody. Thread-safe.
/// Crash: what was not taken waits for the next daemon; what was is known by its id.
class SpoolTaker {
 public:
  /// `node` outlives it, open until `stop`.
  SpoolTaker(Node& node, SpoolTakerOptions options);
  ~SpoolTaker() { stop(); }
  /// Looks now, and every so often from then on.
  void start() PERDURE_EXCLUDES(mutex_);
  /// What is under way ends after the hooks that it has in hand.
  void stop() PERDURE_EXCLUDES(mutex_);

 private:
  void turn() PERDURE_EXCLUDES(mutex_);
  /// Whether all of a spool is taken.
  bool take_from(const std::string& path);
  Result<void> take(std::span<const transcript::Spooled> lines);
  Result<void> take_together(const std::string& space, const std::vector<transcript::Hook>& hooks);

  Node& node_;
  const SpoolTakerOptions options_;
  std::atomic<bool> stopping_ = false;
  /// Longer after something failed, as it will mostly do so again. Of the lane's thread.
  Duration wait_;
  /// What was found in the place of a file, and has been said. Of the lane's thread too.
  std::set<std::string> refused_;
  Mutex mutex_;
  std::unique_ptr<Executor> lane_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure::http
