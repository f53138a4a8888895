// One process's share in a store: all parts of perdure on it, opened and closed together.
#pragma once

#include <memory>
#include <string>

#include "perdure/actor.h"
#include "perdure/debounce.h"
#include "perdure/queue.h"
#include "perdure/schedule.h"
#include "perdure/sequence.h"
#include "perdure/store.h"
#include "session/store_clock.h"

namespace perdure {

enum class Dispatch {
  kOn,
  /// Events, actor messages, schedules and debouncers wait, until Node::release; what comes in is stored.
  kHeld,
};

struct NodeOptions {
  std::string store = "lmdb:./perdure-data";
  StoreOptions store_options = {};
  Dispatch dispatch = Dispatch::kOn;
  SessionOptions session = {};
};

/// Thread-safe once it is open.
class Node {
 public:
  /// Blocks. Errors: those of Store::open and of the parts.
  [[nodiscard]] static Result<std::unique_ptr<Node>> open(NodeOptions options);
  /// Closes it, without a grace.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Store& store() { return store_; }
  Queue& queue() { return queue_; }
  Actors& actors() { return actors_; }
  Schedules& schedules() { return schedules_; }
  Debouncers& debouncers() { return debouncers_; }
  Sequences& sequences() { return sequences_; }
  /// Store time.
  WallTime now();

  /// Stops taking work, lets what runs come to its end within `grace`, gives the rest back, and closes the store.
  /// Blocks. Idempotent. Errors: kDeadline if something was still running.
  Result<void> close(Duration grace);

 private:
  Node(Store store, Queue queue, Actors actors, Schedules schedules, Debouncers debouncers, Sequences sequences);

  Store store_;
  Queue queue_;
  Actors actors_;
  Schedules schedules_;
  Debouncers debouncers_;
  Sequences sequences_;
  StoreClock clock_;
  bool closed_ = false;
};

}  // namespace perdure
