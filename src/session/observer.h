#pragma once

#include <map>
#include <span>

#include "perdure/session.h"

namespace perdure::session {

/// Judges others by what this process has seen of them.
///
/// A session is taken for dead when it has been seen unchanged for its whole TTL. What counts is not the time that has
/// passed, but the time *in contact*: a stretch between two moments at which this process reached the store, if they
/// are not too far apart. An observer that was paused or cut off has learned nothing about others meanwhile, who may
/// have been cut off as well.
class Observer {
 public:
  /// Stretches longer than `gap_max` do not count.
  explicit Observer(Duration gap_max) : gap_max_(gap_max) {}

  /// The store was reached: what is seen now was read at `now` or before.
  void contact(SteadyTime now);
  /// Seen at the last contact.
  void saw(SessionId id, std::uint64_t beat, Duration ttl);
  /// For how long it still has to be seen unchanged; zero if it is dead, its whole TTL if it has never been seen.
  Duration left(SessionId id) const;
  /// Forgets those that are not among `known`, which is sorted.
  void keep_only(std::span<const SessionId> known);

 private:
  struct Seen {
    std::uint64_t beat;
    Duration ttl;
    /// The time in contact at which this beat was first seen.
    Duration since;
  };

  const Duration gap_max_;
  SteadyTime last_contact_ = {};
  Duration in_contact_ = {};
  std::map<SessionId, Seen> seen_;
};

}  // namespace perdure::session
