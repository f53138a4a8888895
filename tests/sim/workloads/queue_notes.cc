#include "queue_notes.h"

#include <algorithm>

namespace perdure::sim::queues {
namespace {

std::int64_t integer(const Value& value, std::string_view key) {
  const Value* found = value.find(key);
  return found && found->as_integer() ? *found->as_integer() : 0;
}

}  // namespace

Value Errand::to_value() const {
  return Value::Map{{"number", number},
                    {"fails", fails},
                    {"way", static_cast<int>(way)},
                    {"load", std::string(static_cast<std::size_t>(load), 'x')}};
}

Errand Errand::from(const Value& value) {
  return {.number = integer(value, "number"),
          .fails = static_cast<int>(integer(value, "fails")),
          .way = static_cast<Way>(integer(value, "way"))};
}

std::int64_t QueueNotes::send(Sent sent) {
  sent.errand.number = static_cast<std::int64_t>(sent_.size()) + 1;
  sent_.push_back(std::move(sent));
  std::int64_t number = sent_.back().errand.number;
  if (sent_.back().options.id) saw(number, *sent_.back().options.id);
  return number;
}

void QueueNotes::answered(std::int64_t number, const Result<Emitted>& result) {
  Sent& sent = sent_[static_cast<std::size_t>(number) - 1];
  world_.note("client",
              text(number) + " to " + sent.worker + ": " +
                  (result ? to_string(result->id) + (result->duplicate ? ", known" : "") : to_string(result.error())));
  if (!result) {
    // What is known to be there stays so, whatever became of saying it again.
    bool unknown = result.error().outcome() == Outcome::kUnknown || sent.perhaps;
    sent.perhaps = unknown;
    if (sent.ending != Ending::kOk) sent.ending = unknown ? Ending::kUnknown : Ending::kFail;
    if (result.error().code == ErrorCode::kInvalidArgument)
      wrong(text(number) + " was refused: " + result.error().message);
    return;
  }
  sent.ending = Ending::kOk;
  sent.answered_at = std::min(sent.answered_at, ++clock_);
  // Repeating what had succeeded is answered with the event itself.
  sent.duplicate = result->duplicate && !(sent.options.id && *sent.options.id == result->id);
  if (!sent.duplicate) saw(number, result->id);
}

void QueueNotes::said_again(std::int64_t number) {
  Sent& sent = sent_[static_cast<std::size_t>(number) - 1];
  if (sent.ending == Ending::kFail) sent.ending = Ending::kUnknown;
}

void QueueNotes::saw(std::int64_t number, const Uuid& id) {
  Sent& sent = sent_[static_cast<std::size_t>(number) - 1];
  if (sent.id && *sent.id != id) return wrong(text(number) + " has two ids");
  if (!sent.id) known_.emplace_back(number, id);
  sent.id = id;
}

void QueueNotes::claimed(const Event& event, const std::string& by, WallTime latest) {
  std::int64_t number = Errand::from(event.value).number;
  world_.count_operation();
  if (!event.token) return wrong("a claim of " + to_string(event.id) + " has no token");
  world_.note(by, "claims " + text(number) + " with token " + event.token->to_string() + ", attempt " +
                      std::to_string(event.attempts));
  if (!knows(number)) return wrong(text(number) + " was claimed, and never emitted");
  const Sent& sent = this->sent(number);
  saw(number, event.id);
  if (sent.worker != event.worker) wrong(text(number) + " was claimed by another worker, " + event.worker);
  if (sent.ending == Ending::kFail) wrong(text(number) + " could not be emitted, and was claimed");
  if (!tokens_.insert(event.token->stamp).second) wrong(text(number) + " was begun twice under one claim");
  if (!event.locked_at) return wrong(text(number) + " was claimed at no time");
  // Each attempt before this one has failed or was lost; a redriven event begins to count anew.
  if (event.attempts != event.retries + event.losses + 1 && !redriven(event.worker))
    wrong(text(number) + " has had " + std::to_string(event.attempts - 1) + " attempts, of which " +
          std::to_string(event.retries) + " are counted as failed, and " + std::to_string(event.losses) + " as lost");
  if (latest < event.delay_until) wrong(text(number) + " was claimed before its time");
  claims_.push_back({.number = number,
                     .worker = event.worker,
                     .token = event.token->stamp,
                     .locked_at = *event.locked_at,
                     .latest = world_.nodes() == 1 ? *event.locked_at : latest,
                     .by = by,
                     .owner = event.owner,
                     .succeeds = event.retries >= sent.errand.fails,
                     .seen_at = ++clock_});
}

void QueueNotes::did(std::int64_t number, Did what, const Result<void>& result) {
  world_.count_operation();
  world_.note("client",
              std::string(name_of(what)) + " of " + text(number) + ": " + (result ? "ok" : to_string(result.error())));
}

std::optional<std::pair<std::int64_t, Uuid>> QueueNotes::any_known(Random& random) const {
  if (known_.empty()) return std::nullopt;
  // Mostly one of the last, which may still be there.
  std::size_t from = chance(random, 800) && known_.size() > 12 ? known_.size() - 12 : 0;
  return known_[draw(random, from, known_.size() - 1)];
}

}  // namespace perdure::sim::queues
