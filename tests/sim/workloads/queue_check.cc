#include "queue_check.h"

#include <algorithm>

#include "queue/worker_table.h"
#include "store/system_access.h"

namespace perdure::sim::queues {
namespace {

std::string text(std::int64_t number) {
  return QueueNotes::text(number);
}

bool may_be_dropped(const Sent& sent, const RetryPolicy& policy) {
  return (sent.options.retry ? *sent.options.retry : policy).then == RetryPolicy::Then::kDrop;
}

}  // namespace

void QueueCheck::check(Store& store) {
  auto read = store.read([&](Reader& reader) {
    log_ = read_log(reader);
    rows_ = check_rows(reader, "default", expected_.workers, [this](const std::string& what) { wrong(what); });
    places_.clear();
    read_places();
  });
  if (!read) return wrong("the store cannot be read: " + to_string(read.error()));
  for (const SeenClaim& claim : notes_.claims()) tokens_[claim.number].push_back(claim.token);
  for (const Sent& sent : notes_.sent()) check_sent(sent);
  for (const auto& [number, deeds] : log_.deeds) check_tokens(number);
  check_unique();
  check_rules();
  check_rate();
  if (expected_.ordered) check_order();
  read = store.read([&](Reader& reader) {
    check_owners(reader);
    check_counts(reader);
  });
  if (!read) wrong("the counts cannot be read: " + to_string(read.error()));
}

void QueueCheck::read_places() {
  for (const auto& [id, row] : rows_.events) {
    std::int64_t number = Errand::from(rows_.value_of(id)).number;
    if (!notes_.knows(number)) {
      wrong(to_string(id) + " is stored, and was never emitted");
      continue;
    }
    Place& place = places_[number];
    if (++place.stored > 1) wrong(text(number) + " is stored twice");
    place.id = id;
    place.state = row.state;
    if (notes_.sent(number).worker != row.names().worker) wrong(text(number) + " is stored for another worker");
  }
}

// Q1.

void QueueCheck::check_sent(const Sent& sent) {
  std::int64_t number = sent.errand.number;
  auto place = places_.find(number);
  std::int64_t stored = place == places_.end() ? 0 : place->second.stored;
  std::int64_t effects = log_.count(number, Did::kEffect), cancels = log_.count(number, Did::kCancel);
  if (effects > 1) wrong(text(number) + " was completed " + std::to_string(effects) + " times");
  if (cancels > 1) wrong(text(number) + " was cancelled " + std::to_string(cancels) + " times");
  if (stored + effects + cancels > 1)
    wrong(text(number) + " is in " + std::to_string(stored) + " places, was completed " + std::to_string(effects) +
          " times, and cancelled " + std::to_string(cancels) + " times");
  if (effects > 0 && sent.errand.fails == kAlways && !sent.by_hand)
    wrong(text(number) + " always fails, and was completed");
  check_exists(sent, stored + effects + cancels);
  if (place != places_.end() && place->second.state == queue::Stored::kDead) check_dead(sent, place->second);
  if (expected_.remembered && sent.id && !sent.duplicate) check_history(sent);
}

void QueueCheck::check_exists(const Sent& sent, std::int64_t places) {
  std::int64_t number = sent.errand.number;
  bool sure = sent.ending == Ending::kOk, duplicate = sent.duplicate, never = sent.ending == Ending::kFail;
  if (sent.in_transaction) {
    auto row = log_.sent.find(number);
    if (sure && row == log_.sent.end()) wrong(text(number) + ": what was written with it is lost");
    if (never && row != log_.sent.end()) wrong(text(number) + ": what was written with it is there, and it failed");
    sure = row != log_.sent.end();
    duplicate = sure && row->second.duplicate;
    never = !sure;
  }
  bool seen = tokens_.contains(number) || places > 0;
  if ((never || duplicate) && seen)
    wrong(text(number) + (never ? " failed" : " was a duplicate") + ", and is there all the same");
  if (!sure || duplicate || places > 0) {
    if (!sure && !never && places == 0) ++perhaps_[sent.worker];
    return;
  }
  ++vanished_[sent.worker];
  bool dropped = may_be_dropped(sent, expected_.settings.retry) && (sent.errand.fails > 0 || sent.by_hand);
  if (!dropped) wrong(text(number) + " was acknowledged, and is lost");
}

/// Nothing dies unless it was failed.
void QueueCheck::check_dead(const Sent& sent, const Place& place) {
  const queue::EventRow& row = rows_.events.at(place.id);
  if (sent.errand.fails > 0 || sent.by_hand) return;
  if (row.losses > static_cast<std::uint32_t>(expected_.settings.losses_max)) return;
  std::string why = row.failures.empty() ? "nothing" : row.failures.back().error;
  wrong(text(sent.errand.number) + " became a dead letter, and never failed: " + why);
}

/// What is remembered of its end is what has happened.
void QueueCheck::check_history(const Sent& sent) {
  std::int64_t number = sent.errand.number;
  auto ended = rows_.ended.find(*sent.id);
  bool completed = log_.count(number, Did::kEffect) > 0, cancelled = log_.count(number, Did::kCancel) > 0;
  if (ended == rows_.ended.end()) {
    if (completed || cancelled) wrong(text(number) + " has ended, and that is not remembered");
    return;
  }
  if (places_.contains(number)) wrong(text(number) + " is stored, and has ended");
  using How = EndedEvent::How;
  if ((ended->second.how == How::kCompleted) != completed)
    wrong(text(number) + " is remembered as " + std::string(name_of(ended->second.how)) + ", and has " +
          (completed ? "an" : "no") + " effect");
  if (ended->second.how == How::kCompleted && Value::decode(ended->second.result).value_or(Value()) != Value(number))
    wrong(text(number) + " was completed with the result of another");
  if (cancelled && ended->second.how != How::kCancelled)
    wrong(text(number) + " was cancelled, and otherwise remembered");
}

/// Per worker, what has ended was counted so.
void QueueCheck::check_counts(Reader& reader) {
  SystemAccess access(reader);
  for (const std::string& worker : expected_.workers) {
    Bytes prefix = queue::worker_prefix("default", worker);
    auto counter = [&](queue::Counter which) { return decode_counter(reader.get(queue::counter_key(prefix, which))); };
    std::int64_t completed = 0, cancelled = 0;
    for (const auto& [number, deeds] : log_.deeds) {
      if (notes_.sent(number).worker != worker) continue;
      completed += log_.count(number, Did::kEffect);
      cancelled += log_.count(number, Did::kCancel);
    }
    auto counted = [&](queue::Counter which) { return std::to_string(counter(which)); };
    if (counter(queue::Counter::kCompleted) != completed)
      wrong(worker + " has completed " + std::to_string(completed) + " events, and is said to have completed " +
            counted(queue::Counter::kCompleted));
    std::int64_t others = counter(queue::Counter::kDropped) + counter(queue::Counter::kCancelled) - cancelled;
    std::int64_t least = vanished_[worker], most = least + perhaps_[worker];
    if (others < least || others > most)
      wrong(worker + " has lost " + std::to_string(least) + " to " + std::to_string(most) + " events, and " +
            std::to_string(others) + " are said to have been dropped or cancelled");
  }
}

}  // namespace perdure::sim::queues
