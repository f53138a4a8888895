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
#include "store/store_part.h"

namespace perdure {

class SchedulesImpl : public StorePart<SchedulesImpl> {
 public:
  static Result<Schedules> open(Store store, SchedulesOptions options);
  /// `store` is kept open by the handles.
  SchedulesImpl(Store& store, const SchedulesOptions& options);

  // For the public class.
  /// Blocks. What takes more room than it gives back keeps out of the reserve.
  template <class Body>
  auto transact_now(Body body, Reserve reserve);
  template <class Body>
  auto read_now(Body body);
  void hold() { held_ = true; }
  void release();
  /// The last handle goes.
  void abandon();
  schedule::Zones& zones() { return zones_; }
  /// Store time, by which everybody who has acted is not ahead.
  WallTime now(Transaction& txn);
  Uuid fresh_id();

  // For the loop.
  StoreClock& clock() { return clock_; }

 private:
  using Loop = DueLoop<SchedulesImpl>;
  Result<void> may_block();
  Loop::Turn turn(Transaction& txn, WallTime now);
  void tell(const schedule::TickNote& note);

  StoreClock clock_;
  schedule::Zones zones_;
  std::atomic<bool> held_;
  Loop loop_;
};

template <class Body>
auto SchedulesImpl::transact_now(Body body, Reserve reserve) {
  using R = typename internal::BodyResult<std::invoke_result_t<Body&, Transaction&>>::Value;
  auto use = enter();
  if (!use) return Result<R>(std::unexpected(closed_error()));
  if (auto allowed = may_block(); !allowed) return Result<R>(std::unexpected(std::move(allowed.error())));
  return store_.transact(std::move(body), {.reserve = reserve});
}

template <class Body>
auto SchedulesImpl::read_now(Body body) {
  using R = typename internal::BodyResult<std::invoke_result_t<Body&, Reader&>>::Value;
  auto use = enter();
  if (!use) return Result<R>(std::unexpected(closed_error()));
  if (auto allowed = may_block(); !allowed) return Result<R>(std::unexpected(std::move(allowed.error())));
  return store_.read(std::move(body));
}

}  // namespace perdure
