#include "actor/batch.h"

#include <algorithm>
#include <iterator>

#include "actor/mailbox.h"
#include "runtime/guarded_handler.h"

namespace perdure::actor {
namespace {

/// What the caller is told of a failed attempt.
Error as_failure(Error error) {
  if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kHandlerFailed) return error;
  return {ErrorCode::kHandlerFailed, to_string(error)};
}

}  // namespace

Result<Value> state_for(const Loaded& loaded, const ServedKind& kind, const ActorId& actor) {
  if (!loaded.head) return guarded_handler([&] { return kind.behaviour->init(actor); });
  int schema = kind.behaviour->schema();
  if (loaded.head->schema == schema) return loaded.state.value;
  if (loaded.head->schema > schema)
    return fail(ErrorCode::kUnsupportedFormat,
                actor.to_string() + " has a state of schema " + std::to_string(loaded.head->schema) +
                    ", but this node knows schema " + std::to_string(schema) + "; serve it with newer code");
  return guarded_handler([&] { return kind.behaviour->upgrade_of(actor, loaded.head->schema, loaded.state.value); });
}

Result<std::optional<StateChanges>> changes_to(const Loaded& loaded, const ServedKind& kind, BytesView prefix,
                                               Value state) {
  bool same_schema = loaded.head && loaded.head->schema == kind.behaviour->schema();
  if (same_schema && state == loaded.state.value) return std::nullopt;
  if (auto good = state.check("the state"); !good) return std::unexpected(std::move(good.error()));
  auto made = changes(state_key(prefix), loaded.head ? &loaded.state : nullptr, std::move(state));
  if (!made) return std::unexpected(std::move(made.error()));
  return std::move(*made);
}

void Batch::handle(Scheduler& scheduler) {
  handle_first(size(), scheduler);
  // What came before the one that failed commits without it.
  if (failure && failure->index > 0) {
    std::size_t good = failure->index;
    failure.reset();
    handle_first(good, scheduler);
    // Handlers are pure, so this is not to be expected; then each goes alone.
    if (failure && failure->index > 0) {
      failure.reset();
      handle_first(1, scheduler);
    }
  }
}

void Batch::forget_results() {
  handled = 0;
  replies.clear();
  casts.clear();
  other_replies.clear();
  effects.clear();
  actions.clear();
  changes.reset();
  takes_lock = false;
  frees_lock = false;
  stop.reset();
}

void Batch::fail_at(std::size_t index, Error error) {
  forget_results();
  bool retry = error.code != ErrorCode::kInvalidArgument;
  failure = Failure{index, as_failure(std::move(error)), retry};
}

void Batch::fail_state(Error error) {
  forget_results();
  bool newer = loaded.head && loaded.head->schema > kind->behaviour->schema();
  failure = Failure{0, newer ? std::move(error) : as_failure(std::move(error)), true, newer};
}

std::optional<From> Batch::from_of(std::size_t index) const {
  const auto& caller = mode == Mode::kMailbox ? items[index].message.caller : requests[index].caller;
  if (!caller) return std::nullopt;
  return caller->from(actor);
}

std::string_view Batch::traceparent_of(std::size_t index) const {
  return mode == Mode::kMailbox ? items[index].message.traceparent : requests[index].traceparent;
}

Result<Handled> Batch::handle_one(Activation& activation, std::size_t index, Turn& turn) {
  if (mode != Mode::kMailbox) {
    const Request& request = requests[index];
    return guarded_handler([&] { return activation.handle(request.type, request.message, turn); });
  }
  auto message = Value::decode(items[index].message.body);
  if (!message) return std::unexpected(std::move(message.error()));
  return guarded_handler([&] { return activation.handle(items[index].message.type, *message, turn); });
}

