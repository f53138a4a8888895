#include "session/store_clock.h"

#include <algorithm>

#include "session/rows.h"
#include "store/store_access.h"
#include "store/system_access.h"

namespace perdure {

StoreClock::StoreClock(Store& store)
    : StoreClock(StoreAccess::impl(store).scheduler(), StoreAccess::impl(store).options().clock) {}

WallTime StoreClock::now() {
  if (test_) return test_->now();
  MutexLock lock(mutex_);
  return advance_to_now();
}

void StoreClock::learn(WallTime floor) {
  // All who share it are there then.
  if (test_) return test_->move_to(floor);
  MutexLock lock(mutex_);
  floor_ = std::max(advance_to_now(), floor);
}

WallTime StoreClock::advance_to_now() {
  SteadyTime steady = scheduler_.now();
  // A damaged row may hold the end of time, which is then where it stands still.
  Duration passed = std::min(steady - floor_at_, WallTime::max() - std::max(floor_, WallTime{}));
  floor_ = std::max(scheduler_.wall_now(), floor_ + passed);
  floor_at_ = steady;
  return floor_;
}

WallTime StoreClock::read(Reader& reader) {
  SystemAccess access(reader);
  return WallTime(Duration(decode_counter(reader.get(session::clock_key()))));
}

void StoreClock::advance(Transaction& txn, WallTime time) {
  // It only grows, so that one which is late enough in an old snapshot is late enough for good.
  Reader snapshot = txn.snapshot();
  if (read(snapshot) >= time || read(txn) >= time) return;
  SystemAccess access(txn);
  txn.set(session::clock_key(), encode_counter(time.time_since_epoch().count()));
}

}  // namespace perdure
