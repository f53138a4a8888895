// Changing schedules, inside of a transaction. All of it needs system access.
#pragma once

#include <string_view>

#include "perdure/schedule.h"
#include "perdure/transaction.h"
#include "schedule/rows.h"
#include "schedule/timing.h"

namespace perdure::schedule {

/// Checks what can be wrong, and writes it as it is kept.
/// Errors: kInvalidArgument, kTooLarge, and those of Zone::load.
Result<ScheduleSpec> check_spec(ScheduleSpec spec, Zones& zones);
Result<void> check_pause(const PauseOptions& why);
/// Errors: kInvalidArgument.
Result<void> check_names(std::string_view space, std::string_view name);

/// `spec` was checked. Errors: those of Zone::load.
Result<ScheduleInfo> set(Transaction& txn, std::string_view space, std::string_view name, const ScheduleSpec& spec,
                         Zones& zones, WallTime now);
/// Errors, as of all that follow: kNotFound.
Result<void> remove(Transaction& txn, std::string_view space, std::string_view name, WallTime now);
Result<void> pause(Transaction& txn, std::string_view space, std::string_view name, const PauseOptions& why,
                   WallTime now);
Result<void> unpause(Transaction& txn, std::string_view space, std::string_view name, Zones& zones, WallTime now);
Result<Emitted> run(Transaction& txn, std::string_view space, std::string_view name, const Uuid& id, WallTime now);
Result<ScheduleInfo> get(Reader& reader, std::string_view space, std::string_view name);
Result<std::vector<ScheduleInfo>> list(Reader& reader, std::string_view space, const PageOptions& page);

}  // namespace perdure::schedule
