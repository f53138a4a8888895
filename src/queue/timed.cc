// What the queue offers to whoever moves time.
#include "queue/queue_impl.h"
#include "queue/worker_table.h"

namespace perdure {
namespace {

/// The time that the first key of a table begins with.
std::optional<WallTime> first_time(Reader& reader, const Bytes& table) {
  auto rows = reader.get_range(tuple::extensions(table), {.limit = 1});
  if (rows.empty()) return std::nullopt;
  tuple::Reader key(BytesView(rows[0].key).substr(table.size()));
  DueTime time{std::chrono::milliseconds(key.next_int())};
  constexpr auto kFar = std::chrono::floor<std::chrono::milliseconds>(WallTime::max());
  return time >= kFar ? WallTime::max() : WallTime(time);
}

/// Whether there is something to claim, if the rate allows it.
bool is_claimable(Reader& reader, const queue::Dispatcher& dispatcher, WallTime now) {
  Bytes prefix = queue::worker_prefix(dispatcher.space(), dispatcher.worker());
  if (!queue::read_rules(reader, prefix, now).empty()) return false;
  return !reader.get_range(tuple::extensions(queue::ready_key(prefix)), {.limit = 1}).empty();
}

}  // namespace

std::optional<WallTime> QueueImpl::next_due(Reader& reader) {
  std::optional<WallTime> next;
  // What is to be forgotten is nothing to stop for: nobody sees at which moment it goes.
  if (options_.dispatch) next = earlier(first_time(reader, queue::timetable()), first_time(reader, queue::deadlines()));
  if (held()) return next;
  for (auto& dispatcher : serving()) next = earlier(next, dispatcher->again_at());
  return next;
}

bool QueueImpl::has_work(Reader& reader, WallTime now) {
  if (options_.dispatch)
    for (const Bytes& table : {queue::timetable(), queue::deadlines(), queue::forget_prefix()})
      if (first_time(reader, table).value_or(WallTime::max()) <= now) return true;
  if (held()) return false;
  for (auto& dispatcher : serving()) {
    auto again_at = dispatcher->again_at();
    bool waits = again_at && *again_at > now;
    if (!waits && is_claimable(reader, *dispatcher, now)) return true;
  }
  return false;
}

TimedPart::Activity QueueImpl::activity_now() {
  Activity sum{false, turns_};
  for (auto& dispatcher : all_dispatchers()) sum.busy = sum.busy || dispatcher->is_busy();
  return sum;
}

void QueueImpl::look() {
  auto use = enter();
  if (!use) return;
  if (options_.dispatch) {
    promoting_.wake();
    expiring_.wake();
    forgetting_.wake();
  }
  for (auto& dispatcher : serving())
    if (auto again_at = dispatcher->again_at(); again_at && *again_at <= now()) dispatcher->ring();
  wake_waiters(Wake::kTimed);
}

}  // namespace perdure
