// What a schedule goes by: an interval, or a cron expression in a time zone. Both are series of nominal times, which
// depend on nothing but themselves and never on when anything ran.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "perdure/error.h"
#include "perdure/time.h"
#include "schedule/cron.h"
#include "schedule/interval.h"
#include "schedule/zone.h"

namespace perdure::schedule {

class Timing {
 public:
  /// From `first` on.
  Timing(Interval interval, WallTime first) : series_(Every{std::move(interval), first}) {}
  Timing(Cron cron, std::shared_ptr<const Zone> zone) : series_(InZone{cron, std::move(zone)}) {}

  /// The first after `after`; nothing if there is none before the end of WallTime.
  std::optional<WallTime> next(WallTime after) const;
  /// How many there are in (after, until], counted up to `most`.
  std::uint64_t count(WallTime after, WallTime until, std::uint64_t most) const;
  /// After which the newest `count` up to `until` come, if there are so many in (after, until]; `after` otherwise. With
  /// no count at all that is the newest itself. Takes some forty looks, each at `count` times.
  WallTime before_newest(std::uint64_t count, WallTime after, WallTime until) const;

 private:
  struct Every {
    Interval interval;
    WallTime first;
  };
  struct InZone {
    Cron cron;
    std::shared_ptr<const Zone> zone;
  };
  std::variant<Every, InZone> series_;
};

}  // namespace perdure::schedule
