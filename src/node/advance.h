// Moving the clock of a store that stands still.
//
//     { look, wait until nothing is left to do, move on to the next due moment } until the time that was asked for
//
// So everything happens at its own nominal moment of store time, in order, as if the time had passed. Nothing is left
// when the store has nothing that is due or ready for this node, as the parts say (session/timed_part.h), and nothing
// is under way in this process. What outside workers have claimed is not waited for.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "perdure/error.h"
#include "perdure/store.h"
#include "perdure/test_clock.h"
#include "runtime/scheduler.h"
#include "session/timed_part.h"

namespace perdure {

class Advance : public std::enable_shared_from_this<Advance> {
 public:
  using Done = std::move_only_function<void(Result<WallTime>)>;
  struct Options {
    WallTime target;
    /// Real time, from which on it gives up.
    SteadyTime deadline;
    /// Whether it is to end early, with kClosed.
    std::function<bool()> stopped;
  };
  /// `store`, `clock` and the parts outlive it: until `done` was called, on one of the store's threads.
  Advance(Store& store, TestClock& clock, std::vector<TimedPart*> parts, Options options, Done done);
  void begin();

 private:
  struct Seen {
    bool work = false;
    std::optional<WallTime> next;
  };

  TimedPart::Activity activity();
  void look();
  void check();
  void seen(TimedPart::Activity before, Result<Seen> seen);
  void check_later();
  void quiet(std::optional<WallTime> next);
  /// So that it does not go back when the process starts again.
  void note_and_end();
  Scheduler& scheduler();

  Store& store_;
  TestClock& clock_;
  const std::vector<TimedPart*> parts_;
  const Options options_;
  Done done_;
  /// Until the next look.
  Duration pause_;
};

}  // namespace perdure
