// What operators do to many events: transactions that do a bounded part each.
#pragma once

#include "perdure/queue.h"

namespace perdure::queue {

struct Part {
  std::uint64_t count = 0;
  bool more = false;
};

/// Ready, paused and blocked are views of the same events, of which one holds at a time; the others are empty.
enum class Views { kOnlyThis, kAny };
/// Cancels some of the events in that state.
Part cancel_some(Transaction& txn, std::string_view space, std::string_view worker, EventState state, Views views,
                 WallTime now);

/// Dead letters, back to where they can run. `done` of them went before, which matters if they are to be spread.
Part redrive_some(Transaction& txn, std::string_view space, std::string_view worker, const RedriveOptions& options,
                  std::uint64_t done, WallTime begun, WallTime now);

/// Errors: kInvalidArgument.
Result<void> check_settings(const WorkerSettings& settings);
Result<void> check_rate(const Rate& rate);
void write_settings(Transaction& txn, std::string_view space, std::string_view worker,
                    const std::optional<WorkerSettings>& settings, WallTime now);

}  // namespace perdure::queue
