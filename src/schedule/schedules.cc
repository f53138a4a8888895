// The public class, on top of SchedulesImpl.
#include "perdure/schedule.h"
#include "schedule/schedules_impl.h"
#include "schedule/table.h"
#include "store/system_access.h"

namespace perdure {

std::string_view name_of(Missed missed) {
  switch (missed) {
    case Missed::kOne:
      return "one";
    case Missed::kAll:
      return "all";
    case Missed::kSkip:
      return "skip";
  }
  return "unknown";
}

Result<Schedules> Schedules::open(Store store, SchedulesOptions options) {
  return SchedulesImpl::open(std::move(store), std::move(options));
}

Schedules Schedules::in(std::string space) const {
  return {impl_, std::move(space)};
}

Result<ScheduleInfo> Schedules::set(std::string_view name, ScheduleSpec spec) {
  return impl_->transact_now([&](Transaction& txn) { return set(txn, name, spec); }, {.reserve = Reserve::kKeepOut});
}

ScheduleInfo Schedules::set(Transaction& txn, std::string_view name, ScheduleSpec spec) {
  in_txn(txn, schedule::check_names(space_, name));
  spec = in_txn(txn, schedule::check_spec(std::move(spec), impl_->zones()));
  SystemAccess access(txn);
  return in_txn(txn, schedule::set(txn, space_, name, spec, impl_->zones(), impl_->now(txn)));
}

Result<ScheduleInfo> Schedules::get(std::string_view name) {
  return impl_->read_now([&](Reader& reader) { return get(reader, name); });
}

Result<ScheduleInfo> Schedules::get(Reader& reader, std::string_view name) const {
  if (auto good = schedule::check_names(space_, name); !good) return std::unexpected(std::move(good.error()));
  SystemAccess access(reader);
  return schedule::get(reader, space_, name);
}

Result<std::vector<ScheduleInfo>> Schedules::list(const PageOptions& page) {
  return impl_->read_now([&](Reader& reader) { return list(reader, page); });
}

Result<std::vector<ScheduleInfo>> Schedules::list(Reader& reader, const PageOptions& page) const {
  SystemAccess access(reader);
  return schedule::list(reader, space_, page);
}

Result<void> Schedules::remove(std::string_view name) {
  return impl_->transact_now([&](Transaction& txn) { remove(txn, name); }, {.reserve = Reserve::kMayUse});
}

void Schedules::remove(Transaction& txn, std::string_view name) {
  in_txn(txn, schedule::check_names(space_, name));
  SystemAccess access(txn);
  in_txn(txn, schedule::remove(txn, space_, name, impl_->now(txn)));
}

Result<void> Schedules::pause(std::string_view name, const PauseOptions& why) {
  return impl_->transact_now([&](Transaction& txn) { pause(txn, name, why); }, {.reserve = Reserve::kMayUse});
}

void Schedules::pause(Transaction& txn, std::string_view name, const PauseOptions& why) {
  in_txn(txn, schedule::check_names(space_, name));
  in_txn(txn, schedule::check_pause(why));
  SystemAccess access(txn);
  in_txn(txn, schedule::pause(txn, space_, name, why, impl_->now(txn)));
}

Result<void> Schedules::unpause(std::string_view name) {
  return impl_->transact_now([&](Transaction& txn) { unpause(txn, name); }, {.reserve = Reserve::kMayUse});
}

void Schedules::unpause(Transaction& txn, std::string_view name) {
  in_txn(txn, schedule::check_names(space_, name));
  SystemAccess access(txn);
  in_txn(txn, schedule::unpause(txn, space_, name, impl_->zones(), impl_->now(txn)));
}

Result<Emitted> Schedules::run(std::string_view name) {
  return impl_->transact_now([&](Transaction& txn) { return run(txn, name); }, {.reserve = Reserve::kKeepOut});
}

Emitted Schedules::run(Transaction& txn, std::string_view name) {
  in_txn(txn, schedule::check_names(space_, name));
  SystemAccess access(txn);
  return in_txn(txn, schedule::run(txn, space_, name, impl_->fresh_id(), impl_->now(txn)));
}

void Schedules::hold() {
  impl_->hold();
}

void Schedules::release() {
  impl_->release();
}

}  // namespace perdure
