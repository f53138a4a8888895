#include "session/observer.h"

#include <algorithm>

#include "base/seeded_bug.h"

namespace perdure::session {

void Observer::contact(SteadyTime now) {
  Duration gap = now - last_contact_;
  bool counts = gap <= gap_max_ || seeded(SeededBug::kCountUnreachableTime) || seeded(SeededBug::kTrustWallClock);
  // Contacts may be told out of order by a little.
  if (gap > Duration::zero() && counts) in_contact_ += gap;
  last_contact_ = std::max(last_contact_, now);
}

void Observer::saw(SessionId id, std::uint64_t beat, Duration ttl) {
  auto [seen, first] = seen_.try_emplace(id, Seen{beat, ttl, in_contact_});
  if (!first && seen->second.beat != beat) seen->second = {beat, ttl, in_contact_};
}

Duration Observer::left(SessionId id) const {
  auto seen = seen_.find(id);
  if (seen == seen_.end()) return Duration::max();
  return std::max(Duration::zero(), seen->second.since + seen->second.ttl - in_contact_);
}

void Observer::keep_only(std::span<const SessionId> known) {
  std::erase_if(seen_, [&](const auto& seen) { return !std::ranges::binary_search(known, seen.first); });
}

}  // namespace perdure::session
