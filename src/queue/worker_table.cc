#include "queue/worker_table.h"

#include <algorithm>
#include <iterator>

#include "base/seeded_bug.h"
#include "session/store_clock.h"

namespace perdure::queue {
namespace {

constexpr std::array<std::string_view, kCounters> kNames = {
    "in", "out", "scheduled", "running", "dead", "completed", "failed", "dropped", "cancelled", "lost", "recorded"};

Bytes ready_entry_key(BytesView index, const EventRow& row) {
  return tuple::pack_onto(index, row.priority, row.stamp);
}

}  // namespace

Bytes counter_key(BytesView prefix, Counter counter) {
  return tuple::pack_onto(prefix, "n", kNames[static_cast<std::size_t>(counter)]);
}

WorkerSettings read_settings(Reader& reader, BytesView prefix) {
  auto value = reader.get(settings_key(prefix));
  return value ? readable(reader, decode_settings(*value)) : WorkerSettings{};
}

std::vector<Rule> read_rules(Reader& reader, BytesView prefix, WallTime now, std::vector<Rule>* ended) {
  auto value = reader.get(rules_key(prefix));
  if (!value) return {};
  auto rules = readable(reader, decode_rules(*value));
  auto is_over = [now](const Rule& rule) { return rule.until && is_due(*rule.until, now); };
  if (ended) {
    ended->clear();
    std::ranges::copy_if(rules, std::back_inserter(*ended), is_over);
  }
  std::erase_if(rules, is_over);
  return rules;
}

std::optional<Loaded> load(Reader& reader, std::string_view space, const Uuid& id) {
  Bytes key = event_key(space, id);
  auto value = reader.get(key);
  if (!value || state_of(*value) == Stored::kEnded) return std::nullopt;
  return Loaded{id, std::move(key), readable(reader, EventRow::decode(std::move(*value)))};
}

std::optional<EndedRow> load_ended(Reader& reader, std::string_view space, const Uuid& id) {
  auto value = reader.get(event_key(space, id));
  if (!value || state_of(*value) != Stored::kEnded) return std::nullopt;
  return readable(reader, EndedRow::decode(*value));
}

Result<Value> read_value(Reader& reader, BytesView key, const Given& given) {
  if (given.apart_bytes == 0) return Value::decode(given.value);
  Bytes whole;
  for (const Row& row : reader.get_range(tuple::extensions(key))) whole.append(row.value);
  return Value::decode(whole);
}

void note_due(Transaction& txn, BytesView prefix, std::string_view space, std::string_view worker, DueTime due) {
  Bytes head = head_key(prefix);
  auto first = txn.get(head);
  std::int64_t ms = due.time_since_epoch().count();
  if (first && decode_counter(first) <= ms) return;
  if (first) txn.clear(tuple::pack_onto(timetable(), decode_counter(first), space, worker));
  txn.set(head, encode_counter(ms));
  txn.set(tuple::pack_onto(timetable(), ms, space, worker), {});
  if (!seeded(SeededBug::kScheduleSilently)) txn.add(timetable_bell(), 1);
}

void forget_at(Transaction& txn, DueTime when, Forget what, Bytes value) {
  value.insert(value.begin(), static_cast<char>(what));
  txn.set_stamped(tuple::pack_stamped_onto(forget_prefix(), static_cast<std::int64_t>(when.time_since_epoch().count()),
                                           tuple::IncompleteStamp{SystemAccess(txn).next_order()}),
                  value);
}

WorkerTable::WorkerTable(Transaction& txn, std::string_view space, std::string_view worker, WallTime now)
    : txn_(txn),
      access_(txn),
      space_(space),
      worker_(worker),
      prefix_(worker_prefix(space, worker)),
      ready_(ready_key(prefix_)),
      now_(now) {}

const WorkerSettings& WorkerTable::settings() {
  if (!settings_) settings_ = read_settings(txn_, prefix_);
  return *settings_;
}

std::vector<Rule> WorkerTable::rules() {
  std::vector<Rule> ended;
  auto rules = read_rules(txn_, prefix_, now_, &ended);
  if (!ended.empty()) {
    act_on_time();
    write_rules(rules);
    for (const Rule& rule : ended) note_no_more(rule.type);
  }
  return rules;
}

void WorkerTable::write_rules(const std::vector<Rule>& rules) {
  if (rules.empty())
    txn_.clear(rules_key(prefix_));
  else
    txn_.set(rules_key(prefix_), encode_rules(rules));
}

std::optional<Loaded> WorkerTable::load_ready(const Row& entry) {
  auto found = ReadyEntry::decode(entry.value);
  std::optional<Loaded> event;
  Reader snapshot = txn_.snapshot();
  if (found) event = load(seeded(SeededBug::kClaimBlindly) ? snapshot : txn_, space_, found->id);
  // Entries and rows are written together, so this is damage; claiming goes on behind it.
  bool current = event && event->row.state == Stored::kReady && ready_entry_key(ready_, event->row) == entry.key;
  if (current) return event;
  txn_.clear(entry.key);
  count(Counter::kOut, 1);
  return std::nullopt;
}

// Leaving.

void WorkerTable::leave(const Loaded& event) {
  const EventRow& row = event.row;
  switch (row.state) {
    case Stored::kReady: {
      txn_.clear(ready_entry_key(ready_, row));
      auto limit_key = row.names().limit_key;
      if (!limit_key.empty()) txn_.clear(ready_entry_key(waiting_key(prefix_, limit_key), row));
      return count(Counter::kOut, 1);
    }
    case Stored::kScheduled:
      if (!seeded(SeededBug::kLeaveDueRow))
        txn_.clear(tuple::pack_onto(scheduled_key(prefix_),
                                    static_cast<std::int64_t>(row.delay_until.time_since_epoch().count()), row.stamp));
      return count(Counter::kScheduled, -1);
    case Stored::kRunning:
      if (row.locked_until)
        txn_.clear(tuple::pack_onto(
            deadlines(), static_cast<std::int64_t>(row.locked_until->time_since_epoch().count()), space_, event.id));
      leave_slot(event);
      return count(Counter::kRunning, -1);
    case Stored::kDead:
      if (!seeded(SeededBug::kRedriveKeepsDead)) txn_.clear(tuple::pack_onto(dead_key(prefix_), row.stamp));
      return count(Counter::kDead, -1);
    case Stored::kEnded:
      return;
  }
}

bool WorkerTable::has_slot(std::string_view limit_key) {
  if (seeded(SeededBug::kIgnoreLimitKey)) return true;
  return slots_taken(limit_key) < settings().limit_per_key;
}

std::size_t& WorkerTable::slots_taken(std::string_view limit_key) {
  auto found = slots_.find(limit_key);
  if (found != slots_.end()) return found->second;
  auto taken = txn_.get_range(tuple::extensions(slots_key(prefix_, limit_key)), {.limit = kSlotsMax});
  return slots_.emplace(limit_key, taken.size()).first->second;
}

void WorkerTable::wait_for_slot(const Row& entry, const Loaded& event, std::string_view limit_key) {
  txn_.clear(entry.key);
  txn_.set(ready_entry_key(waiting_key(prefix_, limit_key), event.row), entry.value);
}

void WorkerTable::leave_slot(const Loaded& event) {
  auto limit_key = event.row.names().limit_key;
  if (limit_key.empty() || seeded(SeededBug::kLeakSlot)) return;
  std::size_t& taken = slots_taken(limit_key);
  if (taken > 0) --taken;
  txn_.clear(tuple::pack_onto(slots_key(prefix_, limit_key), event.id));
  let_through(limit_key);
}

void WorkerTable::let_through(std::string_view limit_key) {
  // As many as there are slots, and not just one: the limit may have been raised.
  std::size_t limit = settings().limit_per_key;
  std::size_t taken = slots_taken(limit_key);
  if (taken >= limit || seeded(SeededBug::kForgetTheWaiting)) return;
  Bytes waiting = waiting_key(prefix_, limit_key);
  for (const Row& entry : txn_.get_range(tuple::extensions(waiting), {.limit = limit - taken})) {
    txn_.clear(entry.key);
    txn_.set(ready_ + entry.key.substr(waiting.size()), entry.value);
    ring();
  }
}

// Entering.

void WorkerTable::enter_ready(Loaded& event, WallTime since) {
  EventRow& row = event.row;
  row.state = Stored::kReady;
  row.locked_at.reset();
  row.locked_until.reset();
  row.session = {};
  std::uint32_t order = access_.next_order();
  txn_.set_stamped(event.key, row.encode(order));
  txn_.set_stamped(tuple::pack_stamped_onto(ready_, row.priority, tuple::IncompleteStamp{order}),
                   ReadyEntry{event.id, since}.encode());
  count(Counter::kIn, 1);
  note(event, ChangeState::kReady);
}

void WorkerTable::enter_scheduled(Loaded& event, DueTime due) {
  EventRow& row = event.row;
  row.state = Stored::kScheduled;
  if (!seeded(SeededBug::kRetryKeepsClaim)) row.locked_at.reset();
  row.locked_until.reset();
  row.session = {};
  row.delay_until = due;
  std::uint32_t order = access_.next_order();
  txn_.set_stamped(event.key, row.encode(order));
  txn_.set_stamped(
      tuple::pack_stamped_onto(scheduled_key(prefix_), static_cast<std::int64_t>(due.time_since_epoch().count()),
                               tuple::IncompleteStamp{order}),
      encode_id(event.id));
  count(Counter::kScheduled, 1);
  note_due(txn_, prefix_, space_, worker_, due);
  note(event, ChangeState::kScheduled);
}

std::uint32_t WorkerTable::enter_running(Loaded& event, const Claimant& claimant) {
  EventRow& row = event.row;
  access_.observe(Metric::kStartDelay,
                  std::max(now_ - std::max(WallTime(row.delay_until), row.enqueued_at), Duration::zero()));
  row.state = Stored::kRunning;
  row.locked_at = now_;
  row.session = claimant.session;
  row.locked_until = claimant.until;
  ++row.attempts;
  std::uint32_t order = access_.next_order();
  txn_.set_stamped(event.key, row.encode(order));
  auto limit_key = row.names().limit_key;
  if (!limit_key.empty()) {
    ++slots_taken(limit_key);
    txn_.set(tuple::pack_onto(slots_key(prefix_, limit_key), event.id), {});
  }
  if (claimant.until) {
    txn_.set(tuple::pack_onto(deadlines(), static_cast<std::int64_t>(claimant.until->time_since_epoch().count()),
                              space_, event.id),
             {});
    txn_.add(deadlines_bell(), 1);
  }
  count(Counter::kRunning, 1);
  note(event, ChangeState::kRunning);
  return order;
}

void WorkerTable::enter_dead(Loaded& event) {
  EventRow& row = event.row;
  row.state = Stored::kDead;
  row.locked_at.reset();
  row.locked_until.reset();
  row.session = {};
  std::uint32_t order = access_.next_order();
  txn_.set_stamped(event.key, row.encode(order));
  txn_.set_stamped(tuple::pack_stamped_onto(dead_key(prefix_), tuple::IncompleteStamp{order}), encode_id(event.id));
  count(Counter::kDead, 1);
  free_unique(event);
  tell(event);
  note(event, ChangeState::kDead, row.failures.empty() ? std::string_view() : row.failures.back().error);
}

void WorkerTable::end(const Loaded& event, EndedEvent::How how, Stamp token, Bytes result, std::string last_error) {
  if (event.row.names().apart_bytes > 0) txn_.clear_range(tuple::extensions(event.key));
  free_unique(event);
  tell(event);
  switch (how) {
    case EndedEvent::How::kCompleted:
      count(Counter::kCompleted, 1);
      note(event, ChangeState::kCompleted);
      break;
    case EndedEvent::How::kDropped:
      count(Counter::kDropped, 1);
      note(event, ChangeState::kDropped, last_error);
      break;
    case EndedEvent::How::kCancelled:
      count(Counter::kCancelled, 1);
      note(event, ChangeState::kCancelled);
      break;
  }
  if (settings().retention <= Duration::zero()) return txn_.clear(event.key);
  txn_.set(event.key, EndedRow{.how = how,
                               .token = token,
                               .attempts = event.row.attempts,
                               .finished_at = now_,
                               .worker = worker_,
                               .last_error = std::move(last_error),
                               .result = std::move(result)}
                          .encode());
  ended_.push_back(event.id);
}

void WorkerTable::tell(const Loaded& event, BytesView value) {
  if (!event.row.names().told) return;
  auto given = readable(txn_, Given::decode(event.row.given()));
  txn_.set(told_key(given.module, space_, given.modifier, event.id), value);
  txn_.add(told_bell(), 1);
}

void WorkerTable::free_unique(const Loaded& event) {
  auto name = event.row.names().unique_key;
  if (name.empty() || seeded(SeededBug::kKeepUniqueKey)) return;
  Bytes key = unique_key(prefix_, name);
  auto taken = txn_.get(key);
  // One that lasts for a time of its own is forgotten at its end.
  if (taken && *taken == encode_id(event.id)) txn_.clear(key);
}

// What is gathered.

void WorkerTable::record(const Loaded& event, Execution execution) {
  count(Counter::kRecorded, 1);
  access_.observe(Metric::kAttemptDuration, now_ - execution.started);
  // Those that others of this very transaction would overwrite are not worth keeping.
  if (records_left_-- > kRingSize) return;
  AttemptRecord record{.event = event.id,
                       .attempt = static_cast<int>(event.row.attempts),
                       .outcome = execution.outcome,
                       .started = execution.started,
                       .ended = now_,
                       .value = {},
                       .result = {},
                       .error = std::move(execution.error)};
  records_.push_back({std::move(record), Bytes(event.row.given()), std::move(execution.result)});
}

void WorkerTable::note(const Loaded& event, ChangeState state, std::string_view error) {
  access_.note({.type = ChangeType::kEvent,
                .state = state,
                .space = space_,
                .name = worker_,
                .id = event.id,
                .at = now_,
                .attempt = event.row.attempts,
                .error = error});
}

void WorkerTable::note_worker(ChangeState state) {
  access_.note({.type = ChangeType::kWorker, .state = state, .space = space_, .name = worker_, .id = {}, .at = now_});
}

void WorkerTable::note_no_more(Rule::Type type) {
  note_worker(type == Rule::Type::kPause ? ChangeState::kUnpaused : ChangeState::kUnblocked);
}

void WorkerTable::write_records() {
  if (records_.empty()) return;
  Reader snapshot = txn_.snapshot();
  auto after = decode_counter(snapshot.get(counter_key(prefix_, Counter::kRecorded))) +
               counts_[static_cast<std::size_t>(Counter::kRecorded)];
  Bytes ring = ring_key(prefix_);
  auto small = [](BytesView bytes) { return bytes.size() <= kInlineBytes ? bytes : BytesView(); };
  std::int64_t at = after - static_cast<std::int64_t>(records_.size());
  for (auto next = records_.begin(); next != records_.end();) {
    RecordBlock block{at / RecordBlock::kRecords, {}};
    Bytes key = tuple::pack_onto(ring, block.number % kRingBlocks);
    if (at % RecordBlock::kRecords > 0) {
      auto value = snapshot.get(key);
      auto begun = value ? RecordBlock::decode(*value) : std::nullopt;
      if (begun && begun->number == block.number) block = std::move(*begun);
    }
    do {
      auto given = Given::decode(next->given);
      block.add(next->record, given && given->apart_bytes == 0 ? small(given->value) : BytesView(),
                small(next->result));
      ++next;
    } while (++at % RecordBlock::kRecords > 0 && next != records_.end());
    txn_.set(key, block.encode());
  }
}

void WorkerTable::write_forgotten() {
  if (ended_.empty()) return;
  forget_at(txn_, due_after(now_, settings().retention), Forget::kEnded,
            HeldClaims{space_, std::move(ended_)}.encode());
}

void WorkerTable::finish() {
  write_records();
  write_forgotten();
  for (std::size_t i = 0; i < kCounters; ++i) {
    bool bell = rung_ && i == static_cast<std::size_t>(Counter::kIn);
    if (counts_[i] != 0 || bell) txn_.add(counter_key(prefix_, static_cast<Counter>(i)), counts_[i]);
  }
  if (acted_on_time_) StoreClock::advance(txn_, now_);
  counts_ = {};
  rung_ = acted_on_time_ = false;
  records_.clear();
  ended_.clear();
}

}  // namespace perdure::queue
