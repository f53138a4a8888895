// Leadership over a key-value bucket of NATS with JetStream: the form of the first seed. Link perdure::nats.
//
//     auto leader = nats_leadership(store, {.url = "nats://127.0.0.1:4222", .bucket = "dvu"});
//     auto tick = Tick::open(store, *leader, {}, handlers);
//
// A key is created if it is absent, updated by compare-and-set on its last revision, and purged on the same condition;
// its value is {"instance_id":"...","status":"waiting"|"running"}, so that tools for NATS can read it. NATS only
// elects: it may lose what it acknowledged when the power is cut, so the token of each run, which is in the store,
// still fences.
#pragma once

#include <memory>
#include <string>

#include "perdure/export.h"
#include "perdure/leadership.h"

namespace perdure {

struct NatsOptions {
  /// One or several, separated by commas; with user, password or token if that is needed.
  std::string url = "nats://127.0.0.1:4222";
  /// 1 to 64 of A-Za-z0-9_-; made if it is absent.
  std::string bucket = "perdure";
  /// Of all keys of the bucket: at least 200 ms. A bucket that is there must have the same.
  Duration max_age = std::chrono::seconds(5);
  /// Random by default: 1 to 64 of A-Za-z0-9._:-
  std::string instance_id = {};
  /// Of a bucket that is made.
  unsigned replicas = 1;
  /// How long to wait for the server at the start.
  Duration connect_timeout = std::chrono::seconds(2);
};

/// Blocks until the server has answered and the bucket is there. `store` gives its threads, clock and log, and outlives
/// it. A server that is lost later is waited for, for ever and with pauses of at most five seconds, and the log says
/// so: until then whoever leads is a leader no more, and nobody becomes one. Errors, each with the setting:
/// kInvalidArgument (the options; a bucket with another max_age, or one that is no key-value bucket), kUnavailable (no
/// server at the url, or one without JetStream), kPermissionDenied.
PERDURE_EXPORT Result<std::shared_ptr<Leadership>> nats_leadership(Store& store, NatsOptions options = {});

}  // namespace perdure