void Batch::handle_first(std::size_t most, Scheduler& scheduler) {
  forget_results();
  const SteadyTime began = scheduler.now();
  at = 0;
  bool resets = mode == Mode::kPriority && requests[0].what == Request::What::kReset;
  auto state = resets ? guarded_handler([&] { return kind->behaviour->init(actor); }) : state_for(loaded, *kind, actor);
  if (!state) return fail_state(std::move(state.error()));
  auto activation = guarded_handler([&] { return kind->behaviour->activate(actor, *state); });
  if (!activation)
    return fail_at(0, {ErrorCode::kHandlerFailed, "the state cannot be read: " + activation.error().message});
  if (resets) {
    handled = 1;
    frees_lock = true;
    replies.push_back({0, Value()});
    most = 0;
  }
  for (std::size_t i = 0; i < most; ++i) {
    if (mode == Mode::kPriority && requests[i].what == Request::What::kReset) break;
    at = i;
    SteadyTime one_began = scheduler.now();
    Turn turn(actor, from_of(i), i == 0 && attempts ? attempts->count + 1 : 1, traceparent_of(i));
    auto result = handle_one(**activation, i, turn);
    // Given up meanwhile: nobody is interested any more, and the scheduler may be gone.
    if (settled) return;
    if (!result) return fail_at(i, std::move(result.error()));
    SteadyTime now = scheduler.now();
    if (now - one_began > kind->options.limit)
      return fail_at(i, {ErrorCode::kHandlerFailed, "the handler ran past its limit"});
    auto then = result->then;
    if (then == Handled::Then::kLock && loaded.head && loaded.head->lock)
      return fail_at(i, {ErrorCode::kHandlerFailed, "the lock was asked for, but the actor is locked already"});
    if (auto taken = take_effects(*this, turn); !taken)
      return fail_at(i, {ErrorCode::kHandlerFailed, std::move(taken.error().message)});
    ++handled;
    if (then != Handled::Then::kLock) {
      std::optional<Result<Value>> reply;
      if (result->reply && result->reply->encoded_size() > kReplyBytesMax)
        return fail_at(i, {ErrorCode::kHandlerFailed,
                           "the reply has more than " + std::to_string(kReplyBytesMax) + " bytes when encoded"});
      if (result->reply) reply.emplace(std::move(*result->reply));
      replies.push_back({i, std::move(reply)});
    }
    if (then == Handled::Then::kLock) takes_lock = true;
    if (then == Handled::Then::kStop) stop = std::move(result->reason);
    if (then != Handled::Then::kGoOn || now - began > kind->options.batch_time) break;
  }
  auto made = guarded_handler([&]() -> Result<Value> { return (*activation)->state(); });
  auto difference = made ? changes_to(loaded, *kind, prefix, std::move(*made))
                         : Result<std::optional<StateChanges>>(std::unexpected(std::move(made.error())));
  if (!difference) {
    Error error = std::move(difference.error());
    // Which of several made it too large shows when each goes alone.
    return fail_at(handled > 1 ? 1 : 0, {ErrorCode::kHandlerFailed, std::move(error.message)});
  }
  changes = std::move(*difference);
}

Result<void> take_effects(Batch& batch, Turn& turn) {
  for (Turn::Cast& cast : turn.casts()) {
    if (cast.to.space != batch.actor.space)
      return fail(ErrorCode::kInvalidArgument,
                  "a cast to " + cast.to.to_string() + " would leave the space " + batch.actor.space);
    if (auto good = cast.to.check(); !good) return good;
    auto body = encode_message(cast.message);
    if (!body) return std::unexpected(std::move(body.error()));
    batch.casts.push_back({std::move(cast.to), std::move(*body), cast.delay, std::string(turn.traceparent())});
  }
  std::ranges::move(turn.replies(), std::back_inserter(batch.other_replies));
  std::ranges::move(turn.effects(), std::back_inserter(batch.effects));
  if (!turn.actions().empty()) batch.actions.push_back(std::move(turn.actions()));
  return {};
}

std::optional<Head> Batch::next_head(SessionId session) const {
  if (!changes && !takes_lock && mode != Mode::kUnlock && !(frees_lock && loaded.head && loaded.head->lock))
    return std::nullopt;
  Head head = loaded.head.value_or(Head{});
  if (changes || !loaded.head) head.schema = kind->behaviour->schema();
  if (frees_lock || mode == Mode::kUnlock) head.lock.reset();
  if (takes_lock) {
    std::size_t last = handled - 1;
    head.lock = Lock{session, Stamp{}, mode == Mode::kMailbox ? items[last].message.caller : requests[last].caller};
  }
  return head;
}

}  // namespace perdure::actor
