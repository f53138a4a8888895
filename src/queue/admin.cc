#include "queue/admin.h"

#include <algorithm>

#include "base/seeded_bug.h"
#include "queue/emit.h"
#include "queue/list.h"
#include "queue/rules.h"
#include "queue/settle.h"
#include "queue/worker_table.h"

namespace perdure::queue {
namespace {

constexpr std::size_t kAtOnce = 500;
/// Of values that are given back, in one transaction.
constexpr std::size_t kBytesAtOnce = 2'000'000;
constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);

std::unexpected<Error> wrong(std::string_view message) {
  return fail(ErrorCode::kInvalidArgument, std::string(message));
}

/// Whether ready events of a worker in that state are shown as `view`; true for what is no view of them.
bool holds(EventState view, WorkerState worker) {
  switch (view) {
    case EventState::kReady:
      return worker == WorkerState::kRun;
    case EventState::kPaused:
      return worker == WorkerState::kPause;
    case EventState::kBlocked:
      return worker == WorkerState::kBlock;
    default:
      return true;
  }
}

/// When the one behind so many others is due.
DueTime spread(const Rate& rate, std::uint64_t before, WallTime begun) {
  double ms = std::chrono::duration<double, std::milli>(rate.per).count() / rate.count * static_cast<double>(before);
  auto most = static_cast<double>((kLastDueTime - due_at(begun)).count());
  return due_at(begun) + std::chrono::milliseconds(static_cast<std::int64_t>(std::min(ms, most)));
}

/// A dead letter had to let go of its unique key; if nobody has it by now, it is this one's again.
void take_unique_back(WorkerTable& table, const Loaded& event) {
  auto name = event.row.names().unique_key;
  if (name.empty()) return;
  Bytes key = unique_key(table.prefix(), name);
  if (!table.txn().get(key)) table.txn().set(key, encode_id(event.id));
}

/// It goes back to whoever made it, as it was; answers with its bytes.
std::size_t give_back(WorkerTable& table, const Loaded& event) {
  auto given = readable(table.txn(), Given::decode(event.row.given()));
  auto value = readable(table.txn(), read_value(table.txn(), event.key, given));
  table.leave(event);
  table.end(event, EndedEvent::How::kCancelled, {}, {},
            event.row.failures.empty() ? "" : event.row.failures.back().error);
  Bytes encoded = value.encode();
  table.tell(event, encoded);
  return encoded.size();
}

void revive(WorkerTable& table, Loaded& event, const RedriveOptions& options, std::uint64_t before, WallTime begun) {
  table.leave(event);
  event.row.retries = 0;
  event.row.losses = 0;
  take_unique_back(table, event);
  DueTime due = options.rate ? spread(*options.rate, before, begun) : DueTime::min();
  if (is_due(due, table.now()))
    table.enter_ready(event, table.now());
  else
    table.enter_scheduled(event, due);
}

}  // namespace

Part cancel_some(Transaction& txn, std::string_view space, std::string_view worker, EventState state, Views views,
                 WallTime now) {
  WorkerTable table(txn, space, worker, now);
  Part part;
  if (views == Views::kOnlyThis && !holds(state, state_by(table.rules()))) return part;
  Reader snapshot = txn.snapshot();
  auto ids = walk(snapshot, space, worker, state, {}, kAtOnce).ids;
  for (const Uuid& id : ids) {
    auto event = load(txn, space, id);
    if (!event) continue;
    cancel(table, *event);
    ++part.count;
  }
  table.finish();
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
    Reader snapshot = txn.snapshot();
    ids = walk(snapshot, space, worker, EventState::kDead, {}, kAtOnce).ids;
    part.more = ids.size() == kAtOnce;
  }
  std::vector<Loaded> dead;
  for (const Uuid& id : ids) {
    auto event = load(txn, space, id);
    if (event && event->row.state == Stored::kDead && event->row.names().worker == worker)
      dead.push_back(std::move(*event));
  }
  SystemAccess access(txn);
  std::size_t bytes = 0;
  for (Loaded& event : dead) {
    if (bytes > kBytesAtOnce || (part.count > 0 && access.is_full())) {
      part.more = true;
      break;
    }
    if (event.row.names().told)
      bytes += give_back(table, event);
    else
      revive(table, event, options, done + part.count, begun);
    ++part.count;
  }
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
  if (settings.limit_per_key == 0 || settings.limit_per_key > kSlotsMax)
    return wrong("limit_per_key must be from 1 to 1000");
  if (settings.retention < Duration::zero() || settings.retention > kLongest)
    return wrong("the retention must be from nothing to a hundred years");
  if (settings.losses_max < 0) return wrong("losses_max cannot be negative");
  return check_policy(settings.retry);
}

void write_settings(Transaction& txn, std::string_view space, std::string_view worker,
                    const std::optional<WorkerSettings>& settings, WallTime now) {
  WorkerTable table(txn, space, worker, now);
  if (settings)
    txn.set(settings_key(table.prefix()), encode_settings(*settings));
  else
    txn.clear(settings_key(table.prefix()));
  // A rate that was raised lets more through now.
  txn.clear(rate_key(table.prefix()));
  table.note_worker(settings ? ChangeState::kSet : ChangeState::kRemoved);
  table.ring();
  table.finish();
}

}  // namespace perdure::queue
