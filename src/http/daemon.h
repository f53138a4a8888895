// What the handlers of the API work on: a node, and what a daemon has beside it.
#pragma once

#include <string>

#include "http/metrics.h"
#include "http/push.h"
#include "http/remote_kind.h"
#include "node/node.h"
#include "perdure/changes.h"

namespace perdure::http {

struct Daemon {
  Node& node;
  Pushers& pushers;
  RemoteKinds& kinds;
  Changes& feed;
  Metrics& metrics;
  /// As it was opened, "lmdb:/var/lib/perdure"; shown to people.
  std::string store;
  std::string version;
  SteadyTime started;
};

}  // namespace perdure::http
