// Whose turn it is to append.
//
// Of all who append on top of the same version one wins, and the others begin anew. Whoever has a shorter way to the
// server, or smaller batches, would win every time for as long as it has something to append, and the others would lose
// until their callers run out of time. So one that has lost for long asks for a turn, and those who hear of it let the
// next append be somebody else's: they wait until they have seen one, or for a moment. It is a courtesy, and safe to
// lose: what may be appended is decided by the server alone.
#pragma once

#include <optional>

#include "perdure/time.h"

namespace perdure::remote {

/// Not thread-safe.
class Turns {
 public:
  /// Losing to one of a few equals is nothing to complain of, and a round trip may be long.
  static constexpr unsigned kLossesMin = 8;
  static constexpr Duration kLosingMin = std::chrono::milliseconds(50);

  /// `courtesy`: how long to wait for one who asked, and may be dead by now.
  explicit Turns(Duration courtesy) : courtesy_(courtesy) {}

  /// The batch under way was beaten. True if it is time to ask for a turn.
  bool lost(SteadyTime now) {
    if (losses_++ == 0) losing_since_ = now;
    if (losses_ < kLossesMin || now - losing_since_ < kLosingMin) return false;
    losses_ = 1;
    losing_since_ = now;
    wants_ = true;
    return true;
  }
  /// The batch under way is over, whatever came of it.
  void over() {
    losses_ = 0;
    wants_ = false;
  }

  /// Somebody else asks for a turn.
  void give(SteadyTime now) { given_until_ = now + courtesy_; }
  /// Somebody else has appended.
  void taken() { given_until_.reset(); }
  /// Until when to wait with an append, unless somebody else appends before; nothing if there is no need. Those who
  /// want a turn themselves do not wait for each other.
  std::optional<SteadyTime> wait_until(SteadyTime now) {
    if (given_until_ && *given_until_ <= now) given_until_.reset();
    return wants_ ? std::nullopt : given_until_;
  }

 private:
  const Duration courtesy_;
  unsigned losses_ = 0;
  SteadyTime losing_since_;
  bool wants_ = false;
  std::optional<SteadyTime> given_until_;
};

}  // namespace perdure::remote
