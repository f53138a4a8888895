// One process's share in a store: all parts of perdure on it, opened and closed together.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "node/advance.h"
#include "perdure/actor.h"
#include "perdure/debounce.h"
#include "perdure/queue.h"
#include "perdure/schedule.h"
#include "perdure/sequence.h"
#include "perdure/store.h"
#include "perdure/test_clock.h"
#include "runtime/mutex.h"
#include "session/store_clock.h"
#include "transcript/transcripts.h"

namespace perdure {

enum class Dispatch {
  kOn,
  /// Events, actor messages, schedules and debouncers wait, until Node::release; what comes in is stored.
  kHeld,
};

enum class StoreTime {
  kPasses,
  /// For tests: it begins with the moment of the opening, or the latest that the store has seen, and moves only by
  /// Node::advance. Give StoreOptions::clock instead to begin elsewhere.
  kStandsStill,
};

struct NodeOptions {
  std::string store = "lmdb:./perdure-data";
  StoreOptions store_options = {};
  Dispatch dispatch = Dispatch::kOn;
  SessionOptions session = {};
  StoreTime time = StoreTime::kPasses;
  transcript::TranscriptsOptions transcripts = {};
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
  transcript::Transcripts& transcripts() { return *transcripts_; }
  /// Store time.
  WallTime now();

  /// This node begins nothing any more by itself: no event, actor message, schedule or window; what is running comes to
  /// its end, and what comes in is stored. Until `release`. Neither blocks.
  void hold() PERDURE_EXCLUDES(mutex_);
  void release() PERDURE_EXCLUDES(mutex_);
  bool held() PERDURE_EXCLUDES(mutex_);

  /// Moves store time, of a node whose time stands still, `by` so much, stopping at each moment at which something is
  /// due, and has all of it done that this node does; answers the new time once nothing is left to do. Several are done
  /// one after the other. `timeout` is in real time. Blocks: not for callbacks of the store, nor for handlers.
  /// Errors: kInvalidArgument for a negative one, and if time does not stand still; kDeadline: time stands where
  /// something was still to be done; kClosed; and those of a transaction.
  [[nodiscard]] Result<WallTime> advance(Duration by, Duration timeout = std::chrono::seconds(60));
  /// `done` is called once, on one of the store's threads; in this call if it is refused.
  void advance_async(Duration by, Duration timeout, Advance::Done done) PERDURE_EXCLUDES(mutex_);

  /// Stops taking work, lets what runs come to its end within `grace`, gives the rest back, and closes the store.
  /// Blocks. Idempotent. Errors: kDeadline if something was still running.
  Result<void> close(Duration grace);

 private:
  Node(Store store, Queue queue, Actors actors, Schedules schedules, Debouncers debouncers, Sequences sequences,
       const NodeOptions& options);
  void next_advance() PERDURE_EXCLUDES(mutex_);
  void advanced() PERDURE_EXCLUDES(mutex_);

  Store store_;
  Queue queue_;
  Actors actors_;
  Schedules schedules_;
  Debouncers debouncers_;
  Sequences sequences_;
  const std::shared_ptr<transcript::Transcripts> transcripts_;
  StoreClock clock_;

  Mutex mutex_;
  CondVar changed_;
  bool held_ PERDURE_GUARDED_BY(mutex_);
  bool closed_ PERDURE_GUARDED_BY(mutex_) = false;
  /// The first of them is under way.
  std::deque<std::function<void()>> advances_ PERDURE_GUARDED_BY(mutex_);
};

}  // namespace perdure
