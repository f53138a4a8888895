#include "queue/admin.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/emit.h"
#include "queue/list.h"
#include "queue/settle.h"
#include "queue/worker_table.h"

namespace perdure::queue {
namespace {

constexpr std::size_t kAtOnce = 500;
constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);

std::unexpected<Error> wrong(std::string_view message) {
  return fail(ErrorCode::kInvalidArgument, std::string(message));
}

void revive(WorkerTable& table, Loaded& event, const RedriveOptions& options, std::uint64_t before, WallTime begun) {
  table.leave(event);
  event.row.retries = 0;
  event.row.losses = 0;
  std::uint64_t wait_ns = 0;
  if (options.rate) {
    double each = static_cast<double>(options.rate->per.count()) / options.rate->count;
    wait_ns = static_cast<std::uint64_t>(each * static_cast<double>(before));
  }
  DueTime due = due_after(begun, Duration(static_cast<std::int64_t>(wait_ns)));
  if (wait_ns == 0 || is_due(due, table.now()))
    table.enter_ready(event, table.now());
  else
    table.enter_scheduled(event, due);
}

}  // namespace

Part cancel_some(Transaction& txn, std::string_view space, std::string_view worker, EventState state, WallTime now) {
  SystemAccess access(txn);
  auto ids = walk(txn, space, worker, state, {}, kAtOnce).ids;
  Part part;
  for (const Uuid& id : ids)
    if (cancel(txn, space, id, Queue::Force::kYes, now)) ++part.count;
  part.more = ids.size() == kAtOnce;
  return part;
}

Part redrive_some(Transaction& txn, std::string_view space, std::string_view worker, const RedriveOptions& options,
                  std::uint64_t done, WallTime begun, WallTime now) {
  WorkerTable table(txn, space, worker, now);
  std::vector<Uuid> ids = options.ids;
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  Part part;
  if (ids.empty()) {
    ids = walk(txn, space, worker, EventState::kDead, {}, kAtOnce).ids;
    part.more = ids.size() == kAtOnce;
  }
  std::vector<Loaded> dead;
  for (const Uuid& id : ids) {
    auto event = load(txn, space, id);
    if (event && event->row.state == Stored::kDead && event->row.names().worker == worker)
      dead.push_back(std::move(*event));
  }
  for (Loaded& event : dead) revive(table, event, options, done + part.count++, begun);
  table.finish();
  return part;
}

Result<void> check_rate(const Rate& rate) {
  if (rate.count == 0 || rate.per <= Duration::zero() || rate.per > kLongest)
    return wrong("a rate has a count of at least 1, in a time of more than nothing");
  return {};
}

Result<void> check_settings(const WorkerSettings& settings) {
  if (settings.rate) {
    if (auto good = check_rate(*settings.rate); !good) return good;
  }
  if (settings.limit_per_key == 0 || settings.limit_per_key > 10'000)
    return wrong("limit_per_key must be from 1 to 10000");
  if (settings.retention < Duration::zero() || settings.retention > kLongest)
    return wrong("the retention must be from nothing to a hundred years");
  if (settings.losses_max < 0) return wrong("losses_max cannot be negative");
  return check_policy(settings.retry);
}

void write_settings(Transaction& txn, std::string_view space, std::string_view worker,
                    const std::optional<WorkerSettings>& settings) {
  WorkerTable table(txn, space, worker, WallTime());
  if (settings)
    txn.set(settings_key(table.prefix()), encode_settings(*settings));
  else
    txn.clear(settings_key(table.prefix()));
  // A rate that was raised lets more through now.
  txn.clear(rate_key(table.prefix()));
  table.ring();
  table.finish();
}

}  // namespace perdure::queue
