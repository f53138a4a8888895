// Taking in what hooks have left while no daemon listened to them: see transcript/spool.h.
//
// A hook that finds no daemon, or a busy one, may be the last of its session, so nothing else tells a daemon to look.
// It looks every two seconds, at the spool and at what a daemon that failed or died has left of it.
//
// A spool may be on a file system that does not answer: whoever looks there waits for as long as that lasts. So each
// has a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/node.h"
#include "transcript/spool.h"

namespace perdure::http {

struct SpoolTakerOptions {
  /// The files that hooks write.
  std::vector<std::string> paths = {};
  Duration every = std::chrono::seconds(2);
  /// What takes one of them.
  std::function<Result<transcript::SpoolReport>(const std::string& path, const transcript::TakeSpooled& take)>
      take_spool = transcript::take_spool;
};

/// It has threads of its own, and holds up nobody. Thread-safe.
/// Crash: what was not taken waits for the next daemon; what was is known by its id.
class SpoolTaker {
 public:
  /// `node` outlives it, open until `stop`.
  SpoolTaker(Node& node, SpoolTakerOptions options);
  ~SpoolTaker() { stop(); }
  SpoolTaker(const SpoolTaker&) = delete;
  SpoolTaker& operator=(const SpoolTaker&) = delete;
  /// Looks now, and every so often from then on.
  void start();
  /// What is under way ends after the hooks that it has in hand. What has not after `grace` is left behind; false then,
  /// and the process should end without taking down what the node is made of.
  bool stop(Duration grace = kGrace);

  /// Far more than one transaction takes.
  static constexpr Duration kGrace = std::chrono::seconds(5);

 private:
  class Taking;
  const std::shared_ptr<Taking> taking_;
};

}  // namespace perdure::http
