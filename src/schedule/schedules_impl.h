// One node's share in the schedules of a store: a loop that follows the timetable, and what the public calls need.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "perdure/schedule.h"
#include "schedule/tick.h"
#include "schedule/zone.h"
#include "session/due_loop.h"
#include "session/store_clock.h"
#include "session/timed_part.h"
#include "store/store_part.h"

namespace perdure {

class SchedulesImpl : public StorePart<SchedulesImpl>, public TimedPart {
 public:
  static Result<Schedules> open(Store store, SchedulesOptions options);
  /// `store` is kept open by the handles.
  SchedulesImpl(Store& store, const SchedulesOptions& options);

  // For the public class.
  void hold() { held_ = true; }
  void release();
  schedule::Zones& zones() { return zones_; }
  /// Store time, by which everybody who has acted is not ahead.
  WallTime now(Transaction& txn);
  Uuid fresh_id();

  // For whoever moves time.
  std::optional<WallTime> next_due(Reader& reader) override;
  bool has_work(Reader& reader, WallTime now) override { return next_due(reader).value_or(WallTime::max()) <= now; }
  void look() override { loop_.wake(); }

  // For the loop.
  StoreClock& clock() { return clock_; }

 private:
  using Loop = DueLoop<SchedulesImpl>;
  Loop::Turn turn(Transaction& txn, WallTime now);
  void tell(const schedule::TickNote& note);

  StoreClock clock_;
  schedule::Zones zones_;
  std::atomic<bool> held_;
  Loop loop_;
};

}  // namespace perdure
