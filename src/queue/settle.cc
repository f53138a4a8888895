#include "queue/settle.h"

#include <algorithm>
#include <cmath>

#include "base/seeded_bug.h"
#include "session/rows.h"

namespace perdure::queue {
namespace {

constexpr std::size_t kErrorBytesMax = 1'000;
constexpr std::size_t kFailuresMax = 5;
/// Up to so many losses in a row are bad luck, and the event is run again at once. One that is lost again may be what
/// kills its processes, and waits longer each time.
constexpr std::uint32_t kUnluckyLosses = 2;
constexpr Duration kLossDelay = std::chrono::seconds(1);
constexpr Duration kLossDelayMax = std::chrono::minutes(5);

/// Not in the middle of a character.
std::string cut(std::string text) {
  if (text.size() <= kErrorBytesMax) return text;
  std::size_t size = kErrorBytesMax;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  text.resize(size);
  return text;
}

void note_failure(Loaded& event, WallTime now, const std::string& error) {
  auto& failures = event.row.failures;
  failures.push_back({static_cast<int>(event.row.attempts), now, error});
  if (failures.size() > kFailuresMax) failures.erase(failures.begin());
}

WallTime started(const Loaded& event, WallTime now) {
  return event.row.locked_at.value_or(now);
}

}  // namespace

Error stale_claim(const Uuid& id) {
  return {ErrorCode::kStaleToken,
          "the claim of event " + to_string(id) + " is not held any more: it has ended, or another has it now"};
}

Found find_claim(Reader& reader, std::string_view space, const Claim& claim) {
  if (auto event = load(reader, space, claim.id)) {
    bool held = event->row.state == Stored::kRunning &&
                (event->row.stamp == claim.token || seeded(SeededBug::kCompleteWithoutToken));
    if (!held) return {};
    return {Standing::kHeld, std::move(event), {}};
  }
  auto ended = load_ended(reader, space, claim.id);
  if (!ended || ended->token != claim.token) return {};
  return {Standing::kEnded, {}, ended->how};
}

void complete(WorkerTable& table, Loaded& event, Bytes result) {
  table.record(event, {.outcome = AttemptRecord::Outcome::kCompleted,
                       .started = started(event, table.now()),
                       .result = result,
                       .error = {}});
  table.leave(event);
  table.end(event, EndedEvent::How::kCompleted, event.row.stamp, std::move(result), {});
}

Duration retry_delay(const RetryPolicy& policy, std::uint32_t retries, std::uint64_t random) {
  if (policy.delay == Duration::zero() && policy.jitter == Duration::zero()) return Duration::zero();
  auto grown = static_cast<double>(policy.delay.count()) * std::min(std::pow(policy.factor, retries), 1e18);
  Duration delay = grown < static_cast<double>(policy.max_delay.count()) ? Duration(static_cast<std::int64_t>(grown))
                                                                         : policy.max_delay;
  if (policy.jitter > Duration::zero())
    delay += Duration(static_cast<std::int64_t>(random % static_cast<std::uint64_t>(policy.jitter.count())));
  return delay;
}

void fail(WorkerTable& table, Loaded& event, const Failing& failing) {
  std::string error = cut(failing.error);
  table.record(event, {.outcome = AttemptRecord::Outcome::kFailed,
                       .started = started(event, table.now()),
                       .result = {},
                       .error = error});
  table.count(Counter::kFailed, 1);
  note_failure(event, table.now(), error);
  Stamp token = event.row.stamp;
  table.leave(event);
  auto given = readable(table.txn(), Given::decode(event.row.given()));
  RetryPolicy policy = given.retry ? *given.retry : failing.retry ? *failing.retry : table.settings().retry;
  bool again = !failing.options.give_up && event.row.retries < static_cast<std::uint32_t>(policy.max);
  if (again) {
    Duration delay = failing.options.retry_in ? std::max(*failing.options.retry_in, Duration::zero())
                                              : retry_delay(policy, event.row.retries, failing.random);
    if (!seeded(SeededBug::kForgetFailures)) ++event.row.retries;
    table.note(event, ChangeState::kFailed, error);
    if (delay > Duration::zero())
      table.enter_scheduled(event, due_after(table.now(), delay));
    else
      table.enter_ready(event, table.now());
  } else if (policy.then == RetryPolicy::Then::kDrop) {
    table.end(event, EndedEvent::How::kDropped, token, {}, error);
  } else {
    table.enter_dead(event);
  }
}

void release(WorkerTable& table, Loaded& event) {
  table.record(event, {.outcome = AttemptRecord::Outcome::kReleased,
                       .started = started(event, table.now()),
                       .result = {},
                       .error = {}});
  table.leave(event);
  --event.row.attempts;
  table.enter_ready(event, table.now());
}

void lose(WorkerTable& table, Loaded& event, std::string why) {
  table.record(
      event,
      {.outcome = AttemptRecord::Outcome::kLost, .started = started(event, table.now()), .result = {}, .error = why});
  table.count(Counter::kLost, 1);
  table.leave(event);
  std::uint32_t losses = ++event.row.losses;
  auto most = static_cast<std::uint32_t>(std::max(table.settings().losses_max, 0));
  if (losses > most) {
    note_failure(event, table.now(),
                 cut("lost " + std::to_string(losses) + " times, the last time because " + std::move(why)));
    return table.enter_dead(event);
  }
  if (losses <= kUnluckyLosses) return table.enter_ready(event, table.now());
  // Spread by the id, so that what ran beside a killer does not meet it again; by another byte of it each time, or two
  // that are close would meet for ever.
  auto share = static_cast<double>(event.id.bytes[15 - (losses - kUnluckyLosses - 1) % 6]) / 256.0;
  RetryPolicy growing{.delay = kLossDelay / 2, .factor = 2, .max_delay = kLossDelayMax};
  Duration delay = retry_delay(growing, losses - kUnluckyLosses - 1, 0);
  delay += Duration(static_cast<std::int64_t>(share * static_cast<double>(delay.count())));
  table.enter_scheduled(event, due_after(table.now(), delay));
}

DueTime extend(WorkerTable& table, Loaded& event, Duration lock) {
  Transaction& txn = table.txn();
  if (!event.row.locked_until)
    SystemAccess(txn).refuse({ErrorCode::kWrongState, "event " + to_string(event.id) +
                                                          " was claimed by a node, whose claims need no extending"});
  auto key = [&](DueTime time) {
    return tuple::pack_onto(deadlines(), static_cast<std::int64_t>(time.time_since_epoch().count()), table.space(),
                            event.id);
  };
  if (!seeded(SeededBug::kExpireTheExtended)) txn.clear(key(*event.row.locked_until));
  event.row.locked_until = due_after(table.now(), lock);
  txn.set(key(*event.row.locked_until), {});
  txn.add(deadlines_bell(), 1);
  txn.set(event.key, event.row.encode_as_it_is());
  return *event.row.locked_until;
}

void cancel(WorkerTable& table, Loaded& event) {
  const EventRow& row = event.row;
  const bool ready = row.state == Stored::kReady;
  if (row.state == Stored::kRunning && !row.locked_until && session::is_open(table.txn(), row.session))
    table.txn().add(recall_key(row.session), 1);
  if (seeded(SeededBug::kMiscountCancels) && ready) table.count(Counter::kOut, -1);
  table.leave(event);
  // It may have been the one that was let through for a free slot.
  if (auto limit_key = row.names().limit_key; ready && !limit_key.empty()) table.let_through(limit_key);
  std::string last = row.failures.empty() ? std::string() : row.failures.back().error;
  table.end(event, EndedEvent::How::kCancelled, {}, {}, std::move(last));
}

Result<void> cancel(Transaction& txn, std::string_view space, const Uuid& id, Queue::Force force, WallTime now) {
  SystemAccess access(txn);
  auto event = load(txn, space, id);
  if (!event) return perdure::fail(ErrorCode::kNotFound, "there is no event " + to_string(id) + ", or it has ended");
  bool running = event->row.state == Stored::kRunning;
  if (running && force == Queue::Force::kNo)
    return perdure::fail(ErrorCode::kWrongState,
                         "event " + to_string(id) + " is running; cancel it by force to take its claim away");
  WorkerTable table(txn, space, event->row.names().worker, now);
  cancel(table, *event);
  table.finish();
  return {};
}

void sweep_claims(Transaction& txn, SessionId dead, BytesView value, WallTime now) {
  auto held = HeldClaims::decode(value);
  if (!held || seeded(SeededBug::kKeepDeadClaims)) return;
  for (const Uuid& id : held->ids) {
    auto event = load(txn, held->space, id);
    if (!event || event->row.state != Stored::kRunning) continue;
    if (event->row.session != dead && !seeded(SeededBug::kSweepTheReclaimed)) continue;
    WorkerTable table(txn, held->space, event->row.names().worker, now);
    lose(table, *event, "the node that ran it is gone");
    table.finish();
  }
}

}  // namespace perdure::queue
